"""What releases before wrote down is read: an upgrade forgets nothing, and takes no changed replica back."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.law import LAW
from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.record import ACTS_KEPT, Act, Record, acts_of
from plimsoll.control.retune import Phase, RetuneMemory, advance, effect_of
from plimsoll.control.retune.steps import Past
from plimsoll.planning import codec
from plimsoll.reconcile.kept import CONTROL_KEY, Kept
from plimsoll.reconcile.loop.storing import taught
from tests.control.retune.world import OLD, Behaviour, World, in_phase
from tests.control.situations import NOW

HOUR = 3600.0
DAY = 24 * HOUR

IN_FLIGHT = """
{"acts":[{"after":"6","at":900,"before":"3","message":"m","reason":"Load","what":"scale"}],"replicas":6,
 "retune":{"count":2,"failures":1,"past":[{"after":"48","before":"64","began":1,"ended":2,"id":"1","outcome":"Failed",
   "reason":"r","setting":"maxSequences","symptom":"preemptions"}],"planned":{"maxSequences":"64"},
  "step":{"after":"32","baseline":{"preempted":0.1},"before":"64","began":3,"deadline":4000,"id":"2",
   "new":{"finished":3,"preempted":1,"seconds":5},"old":{"finished":4,"seconds":5},"phase":"Verifying","replicas":6,
   "rolled":6,"said":"s","seen":1005,"set":"a","setting":"maxSequences","since":1000,"spec":"d","surge":true,
   "symptom":"preemptions","why":"w"}}}
"""
"""As the release before this one's wrote it from the first look at each step on."""


def test_a_retune_that_the_release_before_began_goes_on_with_all_that_was_known() -> None:
    record = Kept.from_data({CONTROL_KEY: IN_FLIGHT}).control
    assert record is not None
    assert (record.replicas, len(record.acts), record.retune.failures) == (6, 1, 1)
    step = record.retune.step
    assert step is not None
    assert (step.phase, step.rolled, step.new.finished) == (Phase.VERIFYING, 6, 3)
    effect = effect_of(record.retune)
    assert effect is not None
    assert effect.replicas == 6, "those that run with the change go on"
    assert codec.decode(Record, json.loads(codec.canonical(record))) == record


def test_a_symptom_has_to_last_anew_after_a_time_that_nobody_watched() -> None:
    world = World(old=replace(OLD, preempted=0.1))
    world.run(60)
    assert world.memory.since, "it was there when the operator ended"
    since = Record(retune=world.memory).read(world.now + 7200).retune
    again = advance(replace(world.scene(), now=world.now + 7200), since)
    assert (again.memory.step, again.why_not) == (
        None,
        "10% of requests are preempted at 95% of the pool, for 0 of 300 s",
    )


CALM = Behaviour(preempted=0.0, kv=0.3, gap=0.5, itl=0.03)


def calm_for(seconds: float) -> World:
    """What was retuned is no longer needed, for as long."""
    world = World(rules=Restarts(retunes_per_day=5)).run(3 * HOUR)
    world.old = world.change = CALM
    return world.run(seconds)


def restarted(world: World, *, clock: float = 0.0) -> None:
    """Another program reads what was stored, by a clock that was moved meanwhile, and sees each replica but once at first."""
    roles = {"": RoleMemory(begun=NOW, seen=world.now)}
    world.jump(clock + 60)
    world.jumped = 0.0
    record = Record(retune=world.memory, memory=Memory(roles=roles)).read(world.now)
    scene = world.scene()
    once = tuple(replace(each, preemptions=None, finished=None) for each in scene.signals.replicas)
    look = replace(scene, signals=replace(scene.signals, replicas=once))
    world.stored = codec.encode(advance(look, record.retune).memory)


@pytest.mark.parametrize("clock", [0.0, -2 * DAY, 2 * DAY])
def test_the_day_of_calm_after_which_a_setting_goes_back_goes_on_after_a_restart(clock: float) -> None:
    world = calm_for(20 * HOUR)
    low = world.knobs.max_sequences
    restarted(world, clock=clock)
    world.run(3 * HOUR)
    assert world.memory.step is None, "a day is not over"
    world.run(4 * HOUR)
    assert (low < 32, world.knobs.max_sequences) == (True, 32)
    assert world.memory.past[0].symptom == "relaxed"


def test_a_calm_that_ended_while_nobody_looked_begins_anew() -> None:
    world = calm_for(20 * HOUR)
    world.old = world.change = replace(CALM, kv=0.6)
    restarted(world)
    assert world.memory.calm_since is None


