"""Retunes in flight over a change of the operator's release: what an older one wrote goes on, what a newer one wrote is let go.

`written/VERSION.json` holds, by the state of the retune, what that release kept of a deployment, frozen: it stands for records that are
out there, and is never made anew.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from plimsoll.control.retune import Phase, effect_of
from plimsoll.control.retune.steps import Past
from plimsoll.control.workload import Observed
from plimsoll.planning import codec
from plimsoll.reconcile.kept import ASKED_KEY, CONTROL_KEY, Kept
from tests.control.retune.world import GOOD, OLD, World

WRITTEN: Final = {
    (file.stem, state): record
    for file in sorted((Path(__file__).parent / "written").glob("*.json"))
    for state, record in json.loads(file.read_text()).items()
}
LAST: Final = max(version for version, _ in WRITTEN)


def kept(record: Any) -> Kept:
    return Kept.from_data({CONTROL_KEY: json.dumps(record), ASKED_KEY: "again"})


def world_of(record: Any, **more: Any) -> World:
    """In which the record was written just now."""
    control = kept(record).control
    assert control is not None
    step = control.retune.step
    assert step is not None
    return World(stored=codec.encode(control.retune), now=step.since, **more)


def test_each_state_that_a_retune_may_be_in_was_written():
    for version in {version for version, _ in WRITTEN}:
        states = {state for each, state in WRITTEN if each == version}
        assert states == {phase.value for phase in Phase} - {"Failed"}, "of one that failed no step is kept"


FIGURES: Final = {
    "preempted", "finished", "tokens", "errors", "ttft_p99", "itl_p99", "gap", "gaps", "longer", "e2e_p99", "e2e_least", "kept",
    "waiting", "samples",
}  # fmt: skip
COUNTS: Final = {"finished", "preempted", "errors", "tokens", "seconds", "until"}


def test_what_is_written_down_of_a_retune_in_flight_has_no_word_that_the_release_before_does_not_know():
    """That one reads all of a step or nothing."""
    world = World(change=GOOD)
    written: dict[str, set[str]] = {"baseline": set(), "new": set(), "old": set()}
    for _ in range(200):
        world.tick()
        step = world.stored.get("step") or {}
        for part, words in written.items():
            words.update(step.get(part, {}))
    assert Phase.DONE in {past.outcome for past in world.memory.past}
    assert "waiting" in written["baseline"]
    assert written["baseline"] <= FIGURES
    assert written["new"] | written["old"] <= COUNTS


def ended(world: World) -> Past:
    for _ in range(240):
        world.tick()
        if world.memory.step is None:
            break
    return world.memory.past[0]


@pytest.mark.parametrize(("version", "state"), WRITTEN)
def test_a_retune_that_an_older_release_began_goes_on_to_its_end(version, state):
    world = world_of(WRITTEN[version, state])
    past = ended(world)
    outcome = Phase.FAILED if state == "RollingBack" else Phase.DONE
    assert past.outcome is outcome, past.reason
    serves = past.after if outcome is Phase.DONE else past.before
    assert (world.knobs.max_sequences, world.at_old_settings) == (int(serves), True)


@pytest.mark.parametrize("state", ["Canary", "Judging", "Rolling", "Verifying"])
def test_a_bad_one_that_an_older_release_began_goes_back(state):
    world = world_of(WRITTEN[LAST, state], change=OLD)
    assert ended(world).outcome is Phase.FAILED
    assert world.at_old_settings


NEWER: Final[dict[str, dict[str, Any]]] = {
    "a state that is not known": {"phase": "Pondering"},
    "a field that is not known": {"mood": "calm"},
    "a number that is a word now": {"rolled": "one"},
    "a field that is gone": {"baseline": None},
}


@pytest.mark.parametrize("written", NEWER)
@pytest.mark.parametrize("state", [state for version, state in WRITTEN if version == LAST])
def test_a_retune_that_only_a_newer_release_understands_is_forgotten_and_nothing_else_is(state, written):
    record = WRITTEN[LAST, state]
    step = record["retune"]["step"] | NEWER[written]
    newer = record | {"retune": record["retune"] | {"step": step, "failures": 2, "restarts": [1, 2]}}
    found = kept(newer).control
    known = kept(record).control
    assert found is not None
    assert known is not None
    assert found == replace(known, retune=replace(known.retune, step=None, failures=2, restarts=(1, 2)))
    assert effect_of(found.retune) is None, "what was tried goes back"


def test_what_a_newer_release_keeps_besides_costs_an_older_one_nothing_that_it_knows():
    record = WRITTEN[LAST, "Judging"] | {"replicas": 5}
    newer = record | {"mood": "calm", "observed": {"since": 7, "clouds": 3}, "noted": "nothing"}
    found, known = kept(newer).control, kept(record).control
    assert found is not None
    assert known is not None
    assert found == replace(known, observed=Observed(since=7), noted={})
    assert found.replicas == 5


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null"])
def test_what_is_no_record_at_all_counts_as_none(text):
    assert Kept.from_data({CONTROL_KEY: text}).control is None


def test_without_a_record_no_changed_replica_is_asked_for_and_the_symptom_is_looked_for_anew():
    world = World(change=GOOD)
    assert effect_of(world.memory) is None
    world.run(7200)
    assert Phase.DONE in {past.outcome for past in world.memory.past}
