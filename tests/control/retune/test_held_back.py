"""Why nothing is retuned though the load asks for it: what a person can do something about is told, and does not come and go."""

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.conditions import REASONS
from plimsoll.api.config import Restarts
from plimsoll.control.decision import Told
from plimsoll.control.retune import Consent, RetuneMemory, advance
from plimsoll.status.live import retuning
from tests.control.retune.world import GOOD, OLD, TICK, World

CALM = replace(OLD, preempted=0.0, gap=0.5, kv=0.4)


def told(world: World) -> Told:
    found = retuning(world.memory)
    assert found is not None
    assert found.reason in REASONS[names.RETUNING]
    return found


@pytest.mark.parametrize(
    ("world", "reason", "words"),
    [
        (World(replicas=1, free=0), "WouldDisrupt", "spec.tuning.allowDisruption"),
        (World(replicas=4, free=0, rules=Restarts(restarts_per_day=6)), "BudgetTooSmall", "8 would do"),
        (World(rules=Restarts(retunes_per_day=0)), "BudgetSpent", "0 are allowed"),
        (World(old=replace(OLD, rate=0.01)), "TooLittleTraffic", "a canary would see"),
        (
            World(consent=Consent(allowed=("maxBatchedTokens",))),
            "NothingHelps",
            "watermark: spec.tuning.allow does not name it; maxSequences: spec.tuning.allow does not name it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_what_keeps_a_retune_from_beginning_is_told_as_long_as_the_load_asks_for_it(world, reason, words):
    world.run(1200)
    found = told(world)
    assert (found.type, found.status, found.reason) == (names.RETUNING, "False", reason)
    assert words in found.message
    world.old = CALM
    world.run(1200)
    assert retuning(world.memory) is None


def test_many_gpus_in_retunes_keep_others_waiting():
    world = World()
    memory = RetuneMemory()
    for now in range(0, 600, 30):
        scene = replace(world.scene(), now=world.now + now, fleet_retuning=9.0)
        memory = advance(scene, memory).memory
    found = retuning(memory)
    assert found is not None
    assert (found.reason, found.message) == (
        "FleetBusy",
        "9 GPUs of the fleet are in retunes, 10 may be",
    )


def test_what_is_told_stays_while_the_load_wavers_and_while_its_figures_change():
    world = World(replicas=1, free=0).run(300)
    said = set()
    for place in range(40):
        world.old = replace(OLD, preempted=0.3 + 0.01 * place) if place % 3 else CALM
        world.tick()
        said.add(retuning(world.memory))
        held = world.memory.held
        assert held is not None
        if world.now - held.since > 600 - 2 * TICK:
            break
    assert len(said) == 1


def test_what_passes_by_itself_is_not_told():
    world = World()
    scene = replace(world.scene(), busy="a rollout")
    memory = RetuneMemory()
    for now in range(0, 900, 30):
        memory = advance(replace(scene, now=scene.now + now), memory).memory
    assert memory.since
    assert retuning(memory) is None


def test_what_nobody_can_say_yet_is_no_answer():
    world = World()
    latencies = replace(world.scene().signals.latencies, output=None)
    memory = RetuneMemory()
    for now in range(0, 900, 30):
        scene = world.scene()
        scene = replace(scene, now=world.now + now, signals=replace(scene.signals, latencies=latencies))
        turned = advance(scene, memory)
        memory = turned.memory
    assert "lengths are not known yet" in (turned.why_not or "")
    assert retuning(memory) is None


def test_a_retune_that_begins_and_consent_that_is_taken_back_end_it():
    world = World(replicas=1, free=0).run(300)
    assert told(world).reason == "WouldDisrupt"
    world.free, world.change = 1, GOOD
    world.run(60)
    assert told(world).status == "True"
    off = World(replicas=1, free=0).run(300)
    off.consent = Consent(mode="off")
    off.tick()
    assert retuning(off.memory) is None


def test_what_held_one_back_is_not_told_in_a_dry_run_which_asks_for_no_room():
    world = World(replicas=1, free=0).run(300)
    assert told(world).reason == "WouldDisrupt"
    world.consent = replace(world.consent, mode="dryRun")
    world.run(1200)
    assert world.memory.suggested is not None
    assert retuning(world.memory) is None


def test_in_a_dry_run_too_it_is_told_that_no_setting_helps():
    world = World(consent=Consent(mode="dryRun", allowed=("maxBatchedTokens",))).run(1200)
    assert told(world).reason == "NothingHelps"


def test_what_held_one_back_and_is_gone_is_not_told_where_nobody_can_say_yet_what_helps():
    world = World(replicas=1, free=0).run(900)
    assert told(world).reason == "WouldDisrupt"
    memory, scene = world.memory, world.scene()
    signals = replace(scene.signals, latencies=replace(scene.signals.latencies, output=None))
    turned = advance(replace(scene, now=world.now + TICK, free_replicas=1, signals=signals), memory)
    assert "lengths are not known yet" in (turned.why_not or "")
    assert retuning(turned.memory) is None


def test_what_holds_back_another_set_is_told_anew_of_the_only_one_that_is_left():
    world = World(replicas=1, free=0, about="tp1 on H100-SXM-80GB").run(300)
    assert told(world).message.startswith("tp1 on H100-SXM-80GB: the only replica")
    world.about = ""
    world.run(60)
    assert told(world).message.startswith("the only replica"), "its words are not those of a set that is gone"
