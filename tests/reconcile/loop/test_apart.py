"""What is odd about one deployment, or was about one that is gone, is none of another's; and what was not told is told again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.control.decision import Told
from plimsoll.control.record import Act, Record
from plimsoll.kube.errors import Unreachable
from plimsoll.objects import Ref
from plimsoll.reconcile import turn as turns
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.loop.sources import Looked
from plimsoll.reconcile.world import World
from plimsoll.render.shared import plan_ref
from tests.reconcile import test_turns
from tests.reconcile.staging import KEY, TICK, conditions, replace_look, staged

Edit = Callable[[dict[str, Any]], None]
NEIGHBOUR = "team-a/odd"
BUDGET = {"namespace": "team-a", "gpus": 32}


def priced_in_words(plan: dict[str, Any]) -> None:
    plan["sets"][0]["hardware"]["price_per_hour"] = "free"


def shared_by_none(plan: dict[str, Any]) -> None:
    plan["sets"][0]["hardware"]["sharing"] = 0


@pytest.mark.parametrize("edit", [priced_in_words, shared_by_none])
@pytest.mark.parametrize("budgets", [[], [BUDGET]], ids=["no budget", "a budget of both"])
def test_a_plan_that_somebody_has_edited_keeps_nobody_else_from_being_scaled(
    edit: Edit, budgets: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    before, real = stage.replicas, stage.read
    body = stage.asked.deployment.to_dict()
    body["metadata"] |= {
        "namespace": "team-a", "name": "odd", "uid": "o", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "77",
    }  # fmt: skip
    world.resources.put(NEIGHBOUR, body)

    async def read(ref: Ref) -> Mapping[str, Any]:
        found = await real(ref)
        if ref == plan_ref(*NEIGHBOUR.split("/")):
            plan = json.loads(found["data"][names.PLAN_KEY])
            edit(plan)
            found = {**found, "data": {**found["data"], names.PLAN_KEY: json.dumps(plan)}}
        return found

    monkeypatch.setattr(stage, "read", read)
    # As after a restart with them, nobody knows yet what is taken of it.
    world.config = OperatorConfig.model_validate({"budgets": budgets})
    stage.load = 400.0
    stage.run(control, world, 4)
    assert stage.replicas > before
    assert NEIGHBOUR not in world.directions


def made_anew(world: World, key: str, uid: str) -> None:
    body = world.resources.get(key)
    assert body is not None
    version = str(int(body["metadata"]["resourceVersion"]) + 5)
    metadata = {**body["metadata"], "uid": uid, "resourceVersion": version}
    world.resources.put(key, {"metadata": metadata, "spec": body["spec"]})


def test_one_that_is_made_anew_under_a_name_has_nothing_of_the_one_before() -> None:
    stage, world, control = staged()
    stage.load = 200.0
    stage.run(control, world, 8)
    said = world.directions[KEY]
    assert said.record.replicas is not None
    assert world.direction(KEY) is said
    made_anew(world, KEY, "another")
    assert world.direction(KEY) is None
    assert not world.asks(KEY)


def test_a_turn_of_one_that_was_made_anew_takes_no_replicas_of_the_one_before() -> None:
    doors, world = test_turns.staged()
    act = Act(at=1.0, what="scale", before="1", after="6", reason="LoadRose", message="of the one before")
    before = Record(replicas=6, acts=(act,))
    bearer = world.resources.bearer(test_turns.KEY)
    assert bearer is not None
    world.directions[test_turns.KEY] = Direction(uid=bearer.uid, record=before)
    made_anew(world, test_turns.KEY, "another")
    asyncio.run(turns.turn(world, test_turns.KEY))
    assert not doors.written[-1].scaling_history


def test_what_is_being_deleted_is_spoken_of_no_more() -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    body = world.resources.get(KEY)
    assert body is not None
    leaving = {**body["metadata"], "deletionTimestamp": "2026-01-02T00:00:00Z", "resourceVersion": "99"}
    world.resources.put(KEY, {**body, "metadata": leaving})
    stage.woken.clear()
    for _ in range(4):
        stage.now += TICK
        asyncio.run(control.tick())
    assert (KEY in world.directions, stage.woken) == (False, [])


def test_what_could_not_be_written_is_asked_for_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    doors, world = test_turns.staged()
    key = test_turns.KEY
    asyncio.run(turns.turn(world, key))
    told = Told(names.METRICS, "False", "PrometheusUnreachable", "the source of metrics does not answer")
    world.directions[key] = Direction(told=(told,))
    tell, failed = doors.tell, list[object]()

    async def cut(*args: Any) -> int | None:
        if not failed:
            failed.append(args)
            raise Unreachable("the connection was cut")
        return await tell(*args)

    monkeypatch.setattr(doors, "tell", cut)
    with pytest.raises(Unreachable):
        asyncio.run(turns.turn(world, key))
    assert world.asks(key)
    asyncio.run(turns.turn(world, key))
    said = {one.type: one.reason for one in doors.written[-1].conditions}
    assert said[names.METRICS] == "PrometheusUnreachable"
    assert not world.asks(key)


def test_an_outage_that_began_by_a_clock_that_was_ahead_is_told_as_soon_as_any() -> None:
    stage, world, control = staged()
    stage.run(control, world, 4)
    stage.now += 2 * 3600
    answers = replace_look(stage, Looked(reachable=False, problem="HTTP 401: expired"))
    stage.run(control, world, 2)
    stage.now -= 2 * 3600
    stage.run(control, world, 10)
    assert conditions(world.directions[KEY])[names.METRICS] == ("False", "PrometheusUnreachable")
    assert "HTTP 401: expired" in next(
        one.message for one in world.directions[KEY].told if one.type == names.METRICS
    )
    answers()
