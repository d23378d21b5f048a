"""The demonstration runs, runs again on the cluster that stands, and shows what it says it shows."""

from __future__ import annotations

import os

import pytest

import demo
from cluster.__main__ import main as command


def test_the_demonstration_may_be_run_twice(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.NAME", f"demo-{os.getpid()}")  # not the one that a person has up
    monkeypatch.setattr("demo.FLEET", "h100")
    try:
        assert demo.main() == 0
        first = capfd.readouterr()
        assert demo.main() == 0
        second = capfd.readouterr()
    finally:
        command(["down", "--name", demo.NAME])
    assert "namespace/support created" in first.out
    assert "namespace/support created" not in second.out
    assert "starting the cluster" not in second.err
    for said in (first, second):
        assert "llmdeployment.plimsoll.dev/chat serverside-applied" in said.out
        assert "llmdeployment.plimsoll.dev/chat condition met" in said.out
        assert "min must not be above max" in said.err
        assert "FITS  support/chat" in said.out
        assert "make demo-down" in said.out
