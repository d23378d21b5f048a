"""A deployment whose engines preempt, in which a retune is played through tick by tick.

What a change does to the replicas that run with it is given, good or bad; the record goes through its stored form at every
tick, and the program may die before or after it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from plimsoll.api.config import Restarts
from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.retune import (
    Consent,
    Effect,
    Event,
    Knobs,
    Phase,
    RetuneMemory,
    Scene,
    advance,
    effect_of,
)
from plimsoll.control.retune.scene import KNOBS
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Replica, ReplicaState, ServingSet, Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.planning import codec
from tests.control.situations import CAPACITY, NOW, saying

TICK = 30.0
START_S = 90.0
PROMPTS = Spread(p50=250, p95=385, p99=397, worst=400, mean=250, samples=5000)
OUTPUTS = Spread(p50=440, p95=1000, p99=1500, worst=2000, mean=500, samples=5000)


@dataclass(frozen=True)
class Behaviour:
    """Of one replica."""

    preempted: float = 0.3
    itl: float = 0.04
    itl_median: float | None = None
    gap: float = 4.0
    ttft: float = 1.0
    e2e: float = 10.0
    rate: float = 2.0
    waiting: float = 0.0
    tokens: float = 500.0
    errors: float = 0.0
    starts: bool = True
    kv: float = 0.95
    prompts: float = 500.0
    """Prompt tokens a second."""
    comes: float = 1.0
    """Requests that arrive for each that ends."""
    late: float | None = None
    """Share of first tokens that come later than the slo's two seconds; None: nobody says."""


OLD = Behaviour()
GOOD = Behaviour(preempted=0.02, gap=0.5, itl=0.03)


@dataclass
class World:
    change: Behaviour = GOOD
    replicas: int = 3
    free: int = 1
    consent: Consent = Consent(allowed=("maxSequences",))  # noqa: RUF009 - frozen
    has_watermark: bool = True
    slo: Slo = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)  # noqa: RUF009 - frozen
    rules: Restarts = field(default_factory=Restarts)
    old: Behaviour = OLD
    spec: str = "spec-1"
    about: str = ""
    kind: str = ""
    serves: str = "chat-0001"
    knobs: Knobs = Knobs(max_sequences=32)  # noqa: RUF009 - frozen
    planned: dict[str, str] = field(default_factory=dict)
    wants_more: bool = False
    wanted: float | None = None
    more_replicas: bool = False
    scaled_at: float | None = None
    scaled: bool = False
    died: int = 0
    """Times that the first replica with the change ended and came back at once."""
    crashed: int = 0
    """The same of the first replica that serves with a change that stays."""
    fails: Replica | None = None
    """One more replica of those."""
    was: Behaviour | None = None
    """Of replicas without it."""
    stuck_since: float = inf
    """Replicas with the change that are made from then on never serve."""
    homeless: bool = False
    """Whether that is since they find no GPU."""
    now: float = NOW
    jumped: float = 0.0
    """By how much the clock was put forward since the last look, or back."""
    stored: Any = None
    asked: Effect | None = None
    changed_at: dict[int, float] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    why_not: str = ""
    most_changed: int = 0
    dies: Callable[[World, str], bool] | None = None

    @property
    def memory(self) -> RetuneMemory:
        return RetuneMemory() if self.stored is None else codec.decode(RetuneMemory, self.stored)

    @property
    def changed(self) -> int:
        return self.asked.replicas if self.asked is not None else 0

    def run(self, seconds: float) -> World:
        until = self.now + seconds
        while self.now < until:
            self.tick()
        return self

    def tick(self) -> None:
        self.now += TICK
        memory = self.memory
        self._make(effect_of(memory))
        phase = memory.step.phase.value if memory.step else "Idle"
        if self.dies is not None and self.dies(self, phase):
            return
        turned = advance(self.scene(), memory)
        self.jumped = 0.0
        self.why_not = turned.why_not or ""
        self.events += turned.events
        if not self.phases or self.phases[-1] != phase:
            self.phases.append(phase)
        self.stored = codec.encode(turned.memory)

    def jump(self, seconds: float) -> None:
        """The clock of all does; replicas are as far as they were."""
        self.now, self.jumped = self.now + seconds, seconds
        self.changed_at = {place: at + seconds for place, at in self.changed_at.items()}

    def _make(self, effect: Effect | None) -> None:
        if effect is not None and effect.adopt:
            before = self.knobs
            self.planned.setdefault(effect.setting, self.knobs.text(effect.setting))
            self.knobs = self.with_change(effect)
            if self.changed_at:
                self.was, self.old, self.serves = self.old, self.change, f"{self.serves}-{effect.value}"
            elif self.was is not None and self.knobs != before:
                # It goes out of the plan again, and replicas are made anew.
                self.old, self.crashed, self.fails = self.was, 0, None
            self.asked = None
            self.changed_at.clear()
            return
        self.asked = effect
        for place in range(self.changed):
            self.changed_at.setdefault(place, self.now)
        for place in [place for place in self.changed_at if place >= self.changed]:
            del self.changed_at[place]
        self.most_changed = max(self.most_changed, self.changed)

    def with_change(self, effect: Effect) -> Knobs:
        return replace(self.knobs, **{KNOBS[effect.setting]: int(effect.value)})

    def _left(self) -> int:
        """Replicas without the change."""
        extra = self.asked is not None and self.asked.surge and self.changed
        return max(0, self.replicas - self.changed + (1 if extra else 0))

    def scene(self) -> Scene:
        changed = ServingSet(
            name="set-b",
            pool="a",
            capacity=CAPACITY,
            replicas=tuple(map(self._changed, sorted(self.changed_at))),
        )
        left = self._left()
        serving = ServingSet(
            name="set-a",
            pool="a",
            capacity=CAPACITY,
            replicas=self._unchanged(left),
            wanted=self.replicas,
        )
        return Scene(
            now=self.now,
            jumped_s=self.jumped,
            name="team/chat",
            about=self.about,
            kind=self.kind,
            knobs=self.knobs,
            serving=serving,
            signals=self.heard("old", left),
            changed=changed if self.changed_at else None,
            changed_signals=self.heard("new", changed.ready) if self.changed_at else None,
            window=self.window(left, changed.ready),
            slo=self.slo,
            consent=self.consent,
            has_watermark=self.has_watermark,
            planned=self.planned,
            restarts=self.rules,
            spec=self.spec,
            serves=self.serves,
            wants_more=self.wants_more,
            wanted=self.wanted,
            more_replicas=self.more_replicas,
            scaled_at=self.scaled_at,
            scaled=self.scaled,
            free_replicas=self.free,
            start_s=START_S,
            fleet_gpus=100,
        )

    def heard(self, kind: str, count: int) -> Signals:
        return said(self.old if kind == "old" else self.change, count, self.now, kind)

    def window(self, old: int, new: int) -> Window:
        """Two looks at each replica's counters, which count at one pace from the beginning."""
        found = Window()
        for at in (self.now - TICK, self.now):
            counted = [counts(self.old, f"old-{i}", at) for i in range(old)]
            found = found.add(at, [*counted, *(counts(self.change, f"new-{i}", at) for i in range(new))])
        return found

    def _unchanged(self, count: int) -> tuple[Replica, ...]:
        found = tuple(replica(f"old-{i}", ReplicaState.READY, NOW - 9999) for i in range(count))
        if found and self.crashed:
            found = (replace(found[0], restarts=self.crashed), *found[1:])
        return found if self.fails is None else (*found[1:], self.fails)

    def _changed(self, place: int) -> Replica:
        since = self.changed_at[place]
        if not self.change.starts and self.now - since > START_S:
            return replica(f"new-{place}", ReplicaState.FAILED, since)
        ready = self.now - since >= START_S and since < self.stuck_since
        missing = ReplicaState.UNSCHEDULABLE if self.homeless else ReplicaState.STARTING
        state = ReplicaState.READY if ready else missing
        return replace(replica(f"new-{place}", state, since), restarts=0 if place else self.died)

    @property
    def at_old_settings(self) -> bool:
        return self.asked is None or self.asked.replicas == 0

    @property
    def in_flight(self) -> bool:
        step = self.memory.step
        return step is not None and step.phase is not Phase.DONE


