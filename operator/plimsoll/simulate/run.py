"""One policy through one trace in one world: virtual time, from the first arrival to the last answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plimsoll.control.samples import PodSample
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.policies.base import Policy, View
from plimsoll.simulate.request import Request
from plimsoll.simulate.router import Routing, router_of
from plimsoll.simulate.scrapes import Prometheus
from plimsoll.simulate.tally import Action, Outcome, Tally
from plimsoll.simulate.world import DECIDE_AFTER_S, SCRAPE_S, World

AFTERMATH_S: Final = 1200.0
"""How long after the last arrival answers are still waited for."""

Progress = Callable[[float], None]


class Run:
    def __init__(
        self,
        *,
        world: World,
        arrivals: Arrivals,
        policy: Policy,
        routing: Routing = Routing.SERVICE,
        initial: int = 1,
        least: int = 1,
        most: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.world = world
        self.arrivals = arrivals
        self.policy = policy
        self.least = least
        self.most = world.hardware.most if most is None else most
        self.estate = Estate(world, histograms=policy.histograms)
        self.estate.begin(min(max(initial, least), self.most))
        self.tally = Tally(world.slo, arrivals.span_s)
        self._router = router_of(routing, self.estate)
        self._prometheus = Prometheus(world, histograms=policy.histograms)
        self._latest: dict[str, PodSample] = {}
        self._arrived: tuple[PodSample, ...] = ()
        self._scrape_at = 0.0
        self._decide_at = DECIDE_AFTER_S
        self._progress = progress

    def outcome(self) -> Outcome:
        arrivals, pick, tally = self.arrivals, self._router.pick, self.tally
        tally.arrivals(arrivals.at)
        inputs, outputs, prefixes = arrivals.inputs, arrivals.outputs, arrivals.prefixes
        next_at = 0.0
        for place, now in enumerate(arrivals.at):
            if next_at <= now:
                next_at = self._catch_up(now)
            instance = pick(now)
            if instance is None:
                tally.failed += 1
                continue
            request = Request(now, inputs[place], outputs[place], prefixes[place] if prefixes else ())
            if not instance.engine.submit(request, now):
                tally.failed += 1
        self._catch_up(arrivals.span_s)
        self._wait_for_answers(arrivals.span_s)
        return tally.outcome(self.estate)

    def _catch_up(self, now: float) -> float:
        """Everything that is due by now, in order; returns when the next thing is."""
        while True:
            at = min(self._scrape_at, self._decide_at, self.estate.next_at)
            if at > now:
                return at
            if at == self.estate.next_at:
                self.estate.happen(at)
            elif at == self._scrape_at:
                self._scrape(at)
                self._scrape_at += SCRAPE_S
            else:
                self._decide(at)
                self._decide_at += SCRAPE_S

    def _scrape(self, now: float) -> None:
        estate, tally = self.estate, self.tally
        for instance in estate.instances:
            instance.engine.advance(now)
            if instance.engine.finished:
                tally.answered(instance.engine.finished)
        estate.sweep(now)
        self._settle()
        self._arrived = (*self._arrived, *self._prometheus.scrape(estate.ready, now))
        tally.look(estate, now)
        if self._progress is not None:
            self._progress(now)

    def _settle(self) -> None:
        """What ended replicas leave behind: their last answers, and requests that got none."""
        for engine in self.estate.retired:
            self.tally.answered(engine.finished)
        self.estate.retired.clear()
        self.tally.failed += len(self.estate.lost)
        self.estate.lost.clear()

    def _decide(self, now: float) -> None:
        estate = self.estate
        for sample in self._arrived:
            known = self._latest.get(sample.pod)
            if known is None or known.at < sample.at:
                self._latest[sample.pod] = sample
        arrived, self._arrived = self._arrived, ()
        view = View(
            now=now,
            replicas=tuple(one.seen() for one in estate.instances),
            latest=self._latest,
            arrived=arrived,
            told=estate.told,
            least=self.least,
            most=self.most,
        )
        wish = self.policy.decide(view)
        if wish is None:
            return
        replicas = min(max(wish.replicas, self.least), self.most)
        if replicas != estate.told:
            self.tally.actions.append(
                Action(at=now, before=estate.told, after=replicas, reason=wish.reason, message=wish.message)
            )
            estate.tell(replicas, now)

    def _wait_for_answers(self, end: float) -> None:
        """Nothing arrives any more and nothing is decided; what runs may finish, at no further cost."""
        estate = self.estate
        estate.close(end)
        for instance in estate.instances:
            instance.engine.advance(end + AFTERMATH_S)
            self.tally.answered(instance.engine.finished)
        self._settle()
