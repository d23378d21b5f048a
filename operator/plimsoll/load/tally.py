"""Adds up answers while they come, in memory that does not grow with their number, and makes the result of a run.

Latencies and counts are those of the requests that were due within the measured time. Rates are of what happened within it, so that neither a
queue that is left over nor a quiet end changes them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from plimsoll.load.answers import Answer, Outcome
from plimsoll.load.result import Counts, LengthsSeen, Problem, RatesSeen, Result
from plimsoll.load.sketch import Sketch
from plimsoll.load.slo import KEPT, Promise, Slo

_MESSAGES: Final = 20
"""How many different messages of problems are kept."""
_SHOWN: Final = 5
SILENT_S: Final = 1.0
"""Silences below this are not worth a word."""
_LEAST_S: Final = 0.001
"""The least measured time, so that rates of a run that was interrupted at once are defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the result says of the run itself."""

    url: str
    model: str
    pattern: str
    seed: int
    notes: tuple[str, ...] = ()


class Tally:
    """The sums of a run that begins at `start`. What is due before `start + warmup` is sent and not measured."""

    def __init__(
        self, *, start: float, warmup: float = 0.0, until: float = math.inf, slo: Slo | None = None
    ) -> None:
        self.started = start
        self.since = start + warmup
        self.until = until
        self.slo = slo or Slo()
        self.outcomes: Counter[Outcome] = Counter()
        self.not_sent = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.ttft, self.itl, self.tpot, self.e2e = Sketch(), Sketch(), Sketch(), Sketch()
        self.longest_gap, self.late, self.lag = Sketch(), Sketch(), Sketch()
        self.silent = 0
        """Unfinished answers that had begun, and of which nothing more came."""
        self.silence_s = 0.0
        """Of these the longest."""
        self.output_tokens = 0.0
        self._input_tokens = 0
        self._answered = 0
        self._good = 0
        self._flying = 0.0
        self._last_end = self.since
        self._within: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        self._lengths = _LengthSums()
        self._problems: Counter[str] = Counter()

    def begin(self) -> None:
        """A request is sent."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def add(self, answer: Answer) -> None:
        """An answer has ended, well or not."""
        self.in_flight -= 1
        self._last_end = max(self._last_end, answer.ended)
        self._happened(answer)
        if answer.due < self.since:
            return
        self.outcomes[answer.outcome] += 1
        self.late.add(max(0.0, answer.sent - answer.due))
        if answer.problem is not None and (
            answer.problem in self._problems or len(self._problems) < _MESSAGES
        ):
            self._problems[answer.problem] += 1
        good = self._latencies(answer)
        if answer.outcome is Outcome.OK:
            self._lengths.add(answer)
            if answer.ended <= self.until:
                self._good += good

    @property
    def sent(self) -> int:
        return self.outcomes.total()

    @property
    def ok(self) -> int:
        return self.outcomes[Outcome.OK]

    def seconds(self, now: float) -> float:
        """Seconds measured until now."""
        return max(0.0, min(now, self.until) - self.since)

    def _happened(self, answer: Answer) -> None:
        """Counts the part of an answer that is within the measured time, whenever the request was due."""
        arrivals = answer.arrivals
        if arrivals:
            inside = bisect_right(arrivals, self.until) - bisect_left(arrivals, self.since)
            self.output_tokens += answer.tokens * inside / len(arrivals)
            if self.since <= arrivals[0] <= self.until:
                self._input_tokens += answer.input_tokens or 0
        self._flying += max(0.0, min(answer.ended, self.until) - max(answer.sent, self.since))
        self._answered += answer.outcome is Outcome.OK and self.since <= answer.ended <= self.until

    def _latencies(self, answer: Answer) -> bool:
        """Counts the latencies of an answer, also of one that was not completed. Returns whether it kept all targets."""
        arrivals = answer.arrivals
        gaps = [later - sooner for sooner, later in pairwise(arrivals)]
        if answer.outcome in (Outcome.TIMED_OUT, Outcome.UNFINISHED) and arrivals:
            self._silence(answer, gaps)
        for gap in gaps:
            self.itl.add(gap)
        if longest := max(gaps, default=0.0):
            self.longest_gap.add(longest)
        first = arrivals[0] - answer.due if arrivals else None
        if first is not None:
            self.ttft.add(first)
        several = len(arrivals) > 1 and answer.tokens > 1
        each = (arrivals[-1] - arrivals[0]) / (answer.tokens - 1) if several else None
        if each is not None and answer.outcome is Outcome.OK:
            self.tpot.add(each)
        whole = answer.ended - answer.due if answer.outcome is Outcome.OK else None
        if whole is not None:
            self.e2e.add(whole)
        return self._judge(answer, first, gaps, each, whole)

    def _silence(self, answer: Answer, gaps: list[float]) -> None:
        """Counts the silence that an answer ended in as a gap. The end of a run may fall within any gap, so there it tells something only if
        it is longer than those before; before there are any, than the first token took."""
        silence = answer.ended - answer.arrivals[-1]
        if answer.outcome is Outcome.UNFINISHED:
            if silence <= max(gaps, default=answer.arrivals[0] - answer.sent):
                return
            if silence >= SILENT_S:
                self.silent += 1
                self.silence_s = max(self.silence_s, silence)
        gaps.append(silence)

    def _judge(
        self, answer: Answer, first: float | None, gaps: list[float], each: float | None, whole: float | None
    ) -> bool:
        """Counts each target. A request that was still being answered at the end of the run is judged only by what is certain already.
        Returns whether it kept all targets."""
        open_ended = answer.outcome is Outcome.UNFINISHED
        waited = answer.ended - answer.due
        good = answer.outcome is Outcome.OK
        for name, target_ms in self.slo.targets():
            target = target_ms / 1000
            if name == "itl":
                kept = sum(gap <= target for gap in gaps)
                self._within[name] += kept
                self._judged[name] += len(gaps)
                good = good and kept >= math.ceil(KEPT * len(gaps))
                continue
            value = {"ttft": first, "tpot": each, "e2e": whole}[name]
            if name == "tpot" and value is None and answer.outcome is Outcome.OK:
                continue  # an answer of one token has no gaps
            if value is None and open_ended and (name == "tpot" or waited <= target):
                continue
            within = value is not None and value <= target
            self._judged[name] += 1
            self._within[name] += within
            good = good and within
        return good

    def result(self, about: About, *, now: float, interrupted: bool) -> Result:
        """The result. `now` is when the run ended. Where nothing bounded the measured time, it ended with the last answer."""
        bounded = interrupted or math.isfinite(self.until)
        end = min(self.until, now) if bounded else min(self._last_end, now)
        seconds = max(_LEAST_S, end - self.since)
        counted = {one.value: self.outcomes[one] for one in Outcome}
        has_targets = any(True for _ in self.slo.targets())
        server_counts = self._lengths.counted > 0
        return Result(
            url=about.url,
            model=about.model,
            pattern=about.pattern,
            seed=about.seed,
            seconds=round(seconds, 3),
            interrupted=interrupted,
            counts=Counts(sent=self.sent, not_sent=self.not_sent, **counted),
            rates=RatesSeen(
                requests=round(self._answered / seconds, 4),
                good_requests=round(self._good / seconds, 4) if has_targets else None,
                input_tokens=round(self._input_tokens / seconds, 2) if server_counts else None,
                output_tokens=round(self.output_tokens / seconds, 2),
                in_flight_mean=round(self._flying / seconds, 3),
                in_flight_max=self.most_in_flight,
            ),
            ttft_ms=self.ttft.spread(),
            itl_ms=self.itl.spread(),
            tpot_ms=self.tpot.spread(),
            e2e_ms=self.e2e.spread(),
            longest_gap_ms=self.longest_gap.spread(),
            lengths=self._lengths.result(),
            late_ms=self.late.spread(),
            lag_ms=self.lag.spread(),
            promises=tuple(
                Promise(name=name, target_ms=target, within=self._share(name))
                for name, target in self.slo.targets()
            ),
            problems=tuple(
                Problem(message=message, times=times) for message, times in self._problems.most_common(_SHOWN)
            ),
            notes=about.notes,
        )

    def _share(self, name: str) -> float | None:
        judged = self._judged[name]
        return round(self._within[name] / judged, 5) if judged else None