def test_hours_of_calm_are_worth_a_write_and_minutes_of_it_are_not() -> None:
    def record(calm_s: float) -> Record:
        retune = RetuneMemory(since={"relaxed": NOW})
        return Record(
            retune=retune, memory=Memory(roles={"": RoleMemory(begun=NOW, seen=NOW + calm_s, ready=2)})
        )

    assert not taught(record(2 * HOUR + 600), record(2 * HOUR))
    assert taught(record(3 * HOUR), record(2 * HOUR))


@pytest.mark.parametrize(("away_s", "begins_anew"), [(0.0, True), (120.0, True), (3600.0, False)])
def test_what_was_timed_begins_anew_after_a_spec_that_could_not_be_read(
    away_s: float, begins_anew: bool
) -> None:
    """A longer time is a jump of the clock to whoever decides next, which moves a retune's deadline too."""
    role = RoleMemory(begun=NOW - 900, seen=NOW - away_s, over_since=NOW - 300, wishes=((NOW - 60, 3.0),))
    before = Record(memory=Memory(roles={"serve": role}))
    after = before.unwatched(NOW, jump_s=600.0).memory.of("serve")
    anew = after.over_since is None, after.wishes == ((NOW, 3.0),), after.begun == NOW
    assert anew == (begins_anew,) * 3


@pytest.mark.parametrize("away_s", [120.0, 3600.0])
@pytest.mark.parametrize("asked", [None, NOW - 7200])
def test_nobody_is_said_not_to_have_asked_in_a_time_in_which_nobody_looked(
    away_s: float, asked: float | None
) -> None:
    seen = Memory(roles={"serve": RoleMemory(begun=NOW - 9000, seen=NOW - away_s)})
    after = Record(memory=seen, busy_at=asked).unwatched(NOW, jump_s=600.0)
    assert after.busy_at == (None if asked is None else NOW)


def test_what_is_done_at_the_look_at_which_a_clock_was_put_back_is_told_of_what_it_is_done_to() -> None:
    ended = Past(
        id="watermark-1", setting="watermark", before="0", after="10", symptom="capped", outcome=Phase.DONE,
        began=NOW - 500, ended=NOW - 400, reason="good",
    )  # fmt: skip
    world = in_phase(Phase.CANARY, World(stored=codec.encode(RetuneMemory(past=(ended,), count=1))))
    before = world.run(60).memory
    world.jump(60 - HOUR)
    world.changed_at = {0: world.now - HOUR}
    turned = advance(world.scene(), before)
    assert [event.reason for event in turned.events] == ["RetuneJudging"]
    assert [act.what for act in acts_of(world.now, before, turned)] == ["maxSequences"]


@pytest.mark.parametrize(
    ("before", "now", "stays"),
    [
        ((), ["b"], True),
        (("a",), ["b"], False),
        (("a",), ["a"], True),
        (("a", "b"), ["b", "c"], True),
        (("a",), [""], True),
    ],
    ids=[
        "an earlier release did not note it",
        "something else",
        "the same",
        "the same in one of the sets",
        "the plan does not say it",
    ],
)
@pytest.mark.parametrize("starts", [(40.0,) * 20, (40.0,) * 3], ids=["many", "a few"])
def test_short_starts_are_forgotten_once_something_else_runs(
    before: tuple[str, ...], now: list[str], starts: tuple[float, ...], stays: bool
) -> None:
    memory = Memory(roles={"serve": RoleMemory(starts=starts, ready=2)})
    after = Record(memory=memory, runs=before).running(now, LAW)
    assert after.memory.of("serve") == RoleMemory(starts=starts if stays else (), ready=2)
    assert after.runs == (tuple(now) if any(now) else before)
    assert codec.decode(Record, json.loads(codec.canonical(after))) == after


def done(what: str, count: int, record: Record) -> Record:
    for place in range(count):
        act = Act(at=NOW + place, what=what, before="1", after="2", reason="Any", message="")
        record = record.with_act(act)
    return record


@pytest.mark.parametrize(("first", "then"), [("maxSequences on tp1", "scale"), ("scale", "watermark")])
def test_what_is_done_often_leaves_half_the_room_to_what_is_done_seldom(first: str, then: str) -> None:
    """A load that comes and goes moves replicas fifty times a day, and a retune of the day before is still to be told of."""
    record = done(then, 200, done(first, ACTS_KEPT, Record()))
    assert Counter(act.what for act in record.acts) == {first: ACTS_KEPT // 2, then: ACTS_KEPT // 2}
    assert [act.what for act in record.acts[: ACTS_KEPT // 2]] == [then] * (ACTS_KEPT // 2), "newest first"
    assert record.about == ("tp1" if then == "scale" else "")


def test_where_nothing_else_was_done_all_the_room_is_for_what_was() -> None:
    assert len(done("scale", 200, Record()).acts) == ACTS_KEPT
    assert len(done("scale", 200, done("watermark", 3, Record())).acts) == ACTS_KEPT
