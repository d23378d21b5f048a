"""How long nobody has asked a deployment for anything, which decides whether it may sleep.

It is told by the gateway's count, the wake annotation and the engines' own counts. Where one of them should say and does not, somebody
may be asking.
"""

from __future__ import annotations

from plimsoll.control.signals import ReplicaSignals, Signals
from plimsoll.control.situation import Zero


def wake_of(
    *,
    now: float,
    after_s: float,
    queried: bool,
    waiting: float | None,
    woken_at: float | None,
    asked_at: float | None,
    reachable: bool,
    unsaid: bool = False,
) -> Zero:
    """What is known of sleep and waking. `queried`: the wake signal is a query, and `waiting` its answer; `asked_at` is what `last_asked` says
    now, where it has said something before, and `unsaid` what `is_unsaid` says now."""
    silent = queried and waiting is None
    # An annotation that was written since then counts as asking too.
    asked = None if asked_at is None else max(asked_at, woken_at or 0.0)
    idle = None if silent or asked is None or not reachable else max(0.0, now - asked)
    return Zero(
        after_s=after_s, waiting=waiting, silent=silent, woken_at=woken_at, idle_s=idle, unsaid=unsaid
    )


def last_asked(
    before: float | None,
    *,
    now: float,
    signals: Signals,
    waiting: float | None,
    noted_at: float | None,
    counts: bool,
) -> float:
    """When somebody last asked. An engine that says nothing may be busy, and so may one whose metrics could not be read.

    `counts`: the engine exports what it has done, and not only what is in flight.
    """
    # A moment that is still to come was noted before a clock was put back: it counts as now.
    last = min(now, max(before or now, noted_at or 0.0))
    asked = (
        (waiting or 0.0) > 0
        or (signals.inflight or 0.0) > 0
        or any((_served(one) or 0.0) > 0 for one in signals.replicas)
    )
    return now if asked or is_unsaid(signals, counts=counts) else last


def is_unsaid(signals: Signals, *, counts: bool) -> bool:
    """Whether a replica does not say whether it is asked for anything."""
    return (
        not signals.reachable
        or len(signals.replicas) < signals.live
        or any(one.inflight is None or (counts and _served(one) is None) for one in signals.replicas)
    )


def _served(one: ReplicaSignals) -> float | None:
    """What the replica was asked for lately: requests that arrived, and tokens of prompts, as engines count no request that its client gave up;
    or tokens of answers where neither is counted."""
    said = [count for count in (one.recently, one.recent_prompt_tokens) if count is not None]
    return max(said) if said else one.generation_tokens
