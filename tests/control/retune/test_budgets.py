"""What holds of retunes whatever happens: random worlds, drawn by seed, in which replicas come and go, metrics and GPUs too."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Effect, Phase, RetuneMemory, Scene, advance
from plimsoll.planning import codec
from tests.control.retune.world import GOOD, OLD, Behaviour, World

DAY = 86400.0
STORIES, TICKS = 200, 90
CHANGES = (GOOD, GOOD, GOOD, OLD, Behaviour(starts=False), replace(GOOD, gap=9.0), replace(GOOD, rate=0.4))


@dataclass
class Watched(World):
    """Counts by itself what is taken away from under its users: replicas that go before another one has come."""

    taken: list[float] = field(default_factory=list)
    dark: bool = False
    most: int = 0
    """Replicas that there have been."""

    def _make(self, effect: Effect | None) -> None:
        before, surge = self.changed, self.asked is not None and self.asked.surge
        super()._make(effect)
        step = self.memory.step
        if effect is None or effect.adopt or step is None or step.surge or surge:
            # Nobody asked, or a person's edit did, or it stays as it is.
            return
        self.taken += [self.now] * abs(self.changed - before)

    def scene(self) -> Scene:
        return replace(super().scene(), data=not self.dark)


def drawn(rng: random.Random) -> Watched:
    rules = Restarts(
        restarts_per_day=rng.choice([0, 2, 6, 11, None]),
        retunes_per_day=rng.choice([1, 2, 9]),
        canary_seconds=rng.choice([60, 120]),
        canary_limit_seconds=900,
        canary_requests=20,
        retry_after_seconds=1,
        reverse_after_seconds=1,
        failures_until_pause=rng.choice([3, 100]),
    )
    return Watched(
        rules=rules,
        replicas=rng.randint(1, 6),
        free=rng.choice([0, 0, 0, 1]),
        change=rng.choice(CHANGES),
        consent=Consent(disruption=rng.random() < 0.7),
    )


def happens(rng: random.Random, world: Watched) -> None:
    """Something of what no one can rule out; most ticks bring nothing."""
    world.dark = rng.random() < 0.03
    world.scaled = rng.random() < 0.05
    world.died = 1 if rng.random() < 0.01 else 0
    step = world.memory.step
    if rng.random() < 0.03:
        world.change = rng.choice(CHANGES)
    if rng.random() < 0.01:
        world.spec = f"spec-{rng.random()}"
    if rng.random() < 0.01:
        world.now += rng.choice([600.0, 3600.0])
    if rng.random() < 0.03 and (step is None or step.phase is not Phase.VERIFYING):
        # Whoever comes while a change is verified starts with it, and goes back with it whatever that costs.
        world.replicas = max(world.changed, world.replicas + rng.choice([-1, 1, 3]))
    if rng.random() < 0.03:
        world.free = rng.choice([0, 2])
    world.consent = replace(world.consent, mode="off" if rng.random() < 0.01 else "auto")


@pytest.mark.parametrize("part", range(4))
def test_one_retune_is_in_flight_and_no_budget_is_passed_in_any_story(part: int) -> None:
    rng = random.Random(part)
    seen = {"rolled": 0, "back": 0, "restarts": 0}
    for _ in range(STORIES // 4):
        world = drawn(rng)
        begun: dict[str, float] = {}
        for _ in range(TICKS):
            happens(rng, world)
            before = world.memory
            world.tick()
            after = world.memory
            judge(world, before, after)
            begun |= {past.id: past.began for past in after.past if past.tried}
            today = [at for at in begun.values() if world.now - at < DAY]
            assert len(today) <= world.rules.retunes_per_day
            seen["rolled"] = max(seen["rolled"], after.step.rolled if after.step else 0)
            seen["back"] += any(event.reason == "RetuneRollingBack" for event in world.events[-1:])
        seen["restarts"] += len(world.taken)
        scene, memory = world.scene(), world.memory
        assert advance(scene, memory) == advance(scene, memory)
        assert codec.decode(RetuneMemory, codec.encode(memory)) == memory
    assert seen["rolled"] >= 3, "the stories go far enough to show something"
    assert min(seen.values()) > 0


def judge(world: Watched, before: RetuneMemory, after: RetuneMemory) -> None:
    if before.step is not None and after.step is not None:
        assert after.step.id == before.step.id, "another one begins only after this one"
        assert (after.step.set, after.step.setting) == (before.step.set, before.step.setting)
    taken = sum(1 for at in world.taken if world.now - at < DAY)
    world.most = max(world.most, world.replicas)
    told = world.rules.restarts_per_day
    assert taken <= (max(6, 3 * world.most) if told is None else told)
    assert taken <= len(after.restarts), "what is taken away was counted before"
    if world.scaled and after.step is not None:
        assert before.step is not None, "one action a tick"
        assert after.step.rolled <= before.step.rolled
