"""The difference between two plans that look alike: the same layouts on the same hardware, with other settings or on other nodes."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from plimsoll.planning.placing.placement import same_devices
from plimsoll.planning.plan import Hardware, Plan, PlanSet
from plimsoll.planning.settings import EngineSettings

_SETTINGS: Final = tuple(one.name for one in fields(EngineSettings))


def apart(fresh: Plan, plan: Plan) -> str:
    """Where the nodes, settings and predictions of a fresh plan differ from a plan's; empty where layouts or hardware differ already."""
    pairs = list(zip(fresh.sets, plan.sets, strict=False))
    if len(fresh.sets) != len(plan.sets) or any(_label(new) != _label(old) for new, old in pairs):
        return ""
    told = [(new, _differences(new, old)) for new, old in pairs if new.digest != old.digest]
    several = len(pairs) > 1
    parts = [
        (f"on {new.hardware} " if several else "") + ", ".join(changes) for new, changes in told if changes
    ]
    return "; ".join(parts)


def _label(one: PlanSet) -> tuple[str, str]:
    """What a person sees of a set: its layout and its hardware."""
    return str(one.layout), str(one.hardware)


def _nodes(new: Hardware, old: Hardware) -> str:
    """By which labels nodes are others, where they are."""
    if same_devices(new, old):
        return ""
    labels = [f"{key}={value}" for key, value in new.selector.items() if old.selector.get(key) != value]
    return f"nodes of {', '.join(labels)}" if labels else "other nodes"


def _differences(new: PlanSet, old: PlanSet) -> list[str]:
    values = [(name, getattr(new.settings, name), getattr(old.settings, name)) for name in _SETTINGS]
    nodes = _nodes(new.hardware, old.hardware)
    said = [nodes] if nodes else []
    said += [_changed(name, now, then) for name, now, then in values if now != then]
    up_to, how = "", ""
    if new.steady_per_second is not None and old.steady_per_second is not None:
        # Replicas are counted by this one, and reports tell it. Of typical requests alone a replica carries far more.
        now, then, how = new.steady_per_second, old.steady_per_second, " as users send them"
    elif new.most_per_second is not None and old.most_per_second is not None:
        now, then, up_to = new.most_per_second, old.most_per_second, "up to "
    elif new.performance is not None and old.performance is not None and new.load == old.load:
        # A plan of the release before knows nothing but this. At two loads it is two loads that would be compared.
        now, then = new.performance.requests_per_second, old.performance.requests_per_second
        how = " at its load"
    else:
        return said
    if f"{now:.2f}" != f"{then:.2f}":
        said.append(f"{up_to}{now:.2f} requests/s a replica{how} instead of {then:.2f}")
    return said


def _changed(name: str, new: object, old: object) -> str:
    """A changed setting in words; where its value is more than a number or a word, only its name."""
    words = [_word(new), _word(old)]
    return f"other {name}" if None in words else f"{name} {words[0]} instead of {words[1]}"


def _word(value: object) -> str | None:
    if value is None:
        return "unset"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value) if isinstance(value, int | str) else None
