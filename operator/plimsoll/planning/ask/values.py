"""How a decided value is written down for `explain`, and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.plan import Origin, Value


def explained(
    name: str,
    value: str,
    formula: str,
    *,
    origin: Origin,
    source: str,
    changes: str,
    field: str | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Value:
    return Value(
        name=name,
        field=field,
        value=value,
        formula=formula,
        inputs=dict(inputs or {}),
        origin=origin,
        source=source,
        changes=changes,
    )


def counted(number: int, noun: str) -> str:
    """1 replica, 2 replicas."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def as_set(intent: Intent, name: str, field: str, value: str) -> Value:
    """A value that somebody has set: the user, a preset, or a default of the namespace."""
    origin, source = intent.source_of(field)
    return explained(name, value, "as set", origin=origin, source=source, changes=field, field=field)
