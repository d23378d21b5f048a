"""Who arrives when, and with how much: a trace brought to size and, where it holds times or rates only, drawn by seed.

Every policy of a comparison gets the same arrivals, so they are drawn once and kept as plain columns.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from random import Random
from typing import Final

from plimsoll.load.arrivals import changing
from plimsoll.load.trace_rates import Rate
from plimsoll.planning.lengths import Length
from plimsoll.simulate.prefixes import PREFIX_BLOCK
from plimsoll.simulate.traces import RateTrace, RequestTrace, TimeTrace, Trace

COPY_SPREAD_S: Final = 10.0
"""How far copies of a request are moved when a trace is made larger: its bursts stay, its instants do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Of prompts and answers, where the trace does not say."""

    input: Length
    output: Length
    shared_tokens: int = 0
    """Tokens at the start of every prompt that all have in common."""

    def draw(self, random: Random) -> tuple[int, int]:
        given = drawn(self.input, random) + self.shared_tokens
        return given, drawn(self.output, random)

    def within(self, pair: tuple[int, int], limit: int, random: Random) -> tuple[int, int]:
        """A prompt and its answer that have at most `limit` tokens together, as a client's are bounded by the context. Only what is beyond the
        highest percentiles that are known is drawn anew, so that these stay; where they leave no room, the pair stays too."""
        given, asked = pair
        prompt, shared = given - self.shared_tokens, self.shared_tokens
        least_asked = min(asked, ceil(self.output.highest_known))
        room = limit - shared - least_asked
        if prompt > room:
            if prompt <= self.input.highest_known or room <= self.input.highest_known:
                return pair
            prompt = _beyond(self.input, room, random)
        room = limit - shared - prompt
        if asked > room > self.output.highest_known:
            asked = _beyond(self.output, room, random)
        return prompt + shared, min(asked, room)


def drawn(length: Length, random: Random) -> int:
    return max(1, round(length.at(random.gauss(0.0, 1.0))))


def _beyond(length: Length, most: float, random: Random) -> int:
    """A length above the highest that is known, and at most `most`."""
    return min(int(most), round(length.beyond(most, random.random())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    trace: str
    at: array[float]
    inputs: array[int]
    outputs: array[int]
    prefixes: list[tuple[int, ...]] | None
    span_s: float
    prefix_tokens: int = PREFIX_BLOCK
    """What an id of a prefix stands for."""
    shortened: int = 0
    """Requests whose lengths were drawn anew, as they were longer than the context."""

    def __len__(self) -> int:
        return len(self.at)

    @property
    def mean_rate(self) -> float:
        return len(self.at) / self.span_s

    def busiest(self, window_s: float = 600.0) -> float:
        """The highest rate of any window that begins with an arrival."""
        most, end = 0, 0
        for begin, at in enumerate(self.at):
            while end < len(self.at) and self.at[end] < at + window_s:
                end += 1
            most = max(most, end - begin)
        return most / min(window_s, self.span_s)


def draw_arrivals(
    trace: Trace,
    lengths: Lengths,
    *,
    seed: int,
    scale: float = 1.0,
    begin_s: float = 0.0,
    span_s: float | None = None,
    limit: int | None = None,
) -> Arrivals:
    """`scale` times the trace's traffic, from `begin_s` on, for `span_s` or to its end. Lengths that the trace does not hold are drawn so
    that prompt and answer have at most `limit` tokens, as far as `lengths` leaves that open.

    A trace of rates that is made smaller becomes what a random part of its requests would be: bursts keep their length
    and their share of the rate, so that few requests are less bursty than many. Made larger, it keeps its figures.
    """
    end_s = trace.span_s if span_s is None else min(trace.span_s, begin_s + span_s)
    random = Random(f"arrivals {seed}")  # noqa: S311 - a simulation, repeatable by its seed
    if isinstance(trace, RequestTrace):
        return _replayed(trace, random, scale, begin_s, end_s)
    # Another chance, so that requests which fit are the same for any limit.
    again, shortened = Random(f"lengths {seed}"), 0  # noqa: S311
    at, inputs, outputs = array("d"), array("q"), array("q")
    prefix = (0,) if lengths.shared_tokens else ()
    for moment in _moments(trace, random, scale, begin_s, end_s):
        pair = lengths.draw(random)
        if limit is not None and sum(pair) > limit:
            fitting = lengths.within(pair, limit, again)
            shortened, pair = shortened + (fitting != pair), fitting
        at.append(moment)
        inputs.append(pair[0])
        outputs.append(pair[1])
    return Arrivals(
        trace=trace.name,
        at=at,
        inputs=inputs,
        outputs=outputs,
        prefixes=[prefix] * len(at) if prefix else None,
        # All that they share is one beginning.
        prefix_tokens=lengths.shared_tokens or PREFIX_BLOCK,
        span_s=end_s - begin_s,
        shortened=shortened,
    )


def _moments(
    trace: TimeTrace | RateTrace, random: Random, scale: float, begin_s: float, end_s: float
) -> Iterable[float]:
    """When somebody comes, since the beginning of the part."""
    if isinstance(trace, TimeTrace):
        return [moment for moment, _, _ in _copied(trace.at, random, scale, begin_s, end_s)]
    return (moment - begin_s for moment in changing(_steps(trace, scale, begin_s, end_s), random))


def _steps(trace: RateTrace, scale: float, begin_s: float, end_s: float) -> Iterator[Rate]:
    """Of a part of the trace, brought to size; the last says when it ends."""
    kept = min(1.0, scale)
    ends = (*trace.at[1:], trace.span_s)
    for start, until, rate, cv in zip(trace.at, ends, trace.rates, trace.cvs, strict=True):
        if until > begin_s and start < end_s:
            yield Rate(max(start, begin_s), rate * scale, sqrt(kept * cv**2 + 1 - kept))
    yield Rate(end_s, 0.0, 1.0)


def _replayed(trace: RequestTrace, random: Random, scale: float, begin_s: float, end_s: float) -> Arrivals:
    rows = _copied(trace.at, random, scale, begin_s, end_s)
    return Arrivals(
        trace=trace.name,
        at=array("d", (moment for moment, _, _ in rows)),
        inputs=array("q", (trace.inputs[row] for _, row, _ in rows)),
        outputs=array("q", (trace.outputs[row] for _, row, _ in rows)),
        prefixes=None if trace.prefixes is None else _blocks(trace.prefixes, rows),
        span_s=end_s - begin_s,
    )


def _copied(
    at: Sequence[float], random: Random, scale: float, begin_s: float, end_s: float
) -> list[tuple[float, int, int]]:
    """Every request as often as the scale says, the broken part by chance; further copies a little apart. When each comes, which line it
    is, and which copy."""
    whole, part = divmod(scale, 1.0)
    span_s = end_s - begin_s
    spread_s = min(COPY_SPREAD_S, span_s)
    rows: list[tuple[float, int, int]] = []
    for row in range(bisect_left(at, begin_s), bisect_left(at, end_s)):
        copies = int(whole) + (random.random() < part)
        for copy in range(copies):
            moment = at[row] - begin_s
            if copy:
                # Thrown back at both ends: what would lie beyond one would else come in the very same instant.
                moment = abs(moment + random.uniform(-spread_s, spread_s))
                moment = min(moment, 2 * span_s - moment)
            rows.append((moment, row, copy))
    rows.sort()
    return rows


def _blocks(
    prefixes: Sequence[tuple[int, ...]], rows: Iterable[tuple[float, int, int]]
) -> list[tuple[int, ...]]:
    """Those of the trace; copies of the same turn share with each other alone, as a further group of users does."""
    known = {block for ids in prefixes for block in ids}
    each = 1 + max(known, default=0) - min(known, default=0)
    return [
        tuple(block + copy * each for block in prefixes[row]) if copy else prefixes[row]
        for _, row, copy in rows
    ]
