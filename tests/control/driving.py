"""The operator's loop around the load model: scrape, decide, scale, every 15 seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from plimsoll.control.decision import Action, Decision
from plimsoll.control.fleet import EMPTY
from plimsoll.control.law import LAW, Law
from plimsoll.control.memory import Memory
from plimsoll.control.samples import Window
from plimsoll.control.scaling import decide
from plimsoll.control.signals import signals_of
from plimsoll.control.situation import Bounds, Role, ServingSet, Situation, Slo
from tests.control.load_model import PLANNED, SLO_ITL, SLO_TTFT, Cluster

TICK = 15
WIDE = Bounds(min=1, max=40)


@dataclass
class Story:
    """What happened, tick by tick."""

    cluster: Cluster
    bounds: Bounds = WIDE
    law: Law = LAW
    memory: Memory = EMPTY
    slo_itl: float = SLO_ITL
    window: Window = field(default_factory=Window)
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    skew: float = 0.0
    """Of the machine's clock, by which everybody tells the time."""

    def run(self, seconds: float) -> Story:
        until = self.cluster.now + seconds
        while self.cluster.now < until:
            self.tick()
        return self

    def tick(self) -> Decision:
        cluster = self.cluster
        cluster.advance(TICK)
        now = cluster.now + self.skew
        samples = [replace(one, at=one.at + self.skew) for one in cluster.samples()]
        self.window = self.window.add(now, samples)
        signals = signals_of(self.window, now=now, live=cluster.live())
        serving = ServingSet(name="set-a", pool="gpus", capacity=PLANNED, replicas=cluster.replicas())
        situation = Situation(
            name="team/chat",
            roles=(Role(sets=(serving,), signals=signals, bounds=self.bounds),),
            slo=Slo(ttft_p99_s=SLO_TTFT, itl_p99_s=self.slo_itl),
        )
        decision = decide(now=now, situation=situation, memory=self.memory, law=self.law)
        self.memory = decision.memory
        self.decisions.append((cluster.now - cluster.begin, decision))
        cluster.scale(decision.replicas)
        return decision

    @property
    def actions(self) -> list[tuple[float, Action, int]]:
        return [
            (at, decision.roles[0].action, decision.replicas)
            for at, decision in self.decisions
            if decision.roles[0].action is not Action.HOLD
        ]

    def reversals(self, since: float = 0.0) -> int:
        """Ups after downs and downs after ups."""
        ways = [action for at, action, _ in self.actions if at >= since]
        return sum(1 for before, after in pairwise(ways) if before is not after)
