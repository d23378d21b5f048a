"""What the user takes back or edits while a retune is under way wins at once, and tells nothing of the change."""

from dataclasses import replace

import pytest

from plimsoll.api.config import Restarts
from plimsoll.control.retune import Consent, Knobs, Phase, advance
from plimsoll.control.retune.allowed import taken_back
from plimsoll.control.retune.symptoms import Symptom
from tests.control.retune.world import Behaviour, World

HOUR = 3600.0
UNDER_WAY = ("Canary", "Judging", "Rolling", "Verifying")
TAKEN_BACK = {
    "off": (Consent(mode="off"), "spec.tuning.mode was set to off"),
    "a dry run": (Consent(mode="dryRun"), "spec.tuning.mode was set to dryRun"),
    "another setting only": (Consent(allowed=("watermark",)), "spec.tuning.allow names maxSequences no more"),
    "a higher floor": (Consent(least_sequences=30), "no fewer than 30"),
    "a list that named what the spec sets": (
        Consent(fixed=("maxSequences",)),
        "spec.engine.maxSequences sets it, and spec.tuning.allow does not name it",
    ),
}


def in_phase(phase: str) -> World:
    world = World()
    while world.memory.step is None or world.memory.step.phase.value != phase:
        world.tick()
    return world


@pytest.mark.parametrize("consent", TAKEN_BACK)
@pytest.mark.parametrize("phase", UNDER_WAY)
def test_what_the_user_no_longer_allows_goes_back_and_is_no_failure_of_the_change(phase, consent):
    world = in_phase(phase)
    world.consent, why = TAKEN_BACK[consent]
    step = world.memory.step
    assert step is not None
    world.run(300)
    past = world.memory.past[-1]
    assert past.outcome is Phase.FAILED
    assert why in past.reason
    assert (world.memory.failures, world.knobs.max_sequences) == (0, 32)
    assert world.most_changed <= step.rolled, "what was written down, and no further one"
    assert world.memory.step is None or world.memory.step.id != step.id


@pytest.mark.parametrize("consent", TAKEN_BACK)
def test_what_is_only_planned_and_no_longer_allowed_touches_no_replica(consent):
    world = in_phase("Planned")
    world.consent, why = TAKEN_BACK[consent]
    world.tick()
    assert why in world.memory.past[0].reason
    assert (world.memory.past[0].tried, world.most_changed) == (False, 0)


@pytest.mark.parametrize(("after", "why"), [("7", None), ("6", None), ("5", "no fewer than 8")])
def test_a_floor_above_what_ran_before_takes_back_no_step_that_does_not_go_further_below_it(after, why):
    world = in_phase("Judging")
    assert world.memory.step is not None
    step = replace(world.memory.step, before="6", after=after)
    said = taken_back(replace(world.scene(), consent=Consent(least_sequences=8)), step)
    assert said is None if why is None else said is not None and why in said


@pytest.mark.parametrize("consent", [Consent(least_sequences=12), Consent(allowed=("maxSequences",))])
def test_an_edit_that_still_allows_the_change_leaves_it_alone(consent):
    world = in_phase("Judging")
    world.consent = consent
    world.run(HOUR)
    assert world.memory.past[-1].outcome is Phase.DONE


def test_a_change_back_to_what_the_spec_sets_goes_on_though_no_list_names_it():
    world = in_phase("Judging")
    step = world.memory.step
    assert step is not None
    world.consent = Consent(fixed=("maxSequences",))
    assert taken_back(world.scene(), replace(step, symptom=Symptom.RELAXED)) is None
    assert taken_back(world.scene(), step) is not None


def test_an_engine_that_breaks_as_it_is_turned_off_has_failed():
    world = in_phase("Judging")
    world.died, world.consent = 1, Consent(mode="off")
    world.run(300)
    assert "ended" in world.memory.past[0].reason
    assert world.memory.failures == 1


@pytest.mark.parametrize("phase", ["Planned", *UNDER_WAY])
def test_an_edit_that_makes_other_pods_wins_too(phase):
    world = in_phase(phase)
    world.serves = "chat-0002"
    world.tick()
    (past,) = world.memory.past
    assert (past.tried, world.memory.failures, world.in_flight) == (False, 0, False)
    assert "edited" in past.reason


def test_a_retune_of_the_release_before_which_did_not_say_whose_pods_it_was_about_goes_on():
    world = in_phase("Judging")
    step = world.memory.step
    assert step is not None
    memory = replace(world.memory, step=replace(step, serves=""))
    assert advance(world.scene(), memory).memory.step is not None


def test_an_edit_while_it_goes_back_forgets_nothing_of_what_was_found_out():
    world = in_phase("Judging")
    world.died = 1
    world.tick()
    assert world.memory.step is not None
    assert world.memory.step.phase is Phase.ROLLING_BACK
    world.spec = "spec-2"
    world.tick()
    (past,) = world.memory.past
    assert (past.tried, world.memory.failures, world.in_flight) == (True, 1, False)
    assert "ended" in past.reason


def test_what_the_plan_itself_has_is_above_every_floor():
    calm = Behaviour(preempted=0.0, kv=0.3)
    world = World(
        old=calm,
        change=calm,
        planned={"maxSequences": "4"},
        knobs=Knobs(max_sequences=6),
        consent=Consent(),
        rules=Restarts.model_validate({"releaseAfterSeconds": 7200}),
    ).run(6 * HOUR)
    assert [(past.outcome, past.after) for past in world.memory.past] == [(Phase.DONE, "4")]
    assert world.knobs.max_sequences == 4
