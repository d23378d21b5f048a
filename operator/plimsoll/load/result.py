"""What a run measured, as one frozen value that is printed as a table or written as JSON. Latencies are in milliseconds.

The JSON always has every key, null where something is unknown; docs/load.md describes the keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from plimsoll.load.sketch import Spread
from plimsoll.load.slo import Promise

SCHEMA: Final = 1
"""To be raised only when a key changes its meaning or is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many requests were due in the measured time, by their outcome."""

    sent: int
    ok: int
    failed: int
    cut: int
    refused: int
    timed_out: int
    unfinished: int
    not_sent: int
    """Requests that were due while as many were in flight as this client can hold."""

    @property
    def bad(self) -> int:
        return self.failed + self.cut + self.refused + self.timed_out

    @property
    def not_sent_share(self) -> float:
        """Of all that were due."""
        return self.not_sent / max(1, self.sent + self.not_sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesSeen:
    """Rates a second over the measured time."""

    requests: float
    """Requests that were answered in full."""
    good_requests: float | None
    """Those of them that kept every target; None without targets."""
    input_tokens: float | None
    output_tokens: float
    in_flight_mean: float
    in_flight_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthsSeen:
    """Mean tokens of a request, asked for and delivered."""

    counted_by: str
    """`server`, or `events` where a token is an event of the stream with text."""
    input_asked: float | None
    input_mean: float | None
    """None where the server does not count."""
    input_error_percent: float | None
    """Mean absolute error of the prompts' lengths."""
    output_asked: float | None
    output_mean: float | None
    tokens_per_event: float | None
    """More than 1 where several tokens come at once. Gaps are then those between events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    message: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    schema: int = SCHEMA
    url: str
    model: str
    pattern: str
    seed: int
    seconds: float
    """The measured time: from the end of the warm-up until sending ended."""
    interrupted: bool
    counts: Counts
    rates: RatesSeen
    ttft_ms: Spread | None
    itl_ms: Spread | None
    """Every gap between tokens of every answer."""
    tpot_ms: Spread | None
    """The mean gap of each answer."""
    e2e_ms: Spread | None
    longest_gap_ms: Spread | None
    """The longest gap of each answer, which shows preemptions."""
    lengths: LengthsSeen
    late_ms: Spread | None
    """How much later than they were due requests were sent. Latencies count from when they were due."""
    lag_ms: Spread | None
    """How late this client's own event loop was. No latency is more exact than that."""
    promises: tuple[Promise, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def kept(self) -> bool | None:
        """Whether every promise was kept; None without promises, or where too little was seen to say, as of a load of which a part was not sent."""
        if not self.promises or any(one.kept is None for one in self.promises):
            return None
        kept = all(one.kept for one in self.promises)
        return None if kept and self.counts.not_sent else kept


def data_of(value: Any) -> Any:
    """A frozen value as JSON's types, with every field in order."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {item.name: data_of(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [data_of(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): data_of(item) for key, item in value.items()}
    return value
