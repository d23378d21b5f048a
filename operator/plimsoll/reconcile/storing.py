"""What of a record is worth a write: each one is a write to every deployment of a fleet, and idle ones are to cost none."""

from __future__ import annotations

import zlib
from typing import Final

from plimsoll.control.memory import RoleMemory
from plimsoll.control.record import Record

STORE_S: Final = 1800.0
"""What was only learned is stored so often at most: a restart then forgets half an hour of it."""
CALM_S: Final = 3600.0
"""Of calm are worth a write: few deployments have a setting that may go back."""
DIGITS: Final = 2
"""Of a figure that was learned; what moved by less is not worth a write."""
MORE: Final = 1.05


def first_due(key: str, now: float) -> float:
    """Spread, so that a fleet that was loaded at once is not stored at once."""
    return now + STORE_S * (zlib.crc32(key.encode()) / 2**32)


def matters(record: Record, stored: Record) -> bool:
    """Whether something was decided, or asked for by a person, that a restart must not forget."""
    new, old = record.retune, stored.retune
    return (
        (record.replicas, record.shares, record.acts, record.noted)
        != (stored.replicas, stored.shares, stored.acts, stored.noted)
        or (new.past, new.paused_at, new.held) != (old.past, old.paused_at, old.held)
        or _step(record) != _step(stored)
    )


def taught(record: Record, stored: Record) -> bool:
    """Whether something was learned since; that time went by is nothing new."""
    before = _fading(stored)
    return _lessons(record) != _lessons(stored) or any(
        value > MORE * before.get(name, 0.0) for name, value in _fading(record).items()
    )


def _step(record: Record) -> tuple[object, ...] | None:
    step = record.retune.step
    return None if step is None else (step.id, step.phase, step.rolled)


def _lessons(record: Record) -> tuple[object, ...]:
    seen, retune = record.observed, record.retune
    lengths = tuple(
        (_rounded(one.p50), _rounded(one.p95), _rounded(one.p99))
        for one in (seen.prompt, seen.output)
        if one is not None
    )
    roles = tuple(
        (name, role.ready, role.zero_at, role.woken_at, role.starts, _learnt(role))
        for name, role in sorted(record.memory.roles.items())
    )
    # A setting goes back after a day of calm, of which a restart is to forget little.
    calm = None if record.calm_s is None else record.calm_s // CALM_S
    return lengths, _rounded(seen.prefix_share), roles, retune.failures, retune.count, retune.suggested, calm


def _learnt(role: RoleMemory) -> tuple[object, ...]:
    return tuple(
        (of, _rounded(each.concurrency), _rounded(each.points.n), _rounded(each.points.seconds))
        for of, each in sorted(role.learnt.items())
    )


def _fading(record: Record) -> dict[str, float]:
    """What time alone makes smaller: only more of it is a lesson, and less is stored with the next one."""
    seen = record.observed
    found = {"rate": seen.peak_rate or 0.0, "inflight": seen.peak_inflight or 0.0}
    for name, role in record.memory.roles.items():
        found[f"{name} bursts"] = role.load.burstiness - 1
        found |= {f"{name} {part}": rate for part, rate in enumerate(role.load.profile) if rate}
        # The most that a replica finishes grows where it fades.
        found |= {f"{name} {of}": 1 / each.most for of, each in role.learnt.items() if each.most}
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
