"""What releases before wrote down is read: an upgrade forgets nothing, and takes no changed replica back."""

from __future__ import annotations

import json
from dataclasses import replace

from plimsoll.control.record import Record
from plimsoll.control.retune import Phase, advance, effect_of
from plimsoll.planning import codec
from plimsoll.reconcile.kept import CONTROL_KEY, Kept
from tests.control.retune.world import OLD, World

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
