"""A retune in virtual time: engines of the simulator, under users who ask on and on, scraped and judged as the operator does.

What a change does to an engine follows from its limits alone. A rung is made bad by what happens to the engines that have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import Replica, ReplicaState
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.estate import Instance
from plimsoll.simulate.request import Request
from plimsoll.simulate.scrapes import Prometheus
from plimsoll.simulate.steps import Limits, StepTimes
from tests.control.retune.world import START_S, TICK, World
from tests.simulate.worlds import world

TIMES = StepTimes(
    decode=(0.0, *(0.002 + 0.0022 * n for n in range(1, 33))),
    kv_token=1e-7,
    chunk=0.004,
    prompt_token=2e-4,
    seen_token=1e-9,
)
"""As measured where a step takes nearly as long as it has requests: more of them at once answer no more of them."""
LIMITS = Limits(
    blocks=64,
    block_size=128,
    max_num_seqs=32,
    max_num_batched_tokens=2048,
    max_model_len=4096,
    prefix_caching=False,
)
USERS = 24
"""Of each replica, of which its pool holds about ten."""
STEP_S = 1.0


@dataclass
class Played(World):
    """Real figures in place of given ones: of engines that run in the world's time."""

    engines: dict[str, Instance] = field(default_factory=dict)
    looked: Window = field(default_factory=Window)
    """What the operator has in its memory; gone with it."""
    asks: bool = True
    dead: bool = False
    """Whether replicas with the change die of it."""
    slower: float = 1.0
    """How long a step of theirs takes beside one of the others."""
    moot: bool = False
    """Whether the change changes nothing."""
    alive: Callable[[Played], bool] | None = None
    """Whether the operator is, at this tick."""
    scraper: Prometheus = field(default_factory=lambda: Prometheus(world(limits=LIMITS), histograms=True))
    random: Random = field(default_factory=lambda: Random(1))

    def tick(self) -> None:
        self._pass(self.now, self.now + TICK)
        if self.alive is not None and not self.alive(self):
            self.now += TICK
            self.looked = Window()
            return
        super().tick()

    def _pass(self, since: float, until: float) -> None:
        """Everything but the operator goes on."""
        now = since
        while now < until:
            now += STEP_S
            for one in self._serving(now):
                one.engine.advance(now)
                one.engine.finished.clear()
            self._ask(now)
        # One that has come in these seconds is first looked at by the next scrape.
        self.looked = self.looked.add(until, self.scraper.scrape(self._serving(since), until))

    def _ask(self, now: float) -> None:
        serving = self._serving(now)
        missing = USERS * self.replicas - sum(one.engine.in_flight for one in serving)
        for _ in range(missing if self.asks and serving else 0):
            least = min(serving, key=lambda one: one.engine.in_flight)
            asked = int(min(2000, self.random.lognormvariate(6.0, 0.6)))
            assert least.engine.submit(Request(now, self.random.randint(100, 400), asked), now)

    def _serving(self, now: float) -> list[Instance]:
        """Engines that are up; those that should be and are not yet are made, and others go with all that runs on them."""
        changed = {} if self.dead else {f"new-{i}": at for i, at in self.changed_at.items()}
        wanted = {f"old-{i}" for i in range(self._left())}
        wanted |= {name for name, at in changed.items() if now - at >= START_S}
        for name in sorted(wanted - self.engines.keys()):
            self.engines[name] = Instance(
                name=name,
                ordinal=0,
                site=0,
                engine=Engine(TIMES, LIMITS),
                state=ReplicaState.READY,
                created=now,
                since=now,
            )
            self.engines[name].engine.now = now
        for name in self.engines.keys() - wanted:
            del self.engines[name]
        for name, one in self.engines.items():
            with_it = name.startswith("new") and self.asked is not None
            self._set(one.engine, with_it=with_it)
        return list(self.engines.values())

    def _set(self, engine: Engine, *, with_it: bool) -> None:
        knobs = self.knobs
        if with_it and self.asked is not None and not self.moot:
            knobs = self.with_change(self.asked)
        engine.limits = replace(
            LIMITS,
            max_num_seqs=knobs.max_sequences,
            watermark_blocks=LIMITS.blocks * knobs.watermark_permille // 1000,
        )
        slower = self.slower if with_it else 1.0
        engine.times = TIMES.scaled(steps=slower, cache=slower, prompts=slower, beside=slower)

    def heard(self, kind: str, count: int) -> Signals:
        return signals_of(self.looked, now=self.now, live=[f"{kind}-{i}" for i in range(count)])

    def window(self, old: int, new: int) -> Window:
        return self.looked

    def _changed(self, place: int) -> Replica:
        seen = super()._changed(place)
        return replace(seen, state=ReplicaState.FAILED, restarts=1) if self.dead else seen
