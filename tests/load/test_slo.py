"""Targets as people write them."""

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.slo import Promise, Slo, parse_slo


@pytest.mark.parametrize(
    ("text", "slo"),
    [
        ("ttft=1000,itl=50", Slo(ttft=1000, itl=50)),
        ("ttft:1000 tpot:7.5", Slo(ttft=1000, tpot=7.5)),
        ("e2e=30000", Slo(e2e=30000)),
    ],
)
def test_targets_are_read(text: str, slo: Slo):
    assert parse_slo(text) == slo


@pytest.mark.parametrize("text", ["", "ttft", "ttft=", "ttft=0", "ttft=fast", "latency=5", "ttft=1s"])
def test_a_wrong_target_says_how_to_write_one(text: str):
    with pytest.raises(LoadError, match=r"--slo: .*; write "):
        parse_slo(text)


@pytest.mark.parametrize(("within", "kept"), [(None, None), (0.99, True), (0.9899, False), (1.0, True)])
def test_a_promise_is_for_99_of_100(within: float | None, kept: bool | None):
    assert Promise(name="itl", target_ms=50, within=within).kept is kept
