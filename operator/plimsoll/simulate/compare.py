"""Policies against each other: the same arrivals, the same world, the same replicas to begin with.

What nobody could know before (how many replicas a constant number needs, how full the oracle may run them) is searched here
on the very trace; what is tuned on another trace is tuned by whoever calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from plimsoll.simulate.policies.oracle import BIN_S
from plimsoll.simulate.policies.registry import KINDS, STATIC, Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.run import Progress, Run
from plimsoll.simulate.tally import Outcome

GOAL_PCT: Final = 99.0
BEGIN_FULL: Final = 0.6
"""How full replicas are at the beginning of a story, whatever the policy."""
BEGIN_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    policy: str
    parameter: float
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


@dataclass(slots=True)
class Comparison:
    """Runs of policies on one stage, each done once."""

    stage: Stage
    routing: Routing = Routing.SERVICE
    progress: Progress | None = None
    _done: dict[tuple[str, float], Result] = field(default_factory=dict)
    _initial: int = 0

    def __post_init__(self) -> None:
        work = self.stage.work[: int(BEGIN_S / BIN_S)]
        self._initial = max(1, ceil(sum(work) / (len(work) * BIN_S) / BEGIN_FULL))

    def run(self, name: str, parameter: float) -> Result:
        key = "static" if name in STATIC else name, parameter
        if key not in self._done:
            policy = KINDS[name].make(self.stage, parameter)
            story = Run(
                world=self.stage.world,
                arrivals=self.stage.arrivals,
                policy=policy,
                routing=self.routing,
                initial=round(parameter) if name in STATIC else self._initial,
                least=self.stage.scenario.least,
                most=self.stage.scenario.most,
                progress=self.progress,
            )
            self._done[key] = Result(
                policy=name, parameter=parameter, settings=policy.settings, outcome=story.outcome()
            )
        done = self._done[key]
        return Result(policy=name, parameter=parameter, settings=done.settings, outcome=done.outcome)

    def best(self, name: str) -> Result:
        """The usual setting; in hindsight, the cheapest that keeps the goal, else the one that comes nearest."""
        if name == "static_peak":
            return self.static_peak()
        if name == "static_mean":
            return self.static_mean()
        if KINDS[name].hindsight:
            return self.cheapest(name)
        return self.run(name, KINDS[name].usual)

    def cheapest(self, name: str) -> Result:
        """Of the values that are tried, in the order of rising cost: the first that keeps the goal, else the best seen.

        More cost is taken to serve no fewer, so half of those left are spared at each look.
        """
        tried = KINDS[name].tried
        seen: dict[int, Result] = {}
        low, high = 0, len(tried)
        while low < high:
            middle = (low + high) // 2
            seen[middle] = self.run(name, tried[middle])
            low, high = (low, middle) if seen[middle].slo_pct >= GOAL_PCT else (middle + 1, high)
        return seen[low] if low in seen else max(seen.values(), key=lambda one: one.slo_pct)

    def static_peak(self) -> Result:
        """The smallest constant number that keeps the goal; the largest that there may be where none does."""
        scenario = self.stage.scenario
        least, most = scenario.least, scenario.most
        guess = min(most, max(least, ceil(max(self._work_by_ten_minutes()) / 0.75)))
        if self._keeps(guess):
            while guess > least and self._keeps(guess - 1):
                guess -= 1
            return self.run("static_peak", guess)
        low, high, step = guess, guess, 1
        while high < most and not self._keeps(high):
            low, high, step = high, min(most, high + step), 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._keeps(middle) else (middle, high)
        return self.run("static_peak", high)

    def static_mean(self) -> Result:
        """What the mean load would need, as full as the busiest ten minutes are with the number for the peak."""
        peak = self.static_peak().parameter
        work = self._work_by_ten_minutes()
        share = sum(work) / len(work) / max(work)
        return self.run("static_mean", max(self.stage.scenario.least, ceil(peak * share)))

    def _keeps(self, replicas: int) -> bool:
        return self.run("static_peak", replicas).slo_pct >= GOAL_PCT

    def _work_by_ten_minutes(self) -> list[float]:
        """Replicas kept busy."""
        bins = self.stage.work
        each = round(600 / BIN_S)
        whole = [bins[at : at + each] for at in range(0, max(1, len(bins) - 1), each)]
        return [sum(part) / (len(part) * BIN_S) for part in whole]
