"""What is proposed to be declared: a context where prompts do not fit, and with what the plan for it would miss."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.latencies import Spread
from plimsoll.control.workload import Lengths, better_declaration
from plimsoll.facts.histograms import Histogram
from plimsoll.planning.plan import Plan
from tests.control.test_workload import DECLARED, SEEN, SHORT, Planner, _Plan
from tests.planning.asking import LLAMA, deployment, finding, planned


def test_prompts_that_do_not_fit_into_the_declared_context_have_a_larger_one_proposed():
    declared = DECLARED.model_copy(update={"context_tokens": 8192})
    long = replace(SEEN, prompt=Lengths(p50=900, p95=11_000, p99=14_000))
    told = better_declaration(long, declared, _Plan(3000), Planner())  # type: ignore[arg-type]
    assert told is not None
    assert "contextTokens 15000, inputTokens p50 900, p95 11000, p99 14000" in told.message
    near = replace(SEEN, prompt=Lengths(p50=900, p95=8_120, p99=8_150))
    told = better_declaration(near, declared, _Plan(3000), Planner())  # type: ignore[arg-type]
    assert told is not None
    assert "with inputTokens p50 900, p95 8191, p99 8191" in told.message
    some = replace(SEEN, prompt=Lengths(p50=900, p95=8_120, p99=8_300))
    told = better_declaration(some, declared, _Plan(3000), Planner())  # type: ignore[arg-type]
    assert told is not None
    assert "with contextTokens 9100, inputTokens p50 900, p95 8200, p99 8300" in told.message


@pytest.mark.parametrize("context", [4096, 5000, 16_384])
def test_live_prompts_ask_for_no_larger_context_as_engines_count_none_that_does_not_fit(context: int):
    """Bounds of vLLM are 1, 2 and 5 times powers of ten, up to its context. It refuses longer prompts, and those above the last bound count as
    no longer than that."""
    bounds = [
        float(step * 10**power) for power in range(5) for step in (1, 2, 5) if step * 10**power <= context
    ]
    within = [1000.0 if bound == context else 0.0 for bound in bounds]
    longest = Spread.of(Histogram((*bounds, inf), (*within, 1000.0), 900_000.0))
    assert longest is not None
    seen = replace(SEEN, prompt=Lengths(p50=longest.p50, p95=longest.p95, p99=longest.p99))
    planner = Planner()
    declared = DECLARED.model_copy(update={"context_tokens": context})
    better_declaration(seen, declared, _Plan(3000), planner)  # type: ignore[arg-type]
    assert [one.context_tokens for one in planner.asked] == [context]


@pytest.mark.parametrize(
    ("spec", "rate", "missing"),
    [
        ({"scaling": {"max": 12}}, 60, ()),
        ({"scaling": {"max": 2}}, 130, ("LoadAboveMax",)),
        ({"scaling": {"max": 40}}, 200, ("NoGPUs",)),
        ({"scaling": {"max": 16}, "topology": {"tensor": 1}, "slo": {"ttftP99Ms": 150}}, 2, ("PartlyAttainable",)),
        ({"scaling": {"max": 1}, "topology": {"tensor": 1}, "slo": {"ttftP99Ms": 150}}, 60, ("LoadAboveMax", "PartlyAttainable")),
    ],
    ids=["enough", "scaling.max", "GPUs", "late", "two of them"],
)  # fmt: skip
def test_a_plan_that_is_not_enough_for_the_traffic_is_told_with_what_it_misses(
    spec: dict[str, Any], rate: float, missing: tuple[str, ...]
):
    """By the real planner. Who declares what nothing carries may have fewer served in time than before, so it is not told as a cure."""
    made: list[Plan] = []

    def plan_for(workload: Workload) -> Plan:
        made.append(planned(deployment(LLAMA, workload=workload.to_dict(), **spec)))
        return made[-1]

    declared = Workload.model_validate({**SHORT, "contextTokens": 4096, "requestsPerSecond": "2"})
    prompt, output = Lengths(p50=2000, p95=3800, p99=4300), Lengths(p50=300, p95=600, p99=900)
    seen = replace(SEEN, prompt=prompt, output=output, peak_rate=rate)
    told = better_declaration(seen, declared, plan_for(declared), plan_for)
    assert told is not None
    found = [finding(made[-1], reason) for reason in missing]
    _, _, said = told.message.partition("; that alone is not enough: ")
    assert said == "; ".join(f"{one.message} (what helps: {one.remedy})" for one in found)
