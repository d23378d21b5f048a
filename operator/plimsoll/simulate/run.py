"""One policy through one trace in one world: virtual time, from the first arrival to the last answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plimsoll.control.decision import RISING
from plimsoll.facts.pod_sample import PodSample
from plimsoll.simulate.alone import late_from, refused_from
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.gateway import Gateway, Wake
from plimsoll.simulate.outcome import Action, Outcome
from plimsoll.simulate.policies.base import Policy, SetView, View
from plimsoll.simulate.request import Request
from plimsoll.simulate.router import Routing, router_of
from plimsoll.simulate.scrapes import Prometheus
from plimsoll.simulate.spending import Spending
from plimsoll.simulate.tally import Tally
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
        wake: Wake | None = None,
        every_s: float = SCRAPE_S,
        progress: Progress | None = None,
    ) -> None:
        """`every_s` lies between two decisions. With `wake`, a gateway holds requests that meet no ready replica, and gives the wake signal; without
        it they are refused."""
        self.world = world
        self.arrivals = arrivals
        self.policy = policy
        self.least = least
        self.most = world.hardware.most if most is None else most
        self.estate = Estate(world, histograms=policy.histograms, prefix_tokens=arrivals.prefix_tokens)
        self.estate.begin(min(max(initial, least), self.most))
        self.tally = Tally(world.slo, arrivals.span_s, spending=Spending(least=least))
        self._wake = wake
        self._gateway = None if wake is None else Gateway()
        self._waiting: float | None = None
        self._router = router_of(routing, self.estate)
        self._prometheus = Prometheus(world, histograms=policy.histograms)
        self._latest: dict[str, PodSample] = {}
        self._arrived: tuple[PodSample, ...] = ()
        self._scrape_at = 0.0
        self._decide_at = DECIDE_AFTER_S
        self._every = every_s
        self._progress = progress

    def outcome(self) -> Outcome:
        arrivals, pick, tally = self.arrivals, self._router.pick, self.tally
        inputs, outputs, prefixes = arrivals.inputs, arrivals.outputs, arrivals.prefixes
        tally.arrivals(
            arrivals.at, inputs, refused_from=refused_from(self.world), late_from=late_from(self.world)
        )
        gateway = self._gateway
        next_at = 0.0
        for place, now in enumerate(arrivals.at):
            if next_at <= now:
                next_at = self._catch_up(now)
            request = Request(now, inputs[place], outputs[place], prefixes[place] if prefixes else ())
            if gateway is not None and (gateway.held or not self.estate.ready):
                gateway.hold(request)
                continue
            instance = pick(now)
            if instance is None or not instance.engine.submit(request, now):
                tally.failed += 1
        self._catch_up(arrivals.span_s)
        self._wait_for_answers(arrivals.span_s)
        return tally.outcome(self.estate, self._gateway)

    def _hand_on(self, now: float) -> None:
        """Hand on what the gateway holds, as far as there are replicas to take it."""
        if self._gateway is not None and self._gateway.held:
            self.tally.failed += self._gateway.hand_on(self._picked, now)

    def _picked(self, now: float) -> Engine | None:
        instance = self._router.pick(now)
        return None if instance is None else instance.engine

    def _catch_up(self, now: float) -> float:
        """Do everything that is due by now, in its order; returns when the next thing is due."""
        while True:
            at = min(self._scrape_at, self._decide_at, self.estate.next_at)
            if self._gateway is not None and self._gateway.next_at < at:
                if self._gateway.next_at > now:
                    return self._gateway.next_at
                self._hand_on(self._gateway.next_at)
                continue
            if at > now:
                return at
            if at == self.estate.next_at:
                self.estate.happen(at)
                self._hand_on(at)
            elif at == self._scrape_at:
                self._scrape(at)
                self._scrape_at += SCRAPE_S
            else:
                self._decide(at)
                self._decide_at += self._every

    def _scrape(self, now: float) -> None:
        estate, tally = self.estate, self.tally
        for instance in estate.instances:
            instance.engine.advance(now)
            if instance.engine.finished:
                tally.answered(instance.engine.finished)
        estate.sweep(now)
        self._settle()
        self._arrived = (*self._arrived, *self._prometheus.scrape(estate.ready, now))
        if self._gateway is not None and self._wake is not None and self._wake.queried:
            self._waiting = float(len(self._gateway.held))
        if now <= self.arrivals.span_s:
            held = 0 if self._gateway is None else len(self._gateway.held)
            tally.look(estate, now, held=held)
        if self._progress is not None:
            self._progress(now)

    def _settle(self) -> None:
        """Count what replicas that have ended leave behind: their last answers, and requests that got none."""
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
        if self._every > SCRAPE_S:
            # A Prometheus tells the newest scrape of each replica alone, whatever was scraped since the last look.
            arrived = tuple({sample.pod: sample for sample in arrived}.values())
        view = View(
            now=now,
            replicas=tuple(one.seen() for one in estate.instances),
            latest=self._latest,
            arrived=arrived,
            told=estate.told,
            least=self.least,
            most=self.most,
            waiting=self._waiting,
            written=0 if self._gateway is None else self._gateway.written,
            sets=self._sets(),
            tried=frozenset(one.name for one in estate.instances if one.tried),
        )
        wish = self.policy.decide(view)
        self.tally.causes.rising = wish is not None and wish.reason == RISING
        if wish is not None and len(estate.sites) == 1:
            self.tally.spending.asked = wish.asked
        if wish is None:
            return
        each = estate.spread(min(max(wish.replicas, self.least), self.most))
        if wish.each is not None:
            each = list(wish.each)
        replicas = sum(each)
        if each != estate.told_each:
            if now <= self.arrivals.span_s:
                self.tally.actions.append(
                    Action(
                        at=now, before=estate.told, after=replicas, reason=wish.reason, message=wish.message
                    )
                )
            estate.tell_each(each, now)
        estate.try_out(wish.change, now)
        if now <= self.arrivals.span_s:
            self.tally.acts += wish.acts

    def _sets(self) -> tuple[SetView, ...]:
        estate = self.estate
        if len(estate.sites) == 1:
            return ()
        return tuple(
            SetView(told=told, replicas=tuple(one.seen() for one in estate.instances if one.site == site))
            for site, told in enumerate(estate.told_each)
        )

    def _wait_for_answers(self, end: float) -> None:
        """Let what runs finish at no further cost; nothing arrives any more, and nothing is decided, except that a deployment may still wake
        for requests that a gateway holds, which else would have no answer."""
        estate = self.estate
        estate.close(end)
        at = end
        while self._gateway is not None and self._gateway.held and at < end + AFTERMATH_S:
            at += SCRAPE_S
            self._catch_up(at)
        for instance in estate.instances:
            instance.engine.advance(end + AFTERMATH_S)
            self.tally.answered(instance.engine.finished)
        self._settle()
