"""The record that a ramp hands in to be learned from: a few figures for each load, as short JSON.

Anybody who may edit a deployment may hand one in, by an annotation. So its size, types and ranges are checked first, and for each mistake
a sentence says what would be right.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.api.plainjson import parsed

SCHEMA: Final = 1
MOST_TEXT: Final = 16 * 1024
MOST_POINTS: Final = 64
LEAST_REQUESTS: Final = 10
"""The fewest requests of a load: the mean of fewer says nothing."""
LEAST: Final = 1e-6
MOST: Final = 1e9
"""Figures must lie between these, so that ratios of them can be worked with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RampPoint:
    """One load that went well."""

    load: float
    """Requests a second, or requests at once."""
    in_flight: float
    """Requests in flight on all replicas together, in the mean over the step."""
    requests: int
    input_tokens: float
    output_tokens: float
    ttft_ms: float
    tpot_ms: float
    itl_p99_ms: float | None
    tokens_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RampRecord:
    """What one ramp has measured."""

    set: str
    """Name of the set that answered."""
    replicas: int
    at: int
    """When it ended, in seconds since the epoch."""
    closed_loop: bool
    prefix_tokens: int
    """Tokens at the start of every prompt that prompts share."""
    knee: float | None
    """The last load up to which more requests gave more throughput; None where it was not found."""
    points: tuple[RampPoint, ...]


class RecordError(ValueError):
    """A record that cannot be used; the message says why."""


def record_digest(text: str) -> str:
    """A short digest that tells one record from another."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def write_record(record: RampRecord) -> str:
    def point(one: RampPoint) -> dict[str, float | None]:
        return {
            "load": one.load,
            "inFlight": one.in_flight,
            "requests": one.requests,
            "inputTokens": one.input_tokens,
            "outputTokens": one.output_tokens,
            "ttftMs": one.ttft_ms,
            "tpotMs": one.tpot_ms,
            "itlP99Ms": one.itl_p99_ms,
            "tokensPerSecond": one.tokens_per_second,
        }

    data = {
        "schema": SCHEMA,
        "set": record.set,
        "replicas": record.replicas,
        "at": record.at,
        "closedLoop": record.closed_loop,
        "prefixTokens": record.prefix_tokens,
        "knee": record.knee,
        "points": [point(one) for one in record.points],
    }
    return json.dumps(data, separators=(",", ":"))


def read_record(text: str) -> RampRecord:
    if len(text) > MOST_TEXT:
        raise RecordError(f"it has {len(text):,} letters; at most {MOST_TEXT:,} are read")
    try:
        data = parsed(text)
    except ValueError:
        raise RecordError("it is no JSON; `plimsoll ramp NAME --record` writes one") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise RecordError(f'it is no record of "schema": {SCHEMA}; another version may have written it')
    points = data.get("points")
    if not isinstance(points, list) or not 1 <= len(points) <= MOST_POINTS:
        raise RecordError(f"it must have 1 to {MOST_POINTS} points")
    name, closed = data.get("set"), data.get("closedLoop")
    if not isinstance(name, str) or not isinstance(closed, bool):
        raise RecordError("it must name the set that answered, and whether the loop was closed")
    return RampRecord(
        set=name,
        replicas=_whole(data, "replicas", 1),
        at=_whole(data, "at", 0, most=MOST * 100),
        closed_loop=closed,
        prefix_tokens=_whole(data, "prefixTokens", 0),
        knee=None if data.get("knee") is None else _number(data, "knee"),
        points=tuple(map(_point, points)),
    )


def _point(data: object) -> RampPoint:
    if not isinstance(data, dict):
        raise RecordError("each of its points must be an object")
    return RampPoint(
        load=_number(data, "load"),
        in_flight=_number(data, "inFlight"),
        requests=_whole(data, "requests", LEAST_REQUESTS),
        input_tokens=_number(data, "inputTokens", 1),
        output_tokens=_number(data, "outputTokens", 1),
        ttft_ms=_number(data, "ttftMs"),
        tpot_ms=_number(data, "tpotMs"),
        itl_p99_ms=None if data.get("itlP99Ms") is None else _number(data, "itlP99Ms"),
        tokens_per_second=_number(data, "tokensPerSecond"),
    )


def _number(data: dict[str, Any], name: str, least: float = LEAST) -> float:
    value = data.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not (least <= value <= MOST):
        raise RecordError(f"{name} is {_shown(value)}; it must be a number from {least:g} to {MOST:g}")
    return float(value)


def _whole(data: dict[str, Any], name: str, least: int, *, most: float = MOST) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RecordError(f"{name} is {_shown(value)}; it must be a whole number of at least {least}")
    return value


def _shown(value: object) -> str:
    """A value as it was written, shortened for an error."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
