"""What sets two plans apart that look alike: the same layouts on the same hardware, with other settings."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.planning.settings import EngineSettings

_NAMES: Final = tuple(one.name for one in fields(EngineSettings))


def apart(fresh: Plan, plan: Plan) -> str:
    """What sets of the fresh plan are told and planned for otherwise; empty where layouts and hardware say it already."""
    pairs = list(zip(fresh.sets, plan.sets, strict=False))
    if len(fresh.sets) != len(plan.sets) or any(_look(new) != _look(old) for new, old in pairs):
        return ""
    told = [(new, _otherwise(new, old)) for new, old in pairs if new.digest != old.digest]
    several = len(pairs) > 1
    parts = [
        (f"on {new.hardware} " if several else "") + ", ".join(changes) for new, changes in told if changes
    ]
    return "; ".join(parts)


def _look(one: PlanSet) -> tuple[str, str]:
    return str(one.layout), str(one.hardware)


def _otherwise(new: PlanSet, old: PlanSet) -> list[str]:
    pairs = [(name, getattr(new.settings, name), getattr(old.settings, name)) for name in _NAMES]
    said = [_changed(name, one, other) for name, one, other in pairs if one != other]
    if new.performance is not None and old.performance is not None:
        now, then = new.performance.requests_per_second, old.performance.requests_per_second
        if f"{now:.2f}" != f"{then:.2f}":
            said.append(f"{now:.2f} requests/s a replica instead of {then:.2f}")
    return said


def _changed(name: str, new: object, old: object) -> str:
    """What is more than a number or a word has no short form."""
    words = [_word(new), _word(old)]
    return f"other {name}" if None in words else f"{name} {words[0]} instead of {words[1]}"


def _word(value: object) -> str | None:
    if value is None:
        return "unset"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value) if isinstance(value, int | str) else None
