"""Users who ask again as soon as they are answered, before the engine model: what they and a scraper would have seen.

Virtual time, one step of the engine at a time. What the real engine shows under the same users is `standin_fidelity`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from plimsoll.simulate.engine import Engine
from plimsoll.simulate.interference import NONE, Interference, Standstills
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
    sent: float
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
    interference: Interference = NONE,
) -> Seen:
    """`asked` are lengths of prompts and answers in the order in which anybody asks; what begins after the settling counts."""
    engine = Engine(times, limits)
    return _Replay(engine, asked, users, settle_s, Standstills(interference)).run(settle_s + span_s)


class _Replay:
    """The engine's clock stands still when the machine does something else: the users' clock is `stood` ahead of it."""

    def __init__(
        self,
        engine: Engine,
        asked: Iterable[tuple[int, int]],
        users: int,
        settle_s: float,
        standstills: Standstills,
    ) -> None:
        self.engine = engine
        self.seen = Seen()
        self._lengths = iter(asked)
        self._settle = settle_s
        self._standstills = standstills
        self._stood = 0.0
        self._users = [self._user() for _ in range(users)]

    def run(self, end: float) -> Seen:
        engine, seen, scrape, before = self.engine, self.seen, self._settle, (0, 0)
        while engine.now + self._stood < end:
            if scrape == self._settle:
                before = (engine.preemptions, engine.finished_count)
            began = engine.now
            engine.advance(engine.now + MOMENT)
            self._stood += self._standstills.during(engine.now - began)
            now = engine.now + self._stood
            while scrape <= min(now, end):
                seen.looks.append((len(engine.running), engine.queued, engine.kv_fraction))
                scrape += SCRAPE_S
            for place, user in enumerate(self._users):
                self._follow(user, now)
                if user.request.finished_at >= 0:
                    self._users[place] = self._user(user.request)
            engine.finished.clear()
        seen.preemptions = engine.preemptions - before[0]
        seen.finished = engine.finished_count - before[1]
        return seen

    def _user(self, answered: Request | None = None) -> _User:
        """Who asks when the one before is answered."""
        at = 0.0 if answered is None else answered.finished_at
        request = Request(at, *next(self._lengths))
        if not self.engine.submit(request, max(at, self.engine.now)):
            raise ValueError(f"a request of {request.input_tokens} tokens is longer than the engine takes")
        return _User(request, sent=at + self._stood)

    def _follow(self, user: _User, ended: float) -> None:
        """As its client: the first token, then the gaps between tokens."""
        request = user.request
        tokens = self.engine.tokens(request)
        if tokens == user.seen:
            return
        now = ended + request.outside
        if user.sent >= self._settle:
            if user.seen == 0:
                self.seen.ttfts.append(now - user.sent)
            else:
                self.seen.gaps.append(now - user.last)
        user.seen, user.last = tokens, now


def _ms(values: Sequence[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
