"""The first token of a request that nobody is beside: no number of replicas, and no policy, gives it sooner.

A promise that the longest prompts break by themselves is no measure of who decides the replicas, so reports tell it apart.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.steps import Limits, StepTimes
from plimsoll.simulate.world import Site, World


def first_token_s(times: StepTimes, limits: Limits, tokens: int) -> float:
    """Of a prompt of which nothing is cached."""
    chunks = ceil(tokens / limits.max_num_batched_tokens)
    computing = chunks * times.chunk + tokens * (times.prompt_token + times.seen_token * tokens / 2)
    return computing + times.request + times.request_token * tokens + times.request_beside


def longest_in_time(world: World) -> int | None:
    """Tokens of the longest prompt whose first token can keep its limit, on the set that is best at it; None where none is promised."""
    limit = world.slo.ttft_p99_s
    if limit is None:
        return None
    return max(_longest(site, limit) for site in world.sites)


def _longest(site: Site, limit: float) -> int:
    lengths = range(1, site.limits.max_model_len)
    return bisect_right(lengths, limit, key=lambda tokens: first_token_s(site.times, site.limits, tokens))


def beyond_reach(arrivals: Arrivals, world: World) -> int:
    """Requests whose first token cannot be in time, unless the beginning of their prompt is cached; those refused are none of them."""
    longest = longest_in_time(world)
    if longest is None:
        return 0
    return sum(longest < tokens < world.limits.max_model_len for tokens in arrivals.inputs)
