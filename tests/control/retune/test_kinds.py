"""What a retune showed on one kind of set, of one layout on one kind of device, says nothing of another, nor of another model there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.record import Record
from plimsoll.control.retune import Consent, Knobs, Past, Phase, RetuneMemory, Scene, advance
from plimsoll.control.retune.allowed import barred
from plimsoll.control.retune.steps import kind_of
from plimsoll.control.retune.symptoms import Symptom
from plimsoll.planning import codec
from plimsoll.reconcile.kept import CONTROL_KEY, Kept
from plimsoll.status.live import live_status, retuning
from tests.control.retune.test_allowed import past
from tests.control.retune.world import GOOD, OLD, World
from tests.control.situations import NOW

HOUR = 3600.0
FAST, SLOW = "tp1 on H100-SXM-80GB", "tp1 on A100-SXM-80GB"
LLAMA, QWEN = kind_of(FAST, "a1"), kind_of(FAST, "b2")
"""The same set with two models."""
DRY = Consent(mode="dryRun", allowed=("maxSequences",))


CHANGED = Knobs(max_sequences=16)


def world_of(kind: str, **more: object) -> World:
    return World(kind=kind, about=kind, **more)  # type: ignore[arg-type]


def look(kind: str, **more: object) -> Scene:
    return world_of(kind, **more).scene()


def tried(*pasts: tuple[Past, str]) -> RetuneMemory:
    """Newest first, each with the kind of its set; empty where an older release wrote it."""
    known = tuple(replace(one, id=f"{one.setting}-{len(pasts) - i}") for i, (one, _) in enumerate(pasts))
    kinds = {one.id: kind for one, (_, kind) in zip(known, pasts, strict=True) if kind}
    return RetuneMemory(past=known, kinds=kinds)


@pytest.mark.parametrize(("of", "here", "bars"), [
    (FAST, FAST, True),
    (FAST, SLOW, False),
    ("", FAST, True),  # an older release did not write of which
    ("", SLOW, True),
    (LLAMA, LLAMA, True),
    (LLAMA, QWEN, False),
    (LLAMA, kind_of(SLOW, "a1"), False),
    (FAST, QWEN, True),  # written before it was known with which model
    (LLAMA, FAST, True),  # the plan was rebuilt from what serves, and does not say which model
])  # fmt: skip
@pytest.mark.parametrize(
    ("outcome", "symptom"), [(Phase.FAILED, Symptom.PREEMPTION), (Phase.DONE, Symptom.CAPPED)]
)
def test_what_failed_or_was_turned_the_other_way_is_barred_on_that_kind_of_set_alone(
    of, here, bars, outcome, symptom
):
    memory = tried((past(outcome=outcome, symptom=symptom), of))
    assert ("maxSequences" in barred(look(here), memory, Symptom.PREEMPTION)) is bars


@pytest.mark.parametrize(("here", "bars"), [(FAST, False), (SLOW, True)])
def test_what_keeps_gaps_short_on_one_kind_of_set_goes_back_after_calm_on_another(here, bars):
    for_gaps = past(outcome=Phase.DONE, symptom=Symptom.SLOW_TOKENS, hours=40)
    taken_back = past(outcome=Phase.DONE, symptom=Symptom.RELAXED, hours=30)
    memory = tried((taken_back, FAST), (for_gaps, SLOW), (for_gaps, FAST))
    assert ("maxSequences" in barred(look(here, knobs=CHANGED), memory, Symptom.RELAXED)) is bars


def test_what_keeps_gaps_short_does_so_with_another_version_of_the_engine_too():
    """A plan that a person asks for keeps what was retuned, whichever version it is made for."""
    memory = tried((past(outcome=Phase.DONE, symptom=Symptom.SLOW_TOKENS, hours=40), LLAMA))
    assert "maxSequences" in barred(look(QWEN, knobs=CHANGED), memory, Symptom.RELAXED)


def test_a_rung_that_failed_on_one_kind_of_set_is_tried_on_the_other_and_not_again_on_the_first():
    rules = Restarts(retunes_per_day=100)
    world = world_of(FAST, change=OLD, rules=rules).run(2 * HOUR)
    assert [one.outcome for one in world.memory.past] == [Phase.FAILED]
    world.kind = world.about = SLOW
    world.change = GOOD
    world.run(2 * HOUR)
    assert [one.outcome for one in world.memory.past] == [Phase.DONE, Phase.FAILED]
    assert set(world.memory.kinds.values()) == {FAST, SLOW}
    world.kind = world.about = FAST
    scene = world.scene()
    assert "was tried" in barred(scene, world.memory, Symptom.PREEMPTION)["maxSequences"]


def test_budgets_and_pauses_are_of_the_whole_deployment():
    world = world_of(FAST, change=OLD).run(2 * HOUR)
    world.kind = world.about = SLOW
    world.run(12 * HOUR)
    assert len(world.memory.past) == world.rules.retunes_per_day
    assert world.memory.failures == 2
    assert world.memory.held is not None
    assert world.memory.held.reason == "BudgetSpent"


def test_of_retunes_that_are_forgotten_no_kind_is_kept():
    memory = tried((past(), FAST), (past(), SLOW))
    memory = replace(memory, past=memory.past[:1], since={"preemptions": NOW - HOUR})
    memory = advance(look(SLOW, consent=DRY), memory).memory
    assert list(memory.kinds.values()) == [FAST, SLOW]


def test_each_kind_of_set_has_suggestions_of_its_own_each_once_a_day():
    memory, told = RetuneMemory(), []
    for minute in range(0, 6 * 60, 10):
        for kind in (FAST, SLOW):
            scene = replace(look(kind, consent=DRY, now=NOW + 60 * minute), serving=look(kind).serving)
            # Of two that are as large each is looked at now and then, as long as it takes.
            memory = replace(memory, since={"preemptions": NOW - HOUR})
            turned = advance(scene, memory)
            memory = codec.decode(RetuneMemory, codec.encode(turned.memory))
            told += [(kind, event.reason) for event in turned.events]
    assert told == [(FAST, "RetuneSuggested"), (SLOW, "RetuneSuggested")]
    history = live_status(Record(retune=memory))["tuning_history"]
    assert [one.state for one in history] == ["DryRun", "DryRun"]
    assert [one.reason.partition(": ")[0] for one in history] == [SLOW, FAST]
    assert len({one.id for one in history}) == 2


def test_a_suggestion_goes_once_the_same_is_tried_on_its_kind_of_set_and_no_other_does():
    memory = RetuneMemory()
    for kind in (FAST, SLOW):
        memory = replace(memory, since={"preemptions": NOW - HOUR})
        memory = advance(look(kind, consent=DRY), memory).memory
    memory = replace(memory, since={"preemptions": NOW - HOUR})
    memory = advance(look(FAST), memory).memory
    assert memory.step is not None
    assert [memory.kinds[one.id] for one in memory.suggestions] == [SLOW]
    assert memory.step.id not in {one.id for one in memory.suggestions}


def test_what_to_set_by_hand_says_that_it_holds_for_all_sets_where_there_are_several():
    several = world_of(FAST, consent=DRY).run(HOUR).memory.suggested
    alone = World(kind=FAST, consent=DRY).run(HOUR).memory.suggested
    assert several is not None
    assert alone is not None
    assert "for all sets" in several.reason
    assert "for all sets" not in alone.reason


def test_a_retune_of_the_only_set_there_was_names_it_once_there_are_others():
    world = World(kind=FAST, change=OLD).run(2 * HOUR)
    alone = live_status(Record(retune=world.memory))["tuning_history"]
    assert FAST not in alone[0].reason
    world.kind = world.about = SLOW
    world.run(2 * HOUR)
    both = live_status(Record(retune=world.memory))["tuning_history"]
    retuned = [one.reason.partition(": ")[0] for one in both if one.setting == "maxSequences"]
    assert retuned == [SLOW, FAST]
    told = retuning(replace(world.memory, past=world.memory.past[1:], held=None))
    assert told is not None
    assert told.message.count(FAST) == 1


@pytest.mark.parametrize(("first", "then", "begin"), [(LLAMA, QWEN, ""), (LLAMA, kind_of(SLOW, "a1"), FAST)])
def test_what_runs_on_a_set_is_told_to_nobody_as_it_is_a_digest(first, then, begin):
    memory = tried(
        (past(), then), (replace(past(), reason=f"{begin}: no gain" if begin else "no gain"), first)
    )
    *_, told = live_status(Record(retune=memory))["tuning_history"]
    assert told.reason == (f"{FAST}: no gain" if begin else "no gain")
    last = retuning(memory)
    assert last is not None
    assert "running" not in last.message


OLDER = {
    "retune": {
        "count": 1,
        "past": [
            {
                "after": "16", "before": "32", "began": NOW - HOUR, "ended": NOW - HOUR, "id": "maxSequences-1",
                "outcome": "Failed", "reason": f"{FAST}: no gain", "setting": "maxSequences", "symptom": "preemptions",
            }
        ],
        "suggested": {
            "after": "16", "before": "32", "began": NOW - HOUR, "ended": NOW - HOUR, "id": "maxSequences-2",
            "outcome": "Planned", "reason": "30% are preempted", "setting": "maxSequences", "symptom": "preemptions", "tried": False,
        },
    }
}  # fmt: skip


def test_what_an_older_release_remembers_of_retunes_counts_for_every_set_as_it_did():
    memory = Kept.from_data({CONTROL_KEY: json.dumps(OLDER)}).control.retune  # type: ignore[union-attr]
    assert len(memory.past) == len(memory.suggestions) == 1
    for kind in (FAST, SLOW):
        assert "maxSequences" in barred(look(kind), memory, Symptom.PREEMPTION)
        ready = replace(memory, past=(), since={"preemptions": NOW - HOUR})
        assert advance(look(kind, consent=DRY), ready).events == (), "it was suggested today"


def test_an_older_release_reads_all_that_it_knows_of_what_is_kept_by_kind():
    """It passes over a word of the memory that it does not know, and reads a past or a suggestion with such a word not at all."""
    world = world_of(FAST, change=OLD).run(2 * HOUR)
    memory = replace(world.memory, since={"preemptions": world.now - HOUR})
    memory = advance(replace(world.scene(), kind=SLOW, about=SLOW, consent=DRY), memory).memory
    written = codec.encode(memory)
    assert written["past"]
    assert written["suggested"]
    words = {
        "id",
        "setting",
        "before",
        "after",
        "symptom",
        "outcome",
        "began",
        "ended",
        "reason",
        "tried",
        "requests",
    }
    for one in (*written["past"], written["suggested"]):
        assert set(one) <= words