class _LengthSums:
    """Sums of tokens asked for and delivered, over the completed answers."""

    def __init__(self) -> None:
        self.answers = 0
        self.counted = 0
        self._asked_input = self._asked_output = self._input = self._output = self._events = 0
        self._off = 0.0
        self._by_events = False

    def add(self, answer: Answer) -> None:
        self.answers += 1
        self._asked_input += answer.asked_input
        self._asked_output += answer.asked_output
        self._output += answer.tokens
        self._events += len(answer.arrivals)
        self._by_events = self._by_events or answer.output_tokens is None
        if answer.input_tokens is not None:
            self.counted += 1
            self._input += answer.input_tokens
            self._off += abs(answer.input_tokens - answer.asked_input) / max(1, answer.asked_input)

    def result(self) -> LengthsSeen:
        return LengthsSeen(
            counted_by="events" if self._by_events else "server",
            input_asked=_mean(self._asked_input, self.answers),
            input_mean=_mean(self._input, self.counted),
            input_error_percent=_mean(100 * self._off, self.counted),
            output_asked=_mean(self._asked_output, self.answers),
            output_mean=_mean(self._output, self.answers),
            tokens_per_event=_mean(self._output, self._events),
        )


def _mean(total: float, count: int) -> float | None:
    return round(total / count, 2) if count else None
