"""How long nobody asked: by the gateway's count, the wake annotation, and the engines' own. What a deployment may sleep by.

Where somebody would have to say and does not, somebody may be asking.
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
) -> Zero:
    """`queried`: the signal is a query, and `waiting` its answer; `asked_at` is what `last_asked` said at the tick before."""
    silent = queried and waiting is None
    # One that is seen at this very tick asks too, though nobody has reckoned with it yet.
    asked = None if asked_at is None else max(asked_at, woken_at or 0.0)
    idle = None if silent or asked is None or not reachable else max(0.0, now - asked)
    return Zero(after_s=after_s, waiting=waiting, silent=silent, woken_at=woken_at, idle_s=idle)


def last_asked(
    before: float | None,
    *,
    now: float,
    signals: Signals,
    waiting: float | None,
    noted_at: float | None,
    counts: bool,
) -> float:
    """When somebody last asked. An engine that says nothing may be busy, and so may one whose pages nobody could read.

    `counts`: its engine has a word for what it has done, beside what is in flight.
    """
    # What is to come was written before a clock was put back: it counts as of now.
    last = min(now, max(before or now, noted_at or 0.0))
    asked = (
        (waiting or 0.0) > 0
        or (signals.inflight or 0.0) > 0
        or any((_served(one) or 0.0) > 0 for one in signals.replicas)
    )
    silent = (
        not signals.reachable
        or len(signals.replicas) < signals.live
        or any(one.inflight is None or (counts and _served(one) is None) for one in signals.replicas)
    )
    return now if asked or silent else last


def _served(one: ReplicaSignals) -> float | None:
    """What it has gained lately; an engine that counts no requests counts their tokens."""
    return one.generation_tokens if one.recently is None else one.recently
