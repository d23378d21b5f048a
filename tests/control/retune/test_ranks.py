"""A replica of several data-parallel ranks: each is an engine with the settings, and the metrics are of all of them together."""

from dataclasses import replace

import pytest

from plimsoll.control.retune import Consent, Scene
from plimsoll.control.retune.ladder import Change, choose
from plimsoll.control.retune.scene import knobs_of
from plimsoll.control.retune.symptoms import Symptom, few_fill_it, symptom_of
from tests.control.retune.test_rungs import CUT_IN, MAY_CUT, ROWS
from tests.control.retune.world import Behaviour, World
from tests.planning.asking import QWEN_MOE, deployment, planned

RANKS = 4
COUNTS = ("running", "waiting", "kv_tokens", "finished", "arrived", "preemptions", "prompt_tokens")
CUTTING = Behaviour(**{**vars(CUT_IN), "prompts": 2500.0})


def of_ranks(scene: Scene, ranks: int = RANKS) -> Scene:
    """The same of a replica in which so many ranks each do what that of `scene` does."""
    replicas = tuple(
        replace(each, **{name: ranks * getattr(each, name) for name in COUNTS})
        for each in scene.signals.replicas
    )
    return replace(
        scene,
        knobs=replace(scene.knobs, ranks=ranks),
        signals=replace(scene.signals, replicas=replicas),
    )


def found(scene: Scene) -> tuple[Symptom | None, Change | None]:
    seen = symptom_of(scene, changed_before=False)
    if seen is None:
        return None, None
    change = choose(scene, seen, barred={}).change
    return seen.symptom, None if change is None else replace(change, why="")


@pytest.mark.parametrize(("how", "changed", "symptom"), ROWS)
@pytest.mark.parametrize("setting", ["watermark", "maxSequences", "maxBatchedTokens"])
def test_the_same_is_done_to_each_of_several_ranks_as_to_one_alone(how, changed, symptom, setting):
    scene = World(old=how, consent=Consent(allowed=(setting,)), **changed).scene()
    assert found(of_ranks(scene)) == found(scene)
    assert found(scene)[0] == symptom


def test_steps_stay_as_small_as_the_prompts_of_one_rank_allow():
    scene = World(old=CUTTING, consent=MAY_CUT).scene()
    assert found(scene)[1] is not None
    assert found(of_ranks(scene)) == found(scene)


def test_a_quarter_of_what_its_ranks_may_run_is_not_near_their_limit():
    """Thirty requests run in the replica, and each of its four ranks may run as many as run in all."""
    one = World(old=Behaviour(preempted=0.0, waiting=9, kv=0.4)).scene()
    assert symptom_of(one, changed_before=False) is not None
    assert symptom_of(replace(one, knobs=replace(one.knobs, ranks=RANKS)), changed_before=False) is None


@pytest.mark.parametrize(
    "how",
    [Behaviour(preempted=0.0, waiting=9, kv=0.4), Behaviour(preempted=0.0, itl=0.2, kv=0.4)],
    ids=["capped", "slow tokens"],
)
def test_it_is_told_how_many_may_run_in_the_whole_replica(how):
    seen = symptom_of(of_ranks(World(old=how).scene()), changed_before=False)
    assert seen is not None
    assert str(RANKS * 32) in seen.why


def test_a_few_huge_requests_fill_the_pool_of_each_rank():
    scene = World(old=Behaviour(kv=0.95)).scene()
    replicas = tuple(replace(each, running=3.0) for each in scene.signals.replicas)
    huge = replace(scene, signals=replace(scene.signals, replicas=replicas))
    assert few_fill_it(huge)
    assert few_fill_it(of_ranks(huge))


@pytest.mark.parametrize(
    ("topology", "ranks"), [({"tensor": 2, "data": 4}, 4), ({"tensor": 8}, 1)], ids=["four ranks", "one"]
)
def test_a_set_has_as_many_ranks_as_its_layout(topology, ranks):
    (one,) = planned(deployment(QWEN_MOE, topology=topology)).sets
    assert knobs_of(one.settings, one.layout).ranks == ranks
