"""Compares a plan's expectation with what was measured: latencies and rates at the number of requests in flight that the plan assumes.

Steps of a ramp rarely have exactly that number, so figures are interpolated between the steps on either side of it. Nothing is extrapolated
beyond what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from plimsoll.load.result import Result

SAME_LENGTH: Final = 0.15
"""Share by which lengths may differ from the plan's and still count as the same load."""


@dataclass(frozen=True, slots=True)
class Range:
    """An expected value, and the range that contains 90% of real outcomes."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a plan expects of all its replicas together."""

    plan: str
    """namespace/name."""
    replicas: int
    input_tokens: int
    output_tokens: int
    in_flight: int
    ttft_ms: Range
    tpot_ms: Range
    requests_per_second: float
    output_tokens_per_second: float
    most_in_flight: int
    """The most requests in flight at which the targets are expected to hold."""
    seats: int
    bound: str
    """What is expected to limit a decode step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    what: str
    expected: Range
    measured: float | None
    """None where the ramp did not reach the plan's load."""
    off_percent: float | None

    @property
    def within(self) -> bool | None:
        """Whether the measured value is in the plan's range; None where there is no range, or nothing measured."""
        if self.measured is None or self.expected.low == self.expected.high:
            return None
        return self.expected.low <= self.measured <= self.expected.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    expected: Expected
    rows: tuple[Compared, ...]
    notes: tuple[str, ...]


def compare(expected: Expected, results: Sequence[Result], *, good_in_flight: float | None) -> Comparison:
    """The comparison. `good_in_flight`: requests in flight at the last step that went well (before the knee, with targets kept); None where
    that is not known."""
    ordered = sorted(results, key=lambda one: one.rates.in_flight_mean)

    def at_load(figure: Callable[[Result], float | None]) -> float | None:
        return _between(expected.in_flight, [(one.rates.in_flight_mean, figure(one)) for one in ordered])

    rows = (
        _row(
            "TTFT ms, mean", expected.ttft_ms, at_load(lambda one: one.ttft_ms.mean if one.ttft_ms else None)
        ),
        _row(
            "TPOT ms, mean", expected.tpot_ms, at_load(lambda one: one.tpot_ms.mean if one.tpot_ms else None)
        ),
        _row("requests/s", _exactly(expected.requests_per_second), at_load(lambda one: one.rates.requests)),
        _row(
            "output tokens/s",
            _exactly(expected.output_tokens_per_second),
            at_load(lambda one: one.rates.output_tokens),
        ),
        _row("in flight while well", _exactly(expected.most_in_flight), good_in_flight),
    )
    return Comparison(expected=expected, rows=rows, notes=tuple(_notes(expected, ordered, rows)))


def _notes(expected: Expected, ordered: Sequence[Result], rows: Sequence[Compared]) -> Iterator[str]:
    for what, planned, asked in (
        (
            "prompts",
            expected.input_tokens,
            _mean(ordered, lambda one: one.lengths.input_mean or one.lengths.input_asked),
        ),
        ("answers", expected.output_tokens, _mean(ordered, lambda one: one.lengths.output_mean)),
    ):
        if asked is not None and abs(asked / planned - 1) > SAME_LENGTH:
            yield f"the plan counts with {what} of {planned:,} tokens, {asked:,.0f} were measured: not the same load"
    if rows[0].measured is None and ordered:
        seen = [one.rates.in_flight_mean for one in ordered]
        yield (
            f"the plan's figures are for {expected.in_flight:,} requests in flight; "
            f"the ramp had {seen[0]:.3g} to {seen[-1]:.3g}"
        )


def _row(what: str, expected: Range, measured: float | None) -> Compared:
    off = None if measured is None or not expected.mid else round(100 * (measured / expected.mid - 1), 1)
    rounded = None if measured is None else round(measured, 3)
    return Compared(what=what, expected=expected, measured=rounded, off_percent=off)


def _exactly(value: float) -> Range:
    return Range(value, value, value)


def _between(load: float, points: Sequence[tuple[float, float | None]]) -> float | None:
    known = [(at, value) for at, value in points if value is not None]
    for (left, low), (right, high) in pairwise(known):
        if left <= load <= right:
            share = 0.0 if right == left else (load - left) / (right - left)
            return low + share * (high - low)
    return None


def _mean(results: Sequence[Result], figure: Callable[[Result], float | None]) -> float | None:
    known = [value for one in results if (value := figure(one)) is not None]
    return sum(known) / len(known) if known else None
