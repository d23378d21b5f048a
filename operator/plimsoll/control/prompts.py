"""How many requests a second may come before first tokens are late: learned from how long steps are.

A step takes a token for each answer under way and fills what is left of its budget with prompts, so steps grow longer the
more tokens come, and prompts queue once every step is full. What a step takes against the tokens in it is a straight line;
at a full step it says the most that a replica takes, which is so known before it is reached. How near to it
a replica may be follows from the limit itself: the wait in front of steps that are nearly always full grows with the variance
of what comes, which is seen as well, and the replicas that most connections found count, not the mean one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist
from types import MappingProxyType
from typing import Final

from plimsoll.control.copying import replace
from plimsoll.control.curve import NOTHING, Curve, Points, curve_of
from plimsoll.control.lateness import ALLOWED, AS_ALLOWED, PROMISED, TWICE, Lateness, late_share
from plimsoll.control.signals import LATENCY_S, RATE_S, RECENT_S, Signals
from plimsoll.control.situation import Capacity

PLAN_WEIGHT: Final = 0.1
"""Minutes that the plan's own prediction weighs as much as. So few, since it lies far from what is seen and so pulls hard on a line."""
EASE_MOST: Final = 30.0
"""Times the promised share of late first tokens that the formula may reckon with, where in fact hardly any are late."""
EASE_POWER: Final = 2
"""The power of (allowed share / late share) by which the formula is eased: with 1 half of what is allowed would never be used."""
WAIT_SHARE_LEAST: Final = 0.25
"""Share of the limit that is left for waiting, however long the longest prompts take to compute."""
FULL_LEAST, FULL_MOST = 0.30, 0.95
"""Bounds of how full steps may be: nearer to 1 any error in what was learned is a queue."""
FRESH_STEPS: Final = 20
"""In how many steps a share of prompts is told by a factor of e: each is 5% from the next."""
HALVINGS: Final = 8
"""How often the range between these bounds is halved, until what is left does not matter."""
SPREAD_WEIGHT, SKEW_WEIGHT = 1 / 30, 1 / 15
"""Weight of the newest minute."""
SKEW_FIRST, SKEW_MOST = 1.2, 2.0
BUSY_SHARE: Final = 0.2
"""The busiest replicas are as many as compute this share of all tokens; of five or fewer it is the busiest one alone. One of thirty to which
chance gave most connections lets few requests wait, and to ease it would take twice as many replicas."""
SPENT_MOST: Final = 2.0
"""Times what may be late, from which on still more of it asks for no more room."""
FEW: Final = 4.0
"""Requests in flight on a replica that are few for any replica: nobody would pay for fewer."""
LUMPS_FIRST: Final = 3.0
"""First belief about the variance of arriving tokens over their mean, in planned prompts: as of log-normal lengths with a long tail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMemory:
    points: Points = NOTHING
    """How long a step takes by the tokens in it: a point for the mean of each minute."""
    lumps: float | None = None
    """In tokens: the variance of the tokens that come to a replica, over their mean."""
    late: Lateness = TWICE
    """Of first tokens."""
    late_steady: Lateness = AS_ALLOWED
    """Of first tokens in those minutes alone in which the number of replicas stood still and none had a queue: an unforeseen rush says
    nothing of how busy a replica may be without one."""
    late_gaps: Lateness = AS_ALLOWED
    """Of gaps between tokens."""
    skew: float = SKEW_FIRST
    """Tokens of the busiest replicas, as a multiple of the mean replica's."""


_NORMAL: Final = NormalDist()
ALIKE: Final[Mapping[str, float]] = MappingProxyType({})
"""What replicas carry where each carries as much as any other."""
NOTHING_SEEN: Final = StepMemory()


