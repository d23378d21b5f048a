"""What a plan says that a replica carries, held against the engine model for one plan of each kind."""

from __future__ import annotations

import json

import pytest

import planned_rates
from plimsoll.simulate.fidelity import belief_error


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_rates, "FLEETS", (("Qwen/Qwen3-32B", "64xH100"),))
    monkeypatch.setattr(planned_rates, "SLOS", ((2000, 60), (300, 40)))
    monkeypatch.setattr(planned_rates, "LENGTHS", (((1000, 4000), (200, 600)),))


def test_what_is_planned_is_nearer_to_what_is_kept_than_what_typical_requests_would_allow(
    capsys: pytest.CaptureFixture[str],
):
    planned_rates.main(["--seeds", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    kept, hard = told["rows"]
    assert told["error"] == belief_error()
    assert 0.6 < kept["planned"] / kept["simulated"] < 1.3 < kept["typical"] / kept["simulated"]
    assert not kept["told_late"]
    assert hard["told_late"]


def test_the_table_ends_with_how_far_both_are_off(capsys: pytest.CaptureFixture[str]):
    planned_rates.main(["--seeds", "1"])
    *_, typical, planned, late, error = capsys.readouterr().out.splitlines()
    assert typical.startswith("typical / simulated, 1 plans")
    assert planned.startswith("planned / simulated, 1 plans")
    assert late == "1 plans say that not all of slo can be kept"
    assert error == belief_error()
