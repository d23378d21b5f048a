"""What Grafana shows as the JSON of a panel's data: frames, each with a column of times and columns of numbers, as its CSV has them.

One frame, a list of them, the series of a panel, or what its API answers to a query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final, TypeGuard

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_forms import FORMS, columns_of
from plimsoll.load.trace_rates import MOST_COUNT, RateColumns, unit_named
from plimsoll.load.trace_values import Row, short

NAMED: Final = 3
"""Series that are told by their names."""
TIME: Final = "Time"
_BEGINS: Final = re.compile(
    r'\s*(?:\[?\s*\{\s*"schema"\s*:\s*\{|\{\s*"state"\s*:\s*"\w+"\s*,.*?"series"\s*:\s*\[|\{\s*"series"\s*:\s*\[\s*\{\s*"schema"'
    r'|\{\s*"results"\s*:\s*\{\s*"\w+"\s*:\s*\{.*?"(?:frames|error)"\s*:)',
    re.DOTALL,
)
_NO_UNIT: Final = ("", "none", "short", "sishort", "locale", "string")
"""Units that say how a number is written, and not what it is of."""
_OPERATIONS: Final = {"ops": "ops/s", "opm": "ops/min"}
_UNNAMED: Final = ("", "value")
"""Names of numbers that are called by their labels."""


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    unit: str
    times: Sequence[object]
    """In ms since 1970."""
    values: Sequence[object]

    @property
    def per_second(self) -> float | None:
        """What a number of 1 is in requests a second; None where the unit does not say it."""
        return unit_named(_OPERATIONS.get(self.unit, self.unit))


def begins_frames(text: str) -> bool:
    """Whether a document that begins so is of frames."""
    return _BEGINS.match(text) is not None


def table_of(text: str, name: str) -> tuple[RateColumns, list[Row]]:
    """The lines of the one series of requests, in order of time, and which column holds what; raises LoadError."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(
            f"{name}: begins as the JSON of a panel of Grafana, and is no JSON: {error}"
        ) from None
    found = [one for frame in _frames(held, name) for one in _series(frame)]
    if not found:
        raise LoadError(f"{name}: holds no series of numbers over time; {FORMS}")
    one, columns = _of_requests(found, name)
    points = dict(_points(one, name))
    return columns, [{TIME: at, one.name: points[at]} for at in sorted(points)]


def _of_requests(found: Sequence[_Series], name: str) -> tuple[_Series, RateColumns]:
    rated = [one for one in found if one.per_second is not None]
    plain = [one for one in found if one.unit in _NO_UNIT]
    if not rated and not plain:
        raise LoadError(
            f"{name}: holds no series of requests: {found[0].name} is in {short(found[0].unit)}; {FORMS}"
        )
    if len(rated) == 1:
        columns = RateColumns(
            at=TIME, unit_s=1.0, rate=rated[0].name, cv=None, per_second=rated[0].per_second
        )
        return rated[0], columns
    by_name = None if rated else columns_of([TIME, *(one.name for one in plain)])
    if isinstance(by_name, RateColumns):
        return next(one for one in plain if one.name == by_name.rate), by_name
    several = rated or plain
    if len(several) == 1:
        raise LoadError(f"{name}: nothing says that {several[0].name} is of requests; {FORMS}")
    more = "" if len(several) <= NAMED else f" and {len(several) - NAMED} more"
    named = ", ".join(one.name for one in several[:NAMED])
    raise LoadError(
        f"{name}: holds {len(several)} series ({named}{more}), and one is replayed: keep one, or have the query add them up, as sum() does"
    )


def _frames(held: object, name: str) -> Iterator[Mapping[str, Any]]:
    if isinstance(held, dict):
        results = _mapping(held.get("results"))
        for answer in map(_mapping, results.values()):
            if "error" in answer:
                raise LoadError(f"{name}: is Grafana's answer that the query failed: {answer['error']}")
            yield from _mappings(answer.get("frames"))
        yield from _mappings(held.get("series"))
        if "schema" in held:
            yield held
    else:
        yield from _mappings(held)


def _series(frame: Mapping[str, Any]) -> Iterator[_Series]:
    fields = _listed(_mapping(frame.get("schema")).get("fields"))
    columns = _listed(_mapping(frame.get("data")).get("values"))
    both = [(_mapping(field), _listed(values)) for field, values in zip(fields, columns, strict=False)]
    times = next((values for field, values in both if field.get("type") == "time"), None)
    for field, values in both if times is not None else ():
        if field.get("type") == "number":
            unit = str(_mapping(field.get("config")).get("unit") or "").removeprefix("suffix:").strip()
            yield _Series(_called(field), unit, times or (), values)


def _points(series: _Series, name: str) -> Iterator[tuple[float, object]]:
    """Times in seconds, and what stands at each."""
    times, values, called = series.times, series.values, series.name
    if len(times) != len(values):
        raise LoadError(f"{name}: {called} holds {len(values):,} values at {len(times):,} times")
    seen: set[float] = set()
    for time, value in zip(times, values, strict=True):
        if not _is_number(time, 1e15):
            raise LoadError(f"{name}: a time of {called} is {time!r}; it must be in ms since 1970")
        if not _is_missing(value) and not _is_number(value, MOST_COUNT):
            raise LoadError(
                f"{name}: a value of {called} is {value!r}; it must be a number that is not negative, at most {MOST_COUNT:,.0f}"
            )
        if time in seen:
            raise LoadError(f"{name}: two values of {called} are of the same time")
        seen.add(time)
        yield time / 1000, value


def _is_missing(held: object) -> bool:
    return held is None or (isinstance(held, float) and isnan(held))


def _is_number(held: object, most: float) -> TypeGuard[float]:
    return isinstance(held, int | float) and not isinstance(held, bool) and 0 <= held <= most


def _called(field: Mapping[str, Any]) -> str:
    """As the panel names it: by what it was given, or by its labels where its name says nothing."""
    config, name = _mapping(field.get("config")), str(field.get("name") or "")
    given = config.get("displayName") or config.get("displayNameFromDS")
    if given:
        return str(given)
    labels = ", ".join(f'{key}="{value}"' for key, value in _mapping(field.get("labels")).items())
    if not labels:
        return name or "Value"
    return "{" + labels + "}" if name.lower() in _UNNAMED else name + "{" + labels + "}"


def _mapping(held: object) -> Mapping[str, Any]:
    return held if isinstance(held, dict) else {}


def _mappings(held: object) -> Iterable[Mapping[str, Any]]:
    return map(_mapping, _listed(held))


def _listed(held: object) -> Sequence[Any]:
    return held if isinstance(held, list) else ()