def learned(
    memory: StepMemory,
    signals: Signals,
    capacity: Capacity,
    *,
    settled: bool,
    owing: bool,
    leaps: bool = False,
    ttft_s: float | None = None,
    itl_s: float | None = None,
    units: Mapping[str, float] = ALIKE,
) -> StepMemory:
    """The memory with what one more minute showed. `leaps`: the load does, which says nothing of how unevenly requests come at other times.
    `units`: what each replica carries, in replicas of the set that this is the memory of; one that is not named carries as much."""
    if (share := late_share(signals.latencies.ttft, ttft_s)) is not None:
        late = memory.late.against(ttft_s, TWICE).seen(share)
        calm = memory.late_steady.against(ttft_s, AS_ALLOWED)
        memory = replace(memory, late=late, late_steady=calm.seen(share) if settled and not owing else calm)
    full_s = step_s(most_tokens(memory, capacity), capacity)
    if (share := late_share(signals.latencies.itl, itl_s, full_s)) is not None:
        memory = replace(memory, late_gaps=memory.late_gaps.against(itl_s, AS_ALLOWED).seen(share))
    if settled and (point := _point(signals, units)) is not None:
        memory = replace(memory, points=memory.points.faded().add(*point))
    if owing:
        return memory
    if not leaps and (lumps := _lumps(signals)) is not None:
        before = _lumps_so_far(memory, capacity)
        memory = replace(memory, lumps=before + SPREAD_WEIGHT * (lumps - before))
    if (skew := _skew(signals, memory.lumps, units)) is not None:
        memory = replace(memory, skew=memory.skew + SKEW_WEIGHT * (min(SKEW_MOST, skew) - memory.skew))
    return memory


def most_tokens(memory: StepMemory, capacity: Capacity) -> float | None:
    """Tokens a second of one replica with every step full; None where neither the plan nor measurements tell."""
    line, budget = _line(memory, capacity), capacity.max_batched_tokens
    return None if line is None or not budget else budget / line.seconds(budget)


