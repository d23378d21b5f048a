"""Targets that nothing keeps: what is planned then, and what is said of it."""

import re

import pytest

from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.plan import Outcome
from tests.planning.asking import LLAMA, deployment, finding, planned, pool, reasons

MODEST = {"requestsPerSecond": "10", "inputTokens": {"p50": 512}, "outputTokens": {"p50": 256}}
FLEET = (pool(nodes=1), pool("L4-24GB", 1, 16))


def asking(**slo):
    return planned(deployment(LLAMA, workload=MODEST, slo=slo), *FLEET)


def test_a_target_that_can_be_kept_is_kept_beside_one_that_cannot():
    made = asking(ttftP99Ms=500, itlP99Ms=1)
    (chosen,) = made.sets
    assert chosen.performance.ttft_ms.high <= 500
    without = asking(itlP99Ms=1)
    assert chosen.max_concurrency < without.sets[0].max_concurrency, "first tokens in time limit what runs"
    assert {value.name: value.source for value in made.values}["max_queued_requests"] == "slo.ttftP99Ms"


@pytest.mark.parametrize(
    ("slo", "missed", "kept"),
    [
        ({"ttftP99Ms": 500, "itlP99Ms": 1}, "slo.itlP99Ms", "slo.ttftP99Ms"),
        ({"ttftP99Ms": 5, "itlP99Ms": 60}, "slo.ttftP99Ms", "slo.itlP99Ms"),
    ],
)
def test_the_target_that_cannot_be_kept_is_named_with_what_was_asked_and_what_is_kept(slo, missed, kept):
    made = asking(**slo)
    found = finding(made, UNATTAINABLE)
    assert (found.field, found.value) == (missed, str(slo[missed.removeprefix("slo.")]))
    assert f"{missed} {found.value}" in found.message
    assert found.message.endswith(f"and keeps {kept}")
    assert missed in found.remedy
    assert made.sets[0].meets_slo is False


@pytest.mark.parametrize("slo", [{"itlP99Ms": 1}, {"ttftP99Ms": 5}, {"ttftP99Ms": 500, "itlP99Ms": 1}])
def test_the_target_that_would_help_is_kept_when_it_is_asked_for(slo):
    found = finding(asking(**slo), UNATTAINABLE)
    name, least = found.field.removeprefix("slo."), least_of(found)
    # It may take more of the same GPUs.
    asked = deployment(LLAMA, workload=MODEST, slo=slo | {name: least})
    again = planned(asked, pool(nodes=4), FLEET[1])
    assert UNATTAINABLE not in reasons(again)
    assert again.sets[0].meets_slo is True


LONG = {"requestsPerSecond": "1", "inputTokens": {"p50": 4000}, "outputTokens": {"p50": 16}}


@pytest.mark.parametrize("slo", [{"ttftP99Ms": 114, "itlP99Ms": 24}, {"ttftP99Ms": 123, "itlP99Ms": 8}])
def test_where_one_target_is_kept_only_without_the_other_no_figure_says_that_both_are(slo):
    """Steps that are short enough for those who wait for their next token compute a long prompt too slowly."""
    found = finding(planned(deployment(LLAMA, workload=LONG, slo=slo), *FLEET), UNATTAINABLE)
    assert found.field == "slo.itlP99Ms"
    assert "predicted" not in found.message
    assert "too short for slo.ttftP99Ms" in found.message
    assert least_of(found) > slo["itlP99Ms"]
    again = planned(deployment(LLAMA, workload=LONG, slo=slo | {"itlP99Ms": least_of(found)}), *FLEET)
    assert UNATTAINABLE not in reasons(again)


def test_of_two_targets_that_are_missed_the_remedy_is_one_that_helps():
    fleet = (pool("L4-24GB", 4, 4), pool("A100-SXM-80GB", 4, 2))
    asked = {"ttftP99Ms": 26, "itlP99Ms": 3}
    found = finding(planned(deployment(LLAMA, workload=LONG, slo=asked), *fleet), UNATTAINABLE)
    said = re.findall(r"slo\.(\w+) of ([\d,]+) or more", found.remedy)
    least = {name: int(figure.replace(",", "")) for name, figure in said}
    assert least.keys() == asked.keys()
    again = planned(deployment(LLAMA, workload=LONG, slo=least), *fleet)
    assert UNATTAINABLE not in reasons(again)


def test_where_no_target_can_be_kept_all_are_named():
    found = finding(asking(ttftP99Ms=5, itlP99Ms=1), UNATTAINABLE)
    assert (found.field, found.value) == ("slo", None)
    assert "slo.ttftP99Ms 5" in found.message
    assert "slo.itlP99Ms 1" in found.message
    assert found.message.endswith("planned all the same")


def test_targets_that_only_together_are_too_much_lose_the_one_that_is_missed_by_less():
    first = least_of(finding(asking(ttftP99Ms=1), UNATTAINABLE))
    gaps = least_of(finding(asking(itlP99Ms=1), UNATTAINABLE))
    made = asking(ttftP99Ms=first, itlP99Ms=gaps)
    if UNATTAINABLE in reasons(made):
        assert finding(made, UNATTAINABLE).field in ("slo.itlP99Ms", "slo.ttftP99Ms")


def least_of(found):
    return int(re.findall(r"of ([\d,]+) or more", found.remedy)[0].replace(",", ""))


def test_what_fits_only_in_the_short_steps_of_a_target_that_it_misses_does_not_fit():
    """The pool holds a request of 37,568 tokens, and a little more where steps are short. Nothing is left to choose then, neither with the
    target nor without."""
    lengths = {"inputTokens": {"p50": 38_300}, "outputTokens": {"p50": 100}, "contextTokens": 38_400}
    asked = deployment(
        "Qwen/Qwen3-8B",
        workload={**lengths, "requestsPerSecond": "0.5"},
        slo={"ttftP99Ms": 2000, "itlP99Ms": 100},
    )
    made = planned(asked, pool("L4-24GB", 1, 1))
    assert (made.outcome, made.sets) == (Outcome.DOES_NOT_FIT, ())
    assert made.nearest is not None
    assert "which would do for 37568 tokens at most" in finding(made, "DoesNotFit").message
