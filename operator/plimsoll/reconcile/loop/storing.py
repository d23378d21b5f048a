"""When a record is worth a write to the cluster: there is one of each deployment, and an idle fleet is to cost no writes."""

from __future__ import annotations

import zlib
from typing import Final

from plimsoll.control.memory import RoleMemory
from plimsoll.control.record import Record
from plimsoll.control.retune import RetuneMemory

STORE_S: Final = 1800.0
"""What was only learned is stored once in so long at most, so a restart forgets half an hour of it."""
MOVED_S: Final = 60.0
"""Each further minute of a pause is noted, so that a program that begins after it does not count it as a canary's. Nothing is written until
it is over."""
CALM_S: Final = 3600.0
"""Each further hour of calm is worth a write: few deployments have a setting that waits to go back."""
DIGITS: Final = 2
"""Digits of a learned figure that are compared: what moved by less is not worth a write."""
MORE: Final = 1.05
"""Times a fading figure, beyond which it has grown by enough to be worth a write."""


def first_due(key: str, now: float) -> float:
    """When it is first stored: at another time for each deployment, so that a whole fleet is not stored at once."""
    return now + STORE_S * (zlib.crc32(key.encode()) / 2**32)


def matters(record: Record, stored: Record) -> bool:
    """Whether something was decided, or asked for by a person, that a restart must not forget."""
    new, old = record.retune, stored.retune
    return (
        (record.replicas, record.shares, record.acts, record.noted)
        != (stored.replicas, stored.shares, stored.acts, stored.noted)
        or (new.past, new.paused_at, new.held, _kept(new)) != (old.past, old.paused_at, old.held, _kept(old))
        or record.under_way != stored.under_way
        or _moved_s(record, stored) >= MOVED_S
    )


def _kept(retune: RetuneMemory) -> tuple[str, str] | None:
    """The change that is still watched, and of which set."""
    return None if retune.kept is None else (retune.kept.id, retune.kept.serves)


def _moved_s(record: Record, stored: Record) -> float:
    """By how many seconds the time of a retune was moved since it was stored, as in a pause."""
    new, old = record.retune.step, stored.retune.step
    return 0.0 if new is None or old is None else abs(new.deadline - old.deadline)


def taught(record: Record, stored: Record) -> bool:
    """Whether something was learned since it was stored. Figures that only faded with time are no news."""
    before = _fading(stored)
    return _lessons(record) != _lessons(stored) or any(
        value > MORE * before.get(name, 0.0) for name, value in _fading(record).items()
    )


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
    return (
        lengths,
        _rounded(seen.prefix_share),
        roles,
        retune.failures,
        retune.count,
        retune.suggestions,
        calm,
    )


def _learnt(role: RoleMemory) -> tuple[object, ...]:
    return tuple(
        (of, _rounded(each.concurrency), _rounded(each.points.n), _rounded(each.points.seconds))
        for of, each in sorted(role.learnt.items())
    )


def _fading(record: Record) -> dict[str, float]:
    """Figures that time alone makes smaller. Only a larger one is a lesson; a smaller one is stored along with the next."""
    seen = record.observed
    found = {"rate": seen.peak_rate or 0.0, "inflight": seen.peak_inflight or 0.0}
    for name, role in record.memory.roles.items():
        found[f"{name} bursts"] = role.load.burstiness - 1
        found |= {f"{name} {part}": rate for part, rate in enumerate(role.load.profile) if rate}
        # The limit on what a replica finishes fades by growing, so it is turned round.
        found |= {f"{name} {of}": 1 / each.most for of, each in role.learnt.items() if each.most}
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
