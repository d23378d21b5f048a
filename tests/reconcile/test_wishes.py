"""A wish that the plan cannot follow, or not yet: asked for once, told once, and taken back only when the load is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.world import World
from tests.planning.asking import inventory, pool
from tests.reconcile.staging import AUTO, KEY, Scene, conditions, put, staged, started, woken
from tests.reconcile.test_decide import seen


def priced(**spec: Any) -> tuple[Scene, World, Control]:
    """Under the limit of cost there is money for one replica."""
    paid = pool(nodes=4, price_per_hour="4")
    limited = {**AUTO, "engine": {"maxSequences": 64}, "cost": {"maxPerHour": "5.00"}, **spec}
    asked = seen(spec=limited, pools=(paid,))
    stage = Scene(asked=asked, decision=decide(asked))
    stage.inventory = lambda: inventory(paid)  # type: ignore[method-assign]
    return stage, *started(stage)


def test_a_wish_that_the_plan_cannot_follow_is_asked_for_and_told_once() -> None:
    stage, world, control = priced()
    stage.run(control, world, 6)
    stage.load = 60.0
    risen = stage.run(control, world, 4)
    assert len(stage.news) <= 2
    told = list(stage.news)
    assert risen == len(told)
    assert stage.run(control, world, 10) <= 1, "one in which it is told that the plan has no room for it"
    assert stage.run(control, world, 30) <= 1
    assert stage.news == told
    wished = world.directions[KEY].record.replicas
    assert wished is not None
    assert wished > stage.replicas == 1


def test_the_admins_limit_of_cost_bounds_what_is_wished_for() -> None:
    paid = pool(nodes=4, price_per_hour="4")
    admin = OperatorConfig.model_validate({"budgets": [{"namespace": "team-a", "costPerHour": "9.50"}]})
    asked = seen(spec={**AUTO, "engine": {"maxSequences": 64}}, pools=(paid,), config=admin)
    stage = Scene(asked=asked, decision=decide(asked))
    stage.inventory = lambda: inventory(paid)  # type: ignore[method-assign]
    world, control = started(stage)
    world.config = admin
    stage.run(control, world, 6)
    stage.load = 90.0
    stage.run(control, world, 20)
    said = world.directions[KEY]
    assert said.record.replicas == stage.replicas == 2, "four would be better, and two cost $8 an hour"
    assert [(one.status, one.reason) for one in said.told if one.type == names.SCALING] == [
        ("True", "BudgetExhausted")
    ]


def test_that_the_plan_has_no_room_for_a_wish_is_told_once_it_lasts_and_a_retune_waits_for_it_no_more() -> (
    None
):
    stage, world, control = priced()
    stage.run(control, world, 6)
    stage.load = 60.0
    stage.run(control, world, 4)
    assert names.SCALING not in conditions(world.directions[KEY]), "a turn may come late"
    stage.run(control, world, 12)
    said = world.directions[KEY]
    (told,) = [one for one in said.told if one.type == names.SCALING]
    assert (told.status, told.reason) == ("True", "BudgetExhausted")
    assert told.message.startswith(f"{said.record.replicas} replicas are wanted, and the plan has 1")
    stage.load = 1.0
    stage.run(control, world, 120)
    assert names.SCALING not in conditions(world.directions[KEY])


@pytest.mark.parametrize(
    ("nodes", "money", "most", "reason"),
    [(1, None, 20, "GPUsUnavailable"), (4, "5.00", 20, "BudgetExhausted"), (4, "5.00", 2, "BudgetExhausted")],
    ids=["GPUs", "money", "money below the most"],
)
def test_what_a_plan_lacks_for_a_wish_is_told_as_that(
    nodes: int, money: str | None, most: int, reason: str
) -> None:
    cost = {} if money is None else {"cost": {"maxPerHour": money}}
    paid = pool(nodes=nodes, price_per_hour="4")
    limited = {**AUTO, "scaling": {**AUTO["scaling"], "max": most}, "engine": {"maxSequences": 64}, **cost}
    asked = seen(spec=limited, pools=(paid,))
    stage = Scene(asked=asked, decision=decide(asked))
    stage.inventory = lambda: inventory(pool(nodes=9))  # type: ignore[method-assign]
    world, control = started(stage)
    stage.run(control, world, 6)
    stage.load = 900.0
    stage.run(control, world, 30)
    said = world.directions[KEY]
    assert said.record.replicas is not None
    assert said.record.replicas > stage.replicas
    assert conditions(said)[names.SCALING] == ("True", reason)


def test_a_sleeper_that_no_plan_follows_wakes_once_and_that_is_told() -> None:
    stage, world, control = woken()
    stage.turn = lambda _: None  # type: ignore[method-assign,assignment]
    stage.news.clear()
    stage.run(control, world, 20)
    assert [one.reason for one in stage.news] == ["Woken"]
    assert conditions(world.directions[KEY])[names.SCALING] == ("True", "NotPlanned")


def test_a_wish_that_nothing_came_of_goes_with_the_load() -> None:
    stage, world, control = priced()
    stage.run(control, world, 6)
    stage.load = 60.0
    stage.run(control, world, 10)
    stage.load = 1.0
    stage.run(control, world, 120)
    assert world.directions[KEY].record.replicas == stage.replicas == 1


def test_a_turn_that_takes_longer_than_a_tick_takes_no_wish_back() -> None:
    stage, world, control = staged()
    stage.run(control, world, 6)
    stage.load = 60.0
    stage.turn = lambda _: None  # type: ignore[method-assign,assignment]
    stage.run(control, world, 12)
    acts = world.directions[KEY].record.acts
    assert [int(act.after) > int(act.before) for act in acts] == [True] * len(stage.news)


BUDGET = OperatorConfig.model_validate({"budgets": [{"namespace": "team-a", "gpus": 3}]})
OTHER = "team-a/other"


def beside(replicas: int) -> tuple[Scene, World, Control]:
    """A deployment that shares its budget with one of a fixed number, at which nobody looks."""
    asked = seen(spec={**AUTO, "engine": {"maxSequences": 64}}, pools=(pool(nodes=4),), config=BUDGET)
    stage = Scene(asked=asked, decision=decide(asked))
    world, control = started(stage)
    world.config = BUDGET
    other = seen(spec={"replicas": replicas, "engine": {"maxSequences": 64}}, pools=(pool(nodes=4),))
    put(stage, world, other, OTHER)
    stage.covers = lambda subject: subject.autoscaled  # type: ignore[method-assign,assignment]
    stage.promise = lambda *_: None  # type: ignore[attr-defined]
    world.promise(OTHER, decide(other).kept, ())
    turn = stage.turn

    def limited(world: World) -> None:
        stage.asked = replace(stage.asked, limits=world.limits(KEY))
        turn(world)

    stage.turn = limited  # type: ignore[method-assign]
    return stage, world, control


@pytest.mark.parametrize("replicas", [2, 1], ids=["all but one", "one"])
def test_what_a_neighbour_spends_at_which_nobody_looks_is_not_wished_for_and_that_is_told(
    replicas: int,
) -> None:
    stage, world, control = beside(replicas)
    stage.run(control, world, 6)
    stage.load = 150.0
    stage.run(control, world, 30)
    said = world.directions[KEY]
    assert said.record.replicas == stage.replicas == 3 - replicas
    assert [(one.status, one.reason) for one in said.told if one.type == names.SCALING] == [
        ("True", "BudgetExhausted")
    ]


def test_a_step_up_that_the_plan_does_not_follow_is_made_once_and_not_just_now_for_ever() -> None:
    stage, world, control = priced()
    stage.run(control, world, 6)
    stage.load = 60.0
    stage.run(control, world, 4)
    made = up_at(control)
    assert made is not None
    stage.run(control, world, 40)
    assert world.directions[KEY].record.replicas != stage.replicas, "it is still wished for"
    assert up_at(control) == made


def up_at(control: Control) -> float | None:
    return control._knows.known[KEY].record.memory.of("serve").up_at
