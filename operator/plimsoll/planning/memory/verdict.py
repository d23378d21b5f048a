"""Whether an engine starts, judged by the ends of the interval, with a sentence that names the figures and what would change them.

It fits when even the unfavourable end leaves room for one longest request, and does not fit when even the favourable end leaves
none; in between the verdict is tight. A failed start is costly, so doubts that no figure settles (graphs outside the budget, a device
that is taken nearly whole) make a verdict tight.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.facts.gpus import GIB, Vendor
from plimsoll.planning.interval import Interval
from plimsoll.planning.memory import overheads
from plimsoll.planning.memory.kv_groups import CachePlan
from plimsoll.planning.memory.situation import Estimate, Situation, gib_text

CONTEXT_AT_START: Final = 0.4 * GIB
"""Bytes of a device that the driver and the process take before the engine looks at what is free."""
HIGH_SHARE: Final = 0.95
"""Utilization above which the risk of running out of memory is moderate at least."""


class Verdict(StrEnum):
    FITS = "fits"
    """It starts even at the unfavourable end of the interval."""
    TIGHT = "tight"
    """It starts at one end of the interval and not at the other, or there is a doubt that no figure settles."""
    DOES_NOT_FIT = "does not fit"


class OomRisk(StrEnum):
    """How likely the engine is to run out of memory."""

    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"
    CERTAIN = "certain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The figures that decide, in bytes, of the rank that limits all others."""

    budget: int
    need: float
    """Bytes that go to weights and overheads."""
    spread: float
    """By how much `need` may be off."""
    graphs: Estimate
    pool: Interval
    """Bytes left for the cache; negative where the rest does not fit itself."""
    blocks: Interval
    """Blocks that the cache then has."""


@dataclass(frozen=True, slots=True)
class Judged:
    verdict: Verdict
    risk: OomRisk
    reason: str


def judge(now: Situation, plan: CachePlan, room: Room) -> Judged:
    """The verdict, with a sentence that names the figures that decided."""
    figures = (
        f"{gib_text(room.need)} (up to {gib_text(room.need + room.spread)}) of {gib_text(room.budget)} "
        f"go to weights and overheads"
    )
    fixed = now.settings.kv_cache_bytes
    if fixed is not None and room.need - room.spread + fixed > room.budget:
        return _does_not(f"{figures}, which leaves no room for the fixed pool of {gib_text(fixed)}")
    asked = _asked(now, plan)
    if not _starts(now, plan, room.pool.high, room.blocks.high):
        return _does_not(f"{figures}; {asked}, {_instead(now, plan, room)}")
    left = f"{asked}, and between {_range(room.pool)} are left"
    doubts = [] if _starts(now, plan, room.pool.low, room.blocks.low) else [left]
    if fixed is not None and room.need + room.spread + fixed > room.budget:
        doubts.append(f"with the fixed pool of {gib_text(fixed)} the upper end is above the budget")
    doubts += _beyond(now, room)
    if doubts:
        return Judged(Verdict.TIGHT, OomRisk.HIGH, f"{figures}; {'; '.join(doubts)}")
    return Judged(Verdict.FITS, _risk(now, room), f"{figures}; {left}")


def _does_not(reason: str) -> Judged:
    return Judged(Verdict.DOES_NOT_FIT, OomRisk.CERTAIN, reason)


def _asked(now: Situation, plan: CachePlan) -> str:
    if not plan.groups:
        return "the model keeps no cache"
    length = now.settings.max_model_len
    return f"one request of {length} tokens needs {gib_text(plan.bytes_for(length))} of cache"


def _starts(now: Situation, plan: CachePlan, left: float, blocks: float) -> bool:
    if not plan.groups:
        return left >= 0
    return plan.admits(int(blocks), now.settings.max_model_len, now.settings.max_num_seqs)


def _instead(now: Situation, plan: CachePlan, room: Room) -> str:
    """A clause that says how much there is instead of what is needed, and what would make it fit."""
    if room.pool.high <= 0:
        return f"and {gib_text(-room.pool.mid)} are missing before any cache"
    if plan.has_state and now.settings.max_num_seqs > room.blocks.high:
        return f"and max_num_seqs must be at most {int(room.blocks.high)}, the blocks that states have"
    longest = plan.longest(int(room.blocks.high), now.settings.max_model_len)
    return f"between {_range(room.pool)} are left, which would do for {longest} tokens at most"


def _beyond(now: Situation, room: Room) -> list[str]:
    """Doubts about the memory outside the budget: it must hold what the driver takes, and graphs where the budget does not count them."""
    if now.gpu.vendor is Vendor.CPU or now.settings.kv_cache_bytes is not None:
        return []
    beyond = now.device_bytes - room.budget
    graphs = room.graphs.bytes + room.graphs.spread
    if not overheads.graphs_counted(now) and graphs > beyond:
        return [f"graphs of up to {gib_text(graphs)} come out of {gib_text(beyond)} outside the budget"]
    if beyond < CONTEXT_AT_START:
        return [
            f"only {gib_text(beyond)} stay outside the budget, less than the driver takes before the start"
        ]
    return []


def _risk(now: Situation, room: Room) -> OomRisk:
    beyond = now.device_bytes - room.budget
    uncounted = not overheads.graphs_counted(now) and room.graphs.bytes * 2 > beyond
    return OomRisk.MODERATE if uncounted or now.settings.utilization > HIGH_SHARE else OomRisk.LOW


def _range(pool: Interval) -> str:
    return f"{gib_text(max(0.0, pool.low))} and {gib_text(max(0.0, pool.high))}"
