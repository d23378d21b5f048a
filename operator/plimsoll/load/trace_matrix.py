"""What Prometheus answers to `query_range`, as JSON: the rate of requests over time, of one series or of several that are added up.

The document of the API, and the bare list that promtool writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import isnan
from typing import Any, Final

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_rates import MOST_RATE, SINGLE_S, WIDE, Rate
from plimsoll.load.trace_times import Clock

NAMED: Final = 3
"""Series that are told by their labels."""
_LIST: Final = re.compile(r'\s*\[\s*\{\s*"metric"\s*:\s*\{')
_ANSWER: Final = re.compile(
    r'\s*\{\s*"status"\s*:\s*"(?:success|error)".*?'
    r'(?:"data"\s*:\s*\{\s*"result(?:Type)?"\s*:|"errorType"\s*:\s*"\w+"\s*,\s*"error"\s*:)',
    re.DOTALL,
)
"""With what the status is of, as lines of a log begin with one too."""
_COUNTER: Final = ("_total", "_count", "_sum", "_bucket")


def begins_matrix(text: str) -> bool:
    """Whether a document that begins so is an answer of Prometheus."""
    return _LIST.match(text) is not None or _ANSWER.match(text) is not None


def rates_of(text: str, name: str) -> tuple[list[Rate], float, tuple[str, ...], datetime | None]:
    """The rates with times since the first one, how long the last holds, what is taken of them, and when the first was; raises LoadError."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{name}: begins as an answer of Prometheus, and is no JSON: {error}") from None
    series = _series(held, name)
    added: dict[float, float] = {}
    asked: set[float] = set()
    for at, value in (point for one in series for point in _points(one, name)):
        asked.add(at)
        if not isnan(value):
            added[at] = added.get(at, 0.0) + value
    if not added:
        raise LoadError(f"{name}: holds no series: the query found nothing in that time")
    times = sorted(added)
    begin = times[0]
    notes = ["requests a second are taken, as rate() gives them"]
    if len(series) > 1:
        more = "" if len(series) <= NAMED else f" and {len(series) - NAMED} more"
        named = ", ".join(map(_labels, series[:NAMED]))
        notes.append(
            f"{len(series)} series are added up ({named}{more}); keep the one that is meant if they are not of one model's requests"
        )
    # The answer's step: what is at the grid's other times is left out, or is no number.
    step_s = min((after - before for before, after in pairwise(sorted(asked))), default=SINGLE_S)
    if holes := sum(after - before > WIDE * step_s for before, after in pairwise(times)):
        stretch, it = ("stretch", "it") if holes == 1 else ("stretches", "them")
        notes.append(f"{holes:,} {stretch} of time without a value: the rate before {it} is taken to go on")
    rates = [Rate(at - begin, added[at], 1.0) for at in times]
    return rates, step_s, tuple(notes), Clock("at").began({"at": begin})


def _series(held: object, name: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(held, dict):
        if held.get("status") != "success":
            raise LoadError(
                f"{name}: is Prometheus' answer that the query failed: {held.get('error', 'no word why')}"
            )
        data = held.get("data")
        form = data.get("resultType") if isinstance(data, dict) else None
        if not isinstance(data, dict) or form != "matrix":
            raise LoadError(f"{name}: is of one moment ({form}): ask query_range, with start, end and step")
        held = data.get("result")
    found = [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    for one in found:
        metric = str(_metric(one).get("__name__", ""))
        if metric.endswith(_COUNTER):
            raise LoadError(f"{name}: holds the counter {metric} itself; ask for sum(rate({metric}[1m]))")
    return found


def _points(series: Mapping[str, Any], name: str) -> Iterator[tuple[float, float]]:
    values = series.get("values")
    for point in values if isinstance(values, list) else ():
        try:
            at, value = map(float, point)
        except (TypeError, ValueError):
            held = point[1] if isinstance(point, list) and len(point) == 2 else point
            raise LoadError(
                f"{name}: a value of its series is {held!r}; it must be a pair of a Unix time and a number"
            ) from None
        if not (isnan(value) or 0 <= value <= MOST_RATE) or not 0 <= at < float("inf"):
            raise LoadError(
                f"{name}: a value of its series is {value:g}; it must be a rate that is not negative, at most {MOST_RATE:,.0f}"
            )
        yield at, value


def _metric(series: Mapping[str, Any]) -> Mapping[str, Any]:
    found = series.get("metric")
    return found if isinstance(found, dict) else {}


def _labels(series: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f'{key}="{value}"' for key, value in _metric(series).items()) + "}"
