"""A deployment over two kinds of devices under live traffic: the cheaper ones first, then the dearer, which go first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pytest

from plimsoll import names
from plimsoll.control.capacity import capacity_of
from plimsoll.control.retune import Phase, RetuneMemory, Step, Turned, advance
from plimsoll.control.retune import Scene as Look
from plimsoll.control.retune.figures import Figures
from plimsoll.facts.inventory import Inventory
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop import retuning
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.world import World
from tests.planning.asking import inventory, pool
from tests.reconcile.staging import AUTO, KEY, Scene, conditions, started
from tests.reconcile.test_decide import seen

CHEAP: Final = "A100-SXM-80GB"
DEAR: Final = "H100-SXM-80GB"
GPUS: Final = {CHEAP: 2, DEAR: 4}
SPEC: Final[dict[str, Any]] = {
    **AUTO,
    "scaling": {**AUTO["scaling"], "max": 5},
    "engine": {"maxSequences": 64},
    "topology": {"tensor": 1},
}


def two_pools(held: Mapping[str, int], taken: Mapping[str, int]) -> Inventory:
    found = inventory(
        *(
            pool(
                gpu,
                nodes=1,
                free={count - held.get(gpu, 0) - taken.get(gpu, 0): 1},
                held={KEY: held.get(gpu, 0)},
                price_per_hour="16" if gpu == CHEAP else "64",
            )
            for gpu, count in GPUS.items()
        )
    )
    return cast(Inventory, found)


@dataclass
class Mixed(Scene):
    """Two pools of which replicas take what they are placed on."""

    taken: dict[str, int] = field(default_factory=dict)
    """By others."""

    @property
    def by_gpu(self) -> dict[str, int]:
        assert self.decision.rollout is not None
        entries = {name: revision.entry for name, revision in self.decision.revisions.items()}
        return {entries[one.name].hardware.gpu: one.replicas for one in self.decision.rollout.targets}

    def inventory(self) -> Inventory:
        return two_pools(self.by_gpu, self.taken)

    def turn(self, world: World) -> None:
        self.asked = replace(self.asked, inventory=self.inventory())
        super().turn(world)


def mixed(**taken: int) -> tuple[Mixed, World, Control]:
    asked = replace(seen(spec=SPEC), inventory=two_pools({}, taken))
    stage = Mixed(asked=asked, decision=decide(asked), taken=taken)
    return stage, *started(stage)


def seen_on_the_way(stage: Mixed, world: World, control: Control, ticks: int) -> list[dict[str, int]]:
    found = [stage.by_gpu]
    for _ in range(ticks):
        stage.run(control, world, 1)
        if stage.by_gpu != found[-1]:
            found.append(stage.by_gpu)
    return found


def test_load_that_rises_fills_the_cheaper_pool_first_and_the_dearer_replicas_go_first_when_it_falls() -> (
    None
):
    stage, world, control = mixed()
    stage.run(control, world, 4)
    assert stage.by_gpu == {CHEAP: 1}
    stage.load = 400.0
    up = seen_on_the_way(stage, world, control, 20)
    assert up[1] == {CHEAP: 2, DEAR: 0}, "the cheap pool is full, and nothing dear was asked for before"
    assert up[-1] == {CHEAP: 2, DEAR: 3}
    told = conditions(world.directions[KEY])
    assert told[names.SCALING] == ("True", "AtMax")
    stage.load = 1.0
    down = seen_on_the_way(stage, world, control, 120)
    assert down[-1] == {CHEAP: 1, DEAR: 0}
    assert all(one[CHEAP] == 2 or not one[DEAR] for one in down)
    kept = stage.decision.kept.control
    assert kept is not None
    assert [act.reason for act in kept.acts] == [one.reason for one in reversed(stage.news)]


def test_an_operator_that_starts_in_between_goes_on_with_the_mix_that_is_there() -> None:
    stage, world, control = mixed()
    stage.load = 260.0
    stage.run(control, world, 20)
    there = stage.by_gpu
    assert there[CHEAP] == 2
    assert there[DEAR] > 0
    world, control = started(stage)
    stage.woken.clear()
    stage.turn(world)
    assert stage.by_gpu == there, "before the first tick"
    stage.run(control, world, 6)
    assert stage.by_gpu == there


def test_a_cheaper_pool_that_comes_free_takes_what_is_wanted_next() -> None:
    """Whoever began on the dearer devices, since the cheaper ones were taken."""
    stage, world, control = mixed(**{CHEAP: 2})
    stage.load = 400.0
    stage.run(control, world, 10)
    assert stage.by_gpu == {DEAR: 4}
    stage.taken.clear()
    stage.turn(world)  # as the fleet moved, which it waits for
    stage.run(control, world, 10)
    assert stage.by_gpu == {DEAR: 4, CHEAP: 1}
    stage.load = 1.0
    assert seen_on_the_way(stage, world, control, 120)[-1] == {DEAR: 0, CHEAP: 1}


@pytest.mark.parametrize(("gpu", "named"), [(CHEAP, f"tp1 on {CHEAP}"), (DEAR, f"tp1 on {DEAR}"), (None, "")])
def test_what_is_told_of_a_retune_says_of_which_set_it_is(gpu: str | None, named: str) -> None:
    """Where the plan has it no more nothing is named: the largest one would be another."""
    stage, world, control = mixed()
    stage.load = 400.0
    stage.run(control, world, 20)
    kept = stage.decision.kept
    assert kept.plan is not None
    assert kept.control is not None
    of = next((one.digest for one in kept.plan.sets if one.hardware.gpu == gpu), "gone")
    step = Step(
        id="a", set=of, setting="maxSequences", before="64", after="40", symptom="preemptions", why="w",
        phase=Phase.JUDGING, began=stage.now, since=stage.now, deadline=stage.now + 2700, replicas=2, surge=True,
        spec="another", baseline=Figures(), rolled=1,
    )  # fmt: skip
    record = replace(kept.control, retune=RetuneMemory(step=step))
    stage.decision = replace(stage.decision, kept=replace(kept, control=record))
    stage.version += 1
    stage.news.clear()
    world, control = started(stage)
    stage.run(control, world, 1)
    kept_now = stage.decision.kept.control
    assert kept_now is not None
    (past,), act, (news,) = kept_now.retune.past, kept_now.acts[0], stage.news
    prefix = f"{named}: " if named else ""
    assert past.reason.startswith(f"{prefix}the spec was edited")
    assert act.what == (f"maxSequences on {named}" if named else "maxSequences")
    assert news.message.startswith(f"{prefix}maxSequences 64 to 40 is given up")


def looked_at(stage: Mixed, world: World, control: Control, monkeypatch: pytest.MonkeyPatch) -> Look:
    """What a retune would begin from at the next look."""
    looks: list[Look] = []

    def noted(scene: Look, memory: RetuneMemory) -> Turned:
        looks.append(scene)
        return advance(scene, memory)

    monkeypatch.setattr(retuning, "advance", noted)
    stage.run(control, world, 1)
    return looks[-1]


def test_a_retune_of_one_set_counts_what_the_others_carry_in_replicas_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, world, control = mixed()
    stage.load = 400.0
    stage.run(control, world, 20)
    assert stage.by_gpu == {CHEAP: 2, DEAR: 3}
    look = looked_at(stage, world, control, monkeypatch)
    wanted = control._knows.known[KEY].record.memory.of("serve").wanted
    assert wanted is not None
    assert look.about == f"tp1 on {DEAR}"
    assert look.kind.startswith(f"{look.about} running ")
    plan = stage.decision.kept.plan
    assert plan is not None
    rate = {
        one.hardware.gpu: capacity_of(one).requests_per_second or capacity_of(one).kv_tokens
        for one in plan.sets
    }
    assert rate[CHEAP] != rate[DEAR]
    assert look.beside == pytest.approx(2 * rate[CHEAP] / rate[DEAR])
    assert look.wanted == pytest.approx(wanted * rate[CHEAP] / rate[DEAR])


def test_a_retune_of_the_only_set_knows_its_kind_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is remembered by it, and may be beside another set by the next look."""
    stage, world, control = mixed()
    stage.run(control, world, 4)
    look = looked_at(stage, world, control, monkeypatch)
    assert look.about == ""
    assert look.kind.startswith(f"tp1 on {CHEAP} running ")


def test_replicas_that_another_set_finds_room_for_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, world, control = mixed()
    stage.load = 30.0
    stage.run(control, world, 20)
    assert stage.by_gpu == {CHEAP: 2, DEAR: 1}
    look = looked_at(stage, world, control, monkeypatch)
    assert look.about == f"tp1 on {CHEAP}"
    assert look.free_replicas == 0
    assert look.more_replicas
