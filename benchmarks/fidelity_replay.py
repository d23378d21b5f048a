"""Users who ask again as soon as they are answered, before the engine model: what they and a scraper would have seen.

Virtual time, one step of the engine at a time. What the real engine shows under the same users is `standin_fidelity`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits, StepTimes

SCRAPE_S = 0.5
MOMENT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One cell: latencies in milliseconds, None where too little was seen."""

    ttft_p50: float | None
    ttft_p99: float | None
    itl_p50: float | None
    itl_p99: float | None
    running: float
    waiting: float
    kv: float
    """Mean share in use."""
    preemptions: int
    finished: int


@dataclass(slots=True)
class Seen:
    """What is counted of some stretches of time, with users or without."""

    ttfts: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    looks: list[tuple[float, float, float]] = field(default_factory=list)
    """Running, waiting, share of the cache."""
    preemptions: int = 0
    finished: int = 0

    def figures(self) -> Figures:
        running, waiting, kv = zip(*self.looks, strict=True) if self.looks else ((0.0,), (0.0,), (0.0,))
        return Figures(
            ttft_p50=_ms(self.ttfts, 0.5),
            ttft_p99=_ms(self.ttfts, 0.99),
            itl_p50=_ms(self.gaps, 0.5),
            itl_p99=_ms(self.gaps, 0.99),
            running=fmean(running),
            waiting=fmean(waiting),
            kv=fmean(kv),
            preemptions=self.preemptions,
            finished=self.finished,
        )


@dataclass(slots=True)
class _User:
    request: Request
    seen: int = 0
    last: float = 0.0


def replay(
    times: StepTimes,
    limits: Limits,
    asked: Iterable[tuple[int, int]],
    *,
    users: int,
    settle_s: float,
    span_s: float,
) -> Seen:
    """`asked` are lengths of prompts and answers in the order in which anybody asks; what begins after the settling counts."""
    engine = Engine(times, limits)
    lengths = iter(asked)
    seen = Seen()
    present = [_User(_ask(engine, lengths, 0.0)) for _ in range(users)]
    end = settle_s + span_s
    scrape = settle_s
    before = (0, 0)
    begun = False
    while engine.now < end:
        if not begun and engine.now >= settle_s:
            begun, before = True, (engine.preemptions, engine.finished_count)
        engine.advance(engine.now + MOMENT)
        while scrape <= min(engine.now, end):
            seen.looks.append((len(engine.running), engine.queued, engine.kv_fraction))
            scrape += SCRAPE_S
        for place, user in enumerate(present):
            _follow(engine, user, seen, settle_s)
            if user.request.finished_at >= 0:
                present[place] = _User(_ask(engine, lengths, user.request.finished_at))
        engine.finished.clear()
    seen.preemptions = engine.preemptions - before[0]
    seen.finished = engine.finished_count - before[1]
    return seen


def _ask(engine: Engine, lengths: Iterator[tuple[int, int]], at: float) -> Request:
    request = Request(at, *next(lengths))
    if not engine.submit(request, max(at, engine.now)):
        raise ValueError(f"a request of {request.input_tokens} tokens is longer than the engine takes")
    return request


def _follow(engine: Engine, user: _User, seen: Seen, settle_s: float) -> None:
    """As its client: the first token, then the gaps between tokens."""
    request = user.request
    tokens = engine.tokens(request)
    if tokens == user.seen:
        return
    now = engine.now + request.outside
    counts = request.arrival >= settle_s
    if user.seen == 0:
        if counts:
            seen.ttfts.append(now - request.arrival)
    elif counts:
        seen.gaps.append(now - user.last)
    user.seen, user.last = tokens, now


def _ms(values: Sequence[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
