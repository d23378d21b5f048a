"""Policies against each other: the same arrivals, the same world, the same replicas to begin with.

What nobody could know before (how many replicas a constant number needs, how full the oracle may run them) is searched here
on the very trace; what is tuned on another trace is tuned by whoever calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import ceil
from typing import Final

from plimsoll.simulate.outcome import Outcome
from plimsoll.simulate.policies.oracle import BIN_S
from plimsoll.simulate.policies.registry import KINDS, STATIC, Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.run import Progress, Run
from plimsoll.simulate.world import SCRAPE_S

GOAL_PCT: Final = 99.0
BEGIN_FULL: Final = 0.6
"""How full replicas are at the beginning of a story, whatever the policy."""
BEGIN_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    policy: str
    parameter: float
    second: float
    settings: Mapping[str, float]
    outcome: Outcome

    @property
    def slo_pct(self) -> float:
        """Without limits to keep, everybody who was answered counts."""
        figures = self.outcome.figures
        if figures.slo_pct is not None:
            return figures.slo_pct
        lost = figures.failed + figures.unanswered
        return 100 * (figures.requests - lost) / max(1, figures.requests)

    @property
    def keeps(self) -> bool:
        """Without limits it is not enough that all are answered in the end: a queue that only grows is answered after it."""
        return self.slo_pct >= GOAL_PCT and (self.outcome.figures.slo_pct is not None or self._keeps_up)

    @property
    def _keeps_up(self) -> bool:
        left = self.outcome.points[-1].waiting if self.outcome.points else 0
        return left <= (1 - GOAL_PCT / 100) * self.outcome.figures.requests

    @property
    def gpu_hours(self) -> float:
        return self.outcome.figures.gpu_hours


def hours_said(value: float) -> str:
    """GPU-hours as they are told; a few of them with so many digits that what is compared can be reckoned from them."""
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


@dataclass(slots=True)
class Comparison:
    """Runs of policies on one stage, each done once."""

    stage: Stage
    routing: Routing = Routing.SERVICE
    progress: Progress | None = None
    begin: int | None = None
    """Replicas to begin with, whatever the policy; None: as many as the first ten minutes keep busy, with some room."""
    _done: dict[tuple[str, float, float], Result] = field(default_factory=dict)
    _initial: int = 0

    def __post_init__(self) -> None:
        busy = self._busy(0, int(BEGIN_S / BIN_S))
        self._initial = self.begin or max(1, self.stage.replicas(busy / BEGIN_FULL))

    def run(self, name: str, parameter: float, second: float | None = None) -> Result:
        """The run of a policy with these parameters; without `second`, with its usual value."""
        kind = KINDS[name]
        second = kind.second.usual if second is None else second
        key = "static" if name in STATIC else name, parameter, second
        if key not in self._done:
            scenario, policy = self.stage.scenario, kind.make(self.stage, parameter, second)
            sleeps = kind.sleeps and scenario.zero is not None
            story = Run(
                world=self.stage.world,
                arrivals=self.stage.arrivals,
                policy=policy,
                routing=self.routing,
                initial=round(parameter) if name in STATIC else self._initial,
                least=0 if sleeps else scenario.least,
                most=scenario.most,
                wake=scenario.zero,
                every_s=scenario.interval_s if kind.paced else SCRAPE_S,
                progress=self.progress,
            )
            self._done[key] = Result(
                policy=name,
                parameter=parameter,
                second=second,
                settings=policy.settings,
                outcome=story.outcome(),
            )
        return replace(self._done[key], policy=name)

    def best(self, name: str) -> Result:
        """The policy's run with its usual setting. A policy of hindsight is run with its best: the cheapest that keeps the goal, or the one that
        comes nearest to it."""
        if name == "static_peak":
            return self.static_peak()
        if name == "static_mean":
            return self.static_mean()
        if KINDS[name].hindsight:
            return self.cheapest(name)
        return self.run(name, KINDS[name].usual)

    def cheapest(self, name: str) -> Result:
        """The best setting of both parameters: the cheapest that keeps the goal, else the one that comes nearest to it.

        The second parameter's usual value is searched first. Its other values take no more runs each, and mostly fewer.
        """
        usual = KINDS[name].second.usual
        seen = self._halving(name, usual)
        most = len(seen)
        for second in KINDS[name].second.tried:
            if second != usual:
                seen += self._stepping(name, second, _cheapest(seen), most)
        return _cheapest(seen)

    def _halving(self, name: str, second: float) -> list[Result]:
        """Search the values by halving. They are in the order of rising cost, and a dearer one is taken to serve at least as many."""
        tried = KINDS[name].tried
        seen: list[Result] = []
        low, high = 0, len(tried)
        while low < high:
            middle = (low + high) // 2
            seen.append(self.run(name, tried[middle], second))
            low, high = (low, middle) if seen[-1].keeps else (middle + 1, high)
        return seen

    def _stepping(self, name: str, second: float, best: Result, most: int) -> list[Result]:
        """Search with another second parameter, from the best value so far to where the goal is only just kept, or where it is no cheaper."""
        tried = KINDS[name].tried
        seen: list[Result] = []
        place = tried.index(best.parameter)
        while 0 <= place < len(tried) and len(seen) < most:
            seen.append(self.run(name, tried[place], second))
            if seen[-1].keeps != seen[0].keeps:
                break
            if not seen[-1].keeps and best.keeps and seen[-1].gpu_hours >= best.gpu_hours:
                break
            place += -1 if seen[-1].keeps else 1
        return seen

    def static_peak(self) -> Result:
        """The smallest constant number that keeps the goal. Where none does: the largest that there may be, or of several sets the nearest.

        Sets fill one after the other, so it is searched set by set. Within one, more replicas are taken to serve better. Beside a quicker one
        they may serve worse, as routers send requests to slow ones too, so no number says anything of those before its own set.
        """
        scenario = self.stage.scenario
        most = scenario.reachable
        low = min(scenario.least, most)
        guess = ceil(max(self._work_by_ten_minutes()) / 0.75)
        full: list[Result] = []
        for room in accumulate(one.site.room for one in scenario.sets) if scenario.sets else (most,):
            high = min(most, room)
            if low <= high:
                found = self.run("static_peak", self._smallest(low, guess, high))
                if found.keeps:
                    return found
                full.append(found)
                # The guess is of the first set's. In a further one the first few may be all that keep it.
                low = guess = high + 1
        return max(reversed(full), key=lambda one: one.slo_pct)

    def _smallest(self, least: int, guess: int, most: int) -> int:
        """The smallest number of these that keeps the goal, or the largest where none is found to; the guess is tried first."""
        guess = min(most, max(least, guess))
        if self._keeps(guess):
            while guess > least and self._keeps(guess - 1):
                guess -= 1
            return guess
        low, high, step = guess, guess, 1
        while high < most and not self._keeps(high):
            low, high, step = high, min(most, high + step), 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._keeps(middle) else (middle, high)
        return high

    def static_mean(self) -> Result:
        """The constant number for the mean load, with replicas as full as those for the peak are in the busiest ten minutes."""
        peak = self.static_peak().parameter
        work = self._work_by_ten_minutes()
        share = sum(work) / len(work) / max(work) if max(work) else 1.0
        return self.run("static_mean", max(self.stage.scenario.least, ceil(peak * share)))

    def _keeps(self, replicas: int) -> bool:
        return self.run("static_peak", replicas).keeps

    def _work_by_ten_minutes(self) -> list[float]:
        each = round(600 / BIN_S)
        return [self._busy(at, each) for at in range(0, max(1, len(self.stage.work) - 1), each)]

    def _busy(self, begin: int, bins: int) -> float:
        """How many replicas the work of so many minutes keeps busy, over as much of them as lies in the trace; at least over one scrape."""
        work = self.stage.work[begin : begin + bins]
        there_s = min(len(work) * BIN_S, self.stage.arrivals.span_s - begin * BIN_S)
        return sum(work) / max(SCRAPE_S, there_s)


def _cheapest(seen: Sequence[Result]) -> Result:
    """Of equally cheap ones, that with the value of the main parameter that is usually cheaper."""
    kept = [one for one in seen if one.keeps]
    if not kept:
        return max(seen, key=lambda one: one.slo_pct)
    return min(kept, key=lambda one: (one.gpu_hours, KINDS[one.policy].tried.index(one.parameter)))
