"""The demonstration runs, runs again on the cluster that stands, and shows what it says it shows."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

import demo
import first_token
import models
from cluster.__main__ import main as command
from cluster.binaries import Places
from cluster.binaries.progress import Progress


def test_the_demonstration_may_be_run_twice_and_is_no_success_without_a_token(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.NAME", f"demo-{os.getpid()}")  # not the one that a person has up
    monkeypatch.setattr("demo.FLEET", "h100")
    try:
        assert demo.main(real=False) == 0
        first = capfd.readouterr()
        # As on a machine where neither a node nor the engine can be had.
        monkeypatch.setattr("first_token.prepare", lambda *_: "needs root")
        monkeypatch.setattr("first_token.by_process", lambda *_: "needs vLLM")
        assert demo.main() == 1
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
        rows = told(said.out)
        assert set(rows) == {("support", "chat"), ("tools", "code"), ("search", "embeddings")}
        for ready, replicas, reason in rows.values():
            serve, _, wanted = replicas.partition("/")
            assert (ready, serve, reason) == ("True", wanted, "Serving")
            assert int(wanted) > 0
        assert "FITS  support/chat" in said.out
        assert "make demo-down" in said.out
        assert "the cluster and the operator" in said.out.rpartition("Took: ")[2]
    assert "No real node here: needs root" in second.out
    assert "No token of a real engine came: needs vLLM" in second.err


def told(out: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    """What `kubectl get llm` printed of each: whether it is Ready, how many replicas of how many, and the reason."""
    table = out.partition("$ kubectl get llm --all-namespaces\n")[2].partition("\n\n")[0]
    rows = (line.split() for line in table.splitlines()[1:])
    return {
        (namespace, name): (ready, replicas, reason)
        for namespace, name, ready, replicas, _, _, _, reason, *_ in rows
    }


@pytest.mark.real_node
@pytest.mark.real_engine
def test_the_demonstration_ends_with_a_token_of_a_real_engine(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.NAME", f"demo-{os.getpid()}")
    monkeypatch.setattr("demo.FLEET", "h100")
    try:
        assert demo.main() == 0
    finally:
        command(["down", "--name", demo.NAME])
    said = capfd.readouterr().out
    assert "llmdeployment.plimsoll.dev/hello condition met" in said
    assert "12 tokens, from tiny" in said


@pytest.mark.real_engine
def test_without_a_node_the_engine_is_a_process_behind_the_same_plan(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    places = Places.of(os.environ)  # noqa: TID251 - the session's own
    assert first_token.by_process(tmp_path, places, Progress(sys.stderr)) is None
    assert "12 tokens, from tiny" in capfd.readouterr().out


def test_the_model_that_the_resource_describes_is_the_one_that_is_made() -> None:
    resource = yaml.safe_load(first_token.RESOURCE.read_text())
    described = json.loads(resource["spec"]["model"]["architecture"]["config"])
    assert described == json.loads(models.dense().files["config.json"])
