"""How soon the first token of a request can come at best, when it is alone on a replica: no policy and no number of replicas beats that.

Where prompts are so long that this breaks the limit already, it says nothing of how well a policy decides; reports tell it apart.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil

from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.steps import Limits, StepTimes
from plimsoll.simulate.world import Site, World


def first_token_s(times: StepTimes, limits: Limits, tokens: int) -> float:
    """Seconds until the first token of a prompt of which nothing is cached."""
    chunks = ceil(tokens / limits.max_num_batched_tokens)
    return times.prompt(tokens, chunks=chunks) + times.outside(tokens, 0, beside=1)


def longest_in_time(world: World) -> int | None:
    """Tokens of the longest prompt whose first token can keep its limit, on the fastest set; None where there is no limit."""
    limit = world.slo.ttft_p99_s
    if limit is None:
        return None
    return max(_longest(site, limit) for site in world.sites)


def _longest(site: Site, limit: float) -> int:
    lengths = range(1, site.limits.max_model_len)
    return bisect_right(lengths, limit, key=lambda tokens: first_token_s(site.times, site.limits, tokens))


def refused_from(world: World) -> int:
    """Tokens of the shortest prompt that all replicas refuse."""
    return max(one.limits.max_model_len for one in world.sites)


def late_from(world: World) -> int:
    """Tokens of the shortest prompt whose first token is late at best, or that is refused."""
    longest, refused = longest_in_time(world), refused_from(world)
    return refused if longest is None else min(longest + 1, refused)


def beyond_reach(arrivals: Arrivals, world: World) -> int:
    """How many requests cannot have their first token in time, unless the beginning of their prompt is cached. Prompts that engines refuse
    are not counted."""
    least, refused = late_from(world), refused_from(world)
    return sum(least <= tokens < refused for tokens in arrivals.inputs)


def refused(arrivals: Arrivals, world: World) -> int:
    """How many prompts no replica takes."""
    least = refused_from(world)
    return sum(tokens >= least for tokens in arrivals.inputs)