def _line(memory: StepMemory, capacity: Capacity) -> Curve | None:
    """Seconds of a step by the tokens in it."""
    budget, points = capacity.max_batched_tokens, memory.points
    if not budget:
        return None
    if (planned := _planned(capacity, budget)) is not None:
        points = points.add(*planned, weight=PLAN_WEIGHT)
    return curve_of(points, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """99th percentiles in seconds where a replica has only a few requests: no number of replicas makes them shorter."""

    ttft_s: float
    itl_s: float


def unloaded(memory: StepMemory, signals: Signals, capacity: Capacity) -> Unloaded | None:
    """Those of the present traffic; None where step times are not known. A long prompt is computed by itself, and the prompts of a few other
    requests cut into the gaps between an answer's tokens."""
    line, budget = _line(memory, capacity), capacity.max_batched_tokens
    if line is None or not budget:
        return None
    prompt, output = lengths_of(signals, capacity)
    seen = signals.latencies.prompt
    longest = fresh_share(signals) * (
        seen.p99 if seen is not None and seen.trusted else capacity.input_tokens
    )
    cuts_in = FEW * max(1.0, prompt // budget) > PROMISED * output
    return Unloaded(
        ttft_s=line.seconds(min(budget, longest)) * max(1.0, longest / budget),
        itl_s=line.seconds(min(budget, FEW + (prompt if cuts_in else 0.0))),
    )


def within_limit(
    memory: StepMemory,
    most: float,
    capacity: Capacity,
    signals: Signals,
    ttft_s: float,
    *,
    even: bool = False,
) -> float:
    """Share of the most at which the 99th percentile of first tokens still comes in time, on the busiest replicas.

    Each prompt may wait for as long as its own computing leaves of the limit. Few prompts are among the longest, and few of these meet
    the longest waits, so to take all prompts for the longest would leave replicas half empty. Where lengths spread over more than a
    factor of ten somewhat more are late than this says, as waits then have a longer tail than the formula's. `even`: as far as requests come
    no more unevenly than independent ones do.
    """
    lumps = _lumps_so_far(memory, capacity)
    if even:
        lumps = min(lumps, _lumps_so_far(NOTHING_SEEN, capacity))
    # What the cache has of a prompt is not computed. In steps, as each other share is another answer to work out.
    fresh = math.exp(round(FRESH_STEPS * math.log(fresh_share(signals))) / FRESH_STEPS)
    aim = _aim(memory.late_steady.against(ttft_s, AS_ALLOWED).share)
    about = (aim, max(1.0, fresh * lumps) / most / 2, most / fresh, ttft_s)
    prompt = signals.latencies.prompt
    if prompt is None or not prompt.trusted:
        full = _fullest(*about, ((1.0, capacity.input_tokens),))
    elif (known := prompt.worked_out.get(about)) is not None:
        full = known
    else:
        full = prompt.worked_out[about] = _fullest(*about, prompt.shares)
    # A single replica is no busier than the mean one.
    return full if signals.live == 1 else full / memory.skew


def _fullest(
    aim: float, unit: float, most: float, ttft_s: float, lengths: tuple[tuple[float, float], ...]
) -> float:
    """Share of the most at which the share `aim` of first tokens is late. Dear, so its answers are cached: the arguments change once a minute."""
    left = [
        (share, max(WAIT_SHARE_LEAST * ttft_s, ttft_s - tokens / most) / unit) for share, tokens in lengths
    ]

    def late(full: float) -> float:
        """The share of waits that are longer than t is full * exp(-2 (1 - full) t / variance of a second's work)."""
        return full * sum([share * math.exp((full - 1) * units) for share, units in left])

    full, step = FULL_LEAST, FULL_MOST - FULL_LEAST
    for _ in range(HALVINGS):
        step /= 2
        if late(full + step) <= aim:
            full += step
    return full


def _lumps_so_far(memory: StepMemory, capacity: Capacity) -> float:
    """As learned, else the first belief: the first minutes, in which all requests may come at once, are not believed alone."""
    return LUMPS_FIRST * capacity.input_tokens if memory.lumps is None else memory.lumps


def _aim(late: float) -> float:
    """Share of first tokens that the formula may reckon to be late: more than is promised where hours have shown it to be too dark.

    The formula is for the busiest replica at a rate that is seldom reached; over hours far fewer first tokens are really late.
    """
    eased: float = (ALLOWED / min(ALLOWED, max(ALLOWED / EASE_MOST, late))) ** EASE_POWER
    return PROMISED * min(EASE_MOST, eased)


def spent(memory: StepMemory, ttft_s: float | None) -> float:
    """How much was late over hours, as a share of what is allowed; up to a bound."""
    return min(SPENT_MOST, memory.late.against(ttft_s, TWICE).share / ALLOWED)


def tokens_each(lengths: tuple[float, float]) -> float:
    """Tokens that a request makes a replica compute."""
    return max(1.0, sum(lengths))


def step_s(most: float | None, capacity: Capacity) -> float:
    """Seconds of a full step; infinite where nobody knows."""
    budget = capacity.max_batched_tokens
    return budget / most if budget and most else math.inf


def longest_gap_s(memory: StepMemory, full_s: float, itl_s: float | None) -> float:
    """Seconds of the longest gap that any load makes: that of a full step; infinite where hours have shown that too many gaps are longer than
    promised. Steps that are full of the ends of long prompts last longer than the mean full step."""
    return full_s if memory.late_gaps.against(itl_s, AS_ALLOWED).share <= ALLOWED else math.inf


def lasting_gap_s(full_s: float, lengths: tuple[float, float], capacity: Capacity) -> float:
    """Seconds of the 99th percentile gap that is there at any load: a full step's, where a single prompt fills whole steps.

    Infinite where it takes several prompts together to fill a step, as fewer requests on a replica then do so less often; and where
    nothing is known.
    """
    budget, (prompt, output) = capacity.max_batched_tokens, lengths
    return full_s if budget and FEW * (prompt // budget) > PROMISED * output else math.inf


def lengths_of(signals: Signals, capacity: Capacity) -> tuple[float, float]:
    """Tokens of a prompt without what was cached, and of an answer: as seen, else as planned."""
    prompt, output = signals.latencies.prompt, signals.latencies.output
    given = prompt.mean if prompt is not None and prompt.trusted else None
    asked = output.mean if output is not None and output.trusted else None
    return (
        fresh_share(signals) * (capacity.input_tokens if given is None else given),
        capacity.output_tokens if asked is None else asked,
    )


def fresh_share(signals: Signals) -> float:
    """Share of prompt tokens that the prefix cache does not have, so that they are computed."""
    return 1 - min(0.95, max(0.0, signals.prefix_share or 0.0))


def _planned(capacity: Capacity, budget: int) -> tuple[float, float] | None:
    """Tokens in a step of the plan's highest rate and how long it takes, by Little's law of its requests in flight."""
    rate, running = capacity.requests_per_second, capacity.concurrency
    if not rate or not running:
        return None
    tokens = rate * ((1 - capacity.cached_share) * capacity.input_tokens + capacity.output_tokens)
    # Each request that runs has one token in a step. The prediction counts those that wait for a place too, so no step is taken to hold more
    # than it may.
    seconds = min(running / (rate * capacity.output_tokens), budget / tokens)
    return tokens * seconds, seconds


def _point(signals: Signals, units: Mapping[str, float]) -> tuple[float, float] | None:
    """Over the five minutes that latencies look back: tokens in a step, and its length, the gap between two tokens.

    One that carries four times as much computes four times as many tokens a second, in steps that last a quarter as long: so what all compute
    is divided by all that they carry, and not by their number.
    """
    gaps, prompt = signals.latencies.itl, signals.latencies.prompt
    if gaps is None or prompt is None or not (gaps.trusted and prompt.trusted) or not signals.replicas:
        return None
    if not signals.latencies.whole:
        return None
    if not gaps.mean or prompt.mean is None:
        return None
    tokens = gaps.samples + fresh_share(signals) * prompt.mean * prompt.samples
    carry = sum(units.get(each.replica, 1.0) for each in signals.replicas)
    return tokens / LATENCY_S / carry * gaps.mean, gaps.mean


def _lumps(signals: Signals) -> float | None:
    """Prompt tokens of half a minute against those of two, replica by replica."""
    said = []
    for each in signals.replicas:
        if not each.prompt_tokens or each.recent_prompt_tokens is None:
            continue
        if each.span_s < RATE_S or not RECENT_S <= each.recent_span_s <= each.span_s / 2:
            continue  # scrapes are missing, so that the half minute is nearly as long as the two minutes
        share = each.recent_span_s / each.span_s
        mean = each.prompt_tokens * share
        # The half minute is part of the two minutes that it is held against, which hides its share of the variance.
        said.append((each.recent_prompt_tokens - mean) ** 2 / mean / (1 - share))
    return sum(said) / len(said) if said else None


def _skew(signals: Signals, lumps: float | None, units: Mapping[str, float]) -> float | None:
    """How much more of what they carry the busiest replicas compute than all do in the mean, without the part that is chance: of many
    replicas some are always the busiest."""
    said = sorted(
        (tokens / carries, tokens, carries)
        for each in signals.replicas
        if each.prompt_tokens is not None and each.span_s >= RATE_S
        for tokens in (each.prompt_tokens + (each.generation_tokens or 0.0),)
        for carries in (units.get(each.replica, 1.0),)
    )
    whole, live = sum(tokens for _, tokens, _ in said), len(said)
    mean = whole / sum(carries for *_, carries in said) if said else 0.0
    if live < 2 or mean <= 0:
        return None
    reach = accumulate(tokens for _, tokens, _ in reversed(said))
    busiest = 1 + next(place for place, tokens in enumerate(reach) if tokens >= BUSY_SHARE * whole)
    chance = (
        sum(_NORMAL.inv_cdf((live - place - 0.375) / (live + 0.25)) for place in range(busiest)) / busiest
    )
    carried = sum(carries for *_, carries in said[-busiest:])
    by_chance = chance * math.sqrt((lumps or 0.0) * mean * busiest / carried)
    return max(1.0, (sum(tokens for _, tokens, _ in said[-busiest:]) / carried - by_chance) / mean)
