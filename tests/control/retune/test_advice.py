"""What a person is told to do where no setting cures a pool that is too small, and where replicas come first."""

from dataclasses import replace

import pytest

from plimsoll.control.retune import Consent, Event, RetuneMemory, advance
from plimsoll.control.retune.beginning import HELD_S
from plimsoll.control.retune.ladder import LARGER_POOL, MORE_POOL, choose
from plimsoll.control.retune.symptoms import STORM_S, Symptom, scaling_first, symptom_of
from tests.control.retune.world import Behaviour, World


@pytest.mark.parametrize("running", [3, 30])
def test_a_few_requests_that_fill_a_pool_are_for_a_person_and_no_reason_for_more_replicas(running):
    scene = World(old=Behaviour(preempted=0.3), wants_more=True, more_replicas=True).scene()
    few = tuple(replace(each, running=float(running)) for each in scene.signals.replicas)
    scene = replace(scene, has_watermark=False, signals=replace(scene.signals, replicas=few))
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    assert (scaling_first(scene, what.symptom) is None) is (running == 3)
    choice = choose(replace(scene, consent=Consent(allowed=("watermark",))), what, barred={})
    assert choice.advice is (LARGER_POOL if running == 3 else MORE_POOL)


def test_a_larger_pool_is_said_once_to_be_for_a_person_where_a_few_requests_fill_it_for_ten_minutes():
    consent = Consent(allowed=("watermark",))
    scene = World(old=Behaviour(preempted=0.3), consent=consent, has_watermark=False).scene()
    few = tuple(replace(each, running=3.0) for each in scene.signals.replicas)
    scene = replace(scene, signals=replace(scene.signals, replicas=few))
    memory = RetuneMemory()
    events: list[tuple[int, Event]] = []
    for tick in range(60):
        turned = advance(replace(scene, now=scene.now + 30 * tick), memory)
        memory, events = turned.memory, [*events, *((tick, each) for each in turned.events)]
    ((tick, event),) = events
    # It is a storm from the third minute on, and the first look at it may go by short requests alone.
    assert tick == (STORM_S + HELD_S) / 30
    assert (event.reason, memory.step) == ("RetuneSuggested", None)
    assert "for a person, nothing is changed" in event.message
    assert "spec.memory.kvCacheDtype fp8" in event.message
    assert memory.suggested is not None
    assert not memory.suggested.tried


def test_the_ten_minutes_are_those_of_the_pool_and_not_of_what_no_setting_helped_before():
    consent = Consent(allowed=())
    slow = World(old=Behaviour(preempted=0.0, itl=0.2, kv=0.4), consent=consent).scene()
    full = World(old=Behaviour(preempted=0.3), consent=consent).scene()
    memory, told = RetuneMemory(), []
    for tick in range(90):
        scene = slow if tick < 60 else full
        turned = advance(replace(scene, now=full.now + 30 * tick), memory)
        memory = turned.memory
        told += [tick for _ in turned.events]
    assert memory.held is not None
    assert told == [60 + (STORM_S + HELD_S) / 30]


@pytest.mark.parametrize(("kv", "first"), [(0.95, True), (0.5, False), (None, True)])
def test_replicas_that_are_wanted_come_before_a_setting_unless_pools_are_known_to_have_room(
    kv: float | None, first: bool
):
    scene = World(old=Behaviour(preempted=0.3), wants_more=True, more_replicas=True).scene()
    said = tuple(replace(each, kv_fraction=kv, running=30.0) for each in scene.signals.replicas)
    scene = replace(scene, signals=replace(scene.signals, replicas=said))
    assert (scaling_first(scene, Symptom.PREEMPTION) is not None) is first


def test_few_requests_fill_a_pool_by_what_each_holds_and_not_where_few_run_at_this_moment():
    scene = World(old=Behaviour(preempted=0.3, kv=0.2)).scene()
    few = tuple(replace(each, running=3.0) for each in scene.signals.replicas)
    scene = replace(scene, has_watermark=False, signals=replace(scene.signals, replicas=few))
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    dead_end = replace(scene, consent=Consent(allowed=()))
    assert choose(dead_end, what, barred={}).advice is MORE_POOL


@pytest.mark.parametrize("preempted", [0.08, 0.3])
@pytest.mark.parametrize("barred", [{}, {"maxSequences": "14 was tried 1.0 h ago: no gain"}])
def test_where_no_setting_helps_a_pool_that_is_too_small_a_person_is_told_what_would(preempted, barred):
    floor = Consent(allowed=("maxSequences",), least_sequences=8 if barred else 32)
    scene = World(old=Behaviour(preempted=preempted), consent=floor).scene()
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    choice = choose(scene, what, barred=barred)
    assert choice.change is None
    assert choice.advice is MORE_POOL
    for said in ("scaling.max", "spec.memory.kvCacheDtype fp8", "spec.topology", "utilizationPercent"):
        assert said in choice.advice.why


def test_nothing_is_for_a_person_while_a_setting_may_still_help_or_pools_are_not_to_blame():
    scene = World(old=Behaviour(preempted=0.3)).scene()
    unknown = replace(scene.signals, latencies=replace(scene.signals.latencies, output=None))
    what = symptom_of(scene, changed_before=False)
    assert what is not None
    choice = choose(replace(scene, signals=unknown), what, barred={})
    assert (choice.change, choice.unsure, choice.advice) == (None, True, None)
    slow = World(old=Behaviour(preempted=0.0, itl=0.2, kv=0.4), consent=Consent(allowed=())).scene()
    what = symptom_of(slow, changed_before=False)
    assert what is not None
    assert choose(slow, what, barred={}).advice is None
