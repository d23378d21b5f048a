"""What is proposed to be declared: a context where prompts do not fit, and with what the plan for it would miss."""

from dataclasses import replace
from math import inf

import pytest

from plimsoll.control.latencies import Spread
from plimsoll.control.workload import Lengths, better_declaration
from plimsoll.facts.histograms import Histogram
from tests.control.test_workload import DECLARED, SEEN, Planner, _Plan


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
