"""The load of a run: a value that says when requests come and how long they are, and the requests that follow from it.

All requests follow from the workload alone, so two runs with the same seed send the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from plimsoll.load.arrivals import arrivals, changing
from plimsoll.load.chance import seeded
from plimsoll.load.lengths import Lengths
from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import Arrived, Rates, Requests, Times, open_trace


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A number of users, each of whom sends the next request once the last one is answered."""

    concurrency: int

    def __str__(self) -> str:
        return f"{self.concurrency} at once"


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests that come whether or not earlier ones were answered."""

    per_second: float
    burstiness: float = 1.0
    """The shape of the Gamma distribution of gaps: 1 is Poisson, smaller shapes come in bursts."""

    def __str__(self) -> str:
        bursts = "" if self.burstiness == 1 else f", burstiness {self.burstiness:g}"
        return f"{self.per_second:g} requests/s{bursts}"


@dataclass(frozen=True, slots=True)
class Replay:
    """The requests, their times, or the rates of a trace."""

    path: Path
    speed: float = 1.0
    """How many times faster than recorded."""

    def __str__(self) -> str:
        return self.path.name + ("" if self.speed == 1 else f" at {self.speed:g} times its speed")


Pattern = ClosedLoop | OpenLoop | Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    pattern: Pattern
    input_tokens: Lengths
    """Lengths of prompts. Requests of a trace have lengths of their own where it holds any."""
    output_tokens: Lengths
    prefix_tokens: int = 0
    """Tokens at the beginning of every prompt that it shares with others. They are a part of input_tokens."""
    prefixes: int = 1
    """How many different shared beginnings there are."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to send."""

    number: int
    at: float | None
    """Seconds since the run began; None in a closed loop, where the next request follows an answer."""
    input_tokens: int
    output_tokens: int
    prefix: int | None = None
    """Number of its shared beginning."""
    prefix_tokens: int = 0
    blocks: tuple[int, ...] = ()


@contextmanager
def asks(workload: Workload) -> Iterator[Iterator[Ask]]:
    """The requests of a workload, made as they are needed. A trace stays open within the context."""
    pattern = workload.pattern
    if not isinstance(pattern, Replay):
        times: Iterator[float | None] = repeat(None)
        if isinstance(pattern, OpenLoop):
            times = arrivals(pattern.per_second, pattern.burstiness, seeded(workload.seed, "arrivals"))
        yield _drawn(workload, times)
        return
    with open_trace(pattern.path) as trace:
        if isinstance(trace, Requests):
            yield _replayed(trace.lines, pattern)
        elif isinstance(trace, Times):
            yield _drawn(workload, (line.at / pattern.speed for line in trace.lines))
        else:
            yield _drawn(workload, changing(_faster(trace, pattern), seeded(workload.seed, "arrivals")))


def _drawn(workload: Workload, times: Iterable[float | None]) -> Iterator[Ask]:
    lengths, choice = seeded(workload.seed, "lengths"), seeded(workload.seed, "prefixes")
    for number, at in enumerate(times):
        yield Ask(
            number=number,
            at=at,
            input_tokens=workload.input_tokens.draw(lengths),
            output_tokens=workload.output_tokens.draw(lengths),
            prefix=choice.randrange(workload.prefixes) if workload.prefix_tokens else None,
            prefix_tokens=workload.prefix_tokens,
        )


def _replayed(lines: Iterator[Arrived], pattern: Replay) -> Iterator[Ask]:
    for number, line in enumerate(lines):
        yield Ask(
            number=number,
            at=line.at / pattern.speed,
            input_tokens=line.input_tokens,
            output_tokens=line.output_tokens,
            blocks=line.blocks,
        )


def _faster(trace: Rates, pattern: Replay) -> Iterator[Rate]:
    """The rates, and when the last one ends."""
    end = 0.0
    for line in trace.lines:
        yield Rate(at=line.at / pattern.speed, per_second=line.per_second * pattern.speed, cv=line.cv)
        end = line.at + trace.last_s
    yield Rate(at=end / pattern.speed, per_second=0.0, cv=1.0)