def replica(name: str, state: ReplicaState, since: float) -> Replica:
    return Replica(id=name, state=state, since=since, created=since)


def counts(how: Behaviour, pod: str, at: float) -> PodSample:
    finished = how.rate * (at - NOW + 1e5)
    return PodSample(
        pod=pod,
        at=at,
        finished=finished,
        preemptions=how.preempted * finished,
        errors=how.errors * finished,
        generation_tokens=how.tokens * (at - NOW + 1e5),
    )


def said(how: Behaviour, count: int, now: float, kind: str = "old") -> Signals:
    if not count:
        return Signals(at=now, live=0, replicas=())
    replicas = saying(
        count,
        inflight=30,
        waiting=how.waiting,
        rate=how.rate,
        kv=how.kv,
        preemptions=how.preempted * how.rate * 120,
        errors=how.errors * how.rate * 120,
        generation_tokens=how.tokens * 120,
        prompt_tokens=how.prompts * 120,
        kv_tokens=8192,
        block_size=128,
        arrived=how.comes * how.rate * 120,
    )
    replicas = tuple(replace(one, replica=f"{kind}-{place}") for place, one in enumerate(replicas))
    many = 1000.0 * how.rate
    return Signals(
        at=now,
        live=count,
        replicas=replicas,
        latencies=Latencies(
            ttft=firsts(how, many),
            itl=gaps(how, 100 * many),
            e2e=flat(how.e2e, many),
            prompt=PROMPTS,
            output=OUTPUTS,
        ),
    )


def firsts(how: Behaviour, samples: float) -> Spread:
    shape = (
        None
        if how.late is None
        else Histogram((2.0, how.ttft, inf), ((1 - how.late) * samples, samples, samples))
    )
    return replace(flat(how.ttft, samples), shape=shape)


def gaps(how: Behaviour, samples: float) -> Spread:
    """One in a thousand is as long as the longest."""
    shape = Histogram((how.gap / 2, how.gap, inf), (0.999 * samples, samples, samples))
    return replace(flat(how.itl, samples), worst=how.gap, p50=how.itl_median or how.itl / 2, shape=shape)


def flat(p99: float, samples: float) -> Spread:
    return Spread(p50=p99 / 2, p95=p99 * 0.9, p99=p99, worst=p99, mean=p99 / 2, samples=samples)


def in_phase(phase: Phase, world: World) -> World:
    """Played on until what is tried is there."""
    while world.memory.step is None or world.memory.step.phase is not phase:
        world.tick()
    return world


def judging(world: World) -> World:
    """Played on until what is tried is judged."""
    return in_phase(Phase.JUDGING, world)
