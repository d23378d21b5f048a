"""What is seen of pods, in the words of the control law: replicas, their states, and the room there is for more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.control.situation import ReplicaState
from plimsoll.facts.inventory import Taint
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.plan import Hardware
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.loop.grounds import Grounds
from plimsoll.reconcile.loop.replicas import leaders, live, replicas_of
from plimsoll.reconcile.loop.situations import serving_set
from plimsoll.reconcile.loop.subject import subject_of
from tests.planning.asking import inventory, pool
from tests.reconcile.loop.test_given_up import EDITS, edited, situation
from tests.reconcile.test_decide import seen

AUTO = {"scaling": {"min": 1, "max": 4}}


def pod(name: str, stage: Stage = Stage.READY, **more: Any) -> PodSeen:
    return PodSeen(name=name, uid=f"uid-{name}", stage=stage, created=10.0, **more)


@pytest.mark.parametrize(
    ("stage", "node_coming", "state"),
    [
        (Stage.READY, False, ReplicaState.READY),
        (Stage.LOADING, False, ReplicaState.STARTING),
        (Stage.PULLING, False, ReplicaState.STARTING),
        (Stage.UNSCHEDULED, False, ReplicaState.UNSCHEDULABLE),
        (Stage.UNSCHEDULED, True, ReplicaState.NODE_COMING),
        (Stage.GATED, False, ReplicaState.QUEUED),
        (Stage.FAILED, False, ReplicaState.FAILED),
        (Stage.LEAVING, False, ReplicaState.LEAVING),
    ],
)
def test_a_pod_is_a_replica_in_the_state_of_its_stage(
    stage: Stage, node_coming: bool, state: ReplicaState
) -> None:
    (found,) = replicas_of(SetSeen(name="a", replicas=1, pods=(pod("p", stage),)), node_coming=node_coming)
    assert (found.id, found.state) == ("uid-p", state)


def group(*stages: Stage, number: int = 0) -> tuple[PodSeen, ...]:
    return tuple(
        pod(f"g{number}-{rank}", stage, group=number, rank=rank, since=100.0 + rank, scheduled=20.0 + rank)
        for rank, stage in enumerate(stages)
    )


@pytest.mark.parametrize(
    ("stages", "state"),
    [
        ((Stage.READY, Stage.READY), ReplicaState.READY),
        ((Stage.READY,), ReplicaState.STARTING),
        ((Stage.READY, Stage.LOADING), ReplicaState.STARTING),
        ((Stage.READY, Stage.FAILED), ReplicaState.FAILED),
        ((Stage.LOADING, Stage.UNSCHEDULED), ReplicaState.UNSCHEDULABLE),
        ((Stage.LEAVING, Stage.LEAVING), ReplicaState.LEAVING),
    ],
)
def test_a_group_is_one_replica_as_far_as_its_slowest_pod(
    stages: tuple[Stage, ...], state: ReplicaState
) -> None:
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=group(*stages))
    (found,) = replicas_of(seen, node_coming=False)
    assert (found.id, found.state) == ("uid-g0-0", state)


@pytest.mark.parametrize(
    ("reasons", "outside"),
    [
        (["ErrImagePull"], True),
        (["ImagePullBackOff"], True),
        (["RegistryUnavailable"], True),
        (["CrashLoopBackOff"], False),
        (["OOMKilled"], False),
        (["ImagePullBackOff", ""], True),
        (["ImagePullBackOff", "ErrImagePull"], True),
        (["ImagePullBackOff", "OOMKilled"], False),
        ([""], False),
        (["", ""], False),
    ],
)
def test_a_replica_whose_image_cannot_be_had_fails_by_no_doing_of_its_engine(
    reasons: list[str], outside: bool
) -> None:
    pods = tuple(
        pod(f"g-{rank}", Stage.FAILED if why else Stage.READY, group=0, rank=rank, reason=why)
        for rank, why in enumerate(reasons)
    )
    seen = SetSeen(name="a", replicas=1, pods_per_replica=len(pods), pods=pods)
    (found,) = replicas_of(seen, node_coming=False)
    assert found.outside is outside


def test_a_groups_start_is_counted_from_its_last_node_to_its_last_pod() -> None:
    seen = SetSeen(name="a", replicas=1, pods_per_replica=2, pods=group(Stage.READY, Stage.READY))
    (found,) = replicas_of(seen, node_coming=False)
    assert (found.scheduled, found.since) == (21.0, 101.0)


def test_ends_of_all_engines_of_a_replica_are_the_replicas() -> None:
    seen = SetSeen(
        name="a",
        replicas=1,
        pods_per_replica=2,
        pods=(pod("g-0", group=0, restarts=1), pod("g-1", group=0, rank=1, restarts=2)),
    )
    (found,) = replicas_of(seen, node_coming=False)
    assert found.restarts == 3


@pytest.mark.parametrize(
    ("unready", "since"),
    [((None, None), None), ((50.0, None), 50.0), ((70.0, 60.0), 60.0), ((None, 40.0), 40.0)],
)
def test_a_replica_has_not_served_since_the_first_of_its_pods_that_is_not_ready(
    unready: tuple[float | None, ...], since: float | None
) -> None:
    pods = tuple(pod(f"g-{rank}", group=0, rank=rank, unready=at) for rank, at in enumerate(unready))
    (found,) = replicas_of(SetSeen(name="a", replicas=1, pods_per_replica=2, pods=pods), node_coming=False)
    assert found.unready == since
    (alone,) = replicas_of(SetSeen(name="a", replicas=1, pods=pods[1:]), node_coming=False)
    assert alone.unready == unready[1]


@pytest.mark.parametrize("gone", [{"ended": True, "reason": "Evicted"}, {"reason": "NodeLost"}], ids=str)
def test_a_pod_that_was_evicted_or_whose_node_is_silent_is_no_replica_that_fails(
    gone: dict[str, Any],
) -> None:
    seen = SetSeen(name="a", replicas=1, pods=(pod("new"), pod("old", Stage.FAILED, **gone)))
    assert [one.id for one in replicas_of(seen, node_coming=False)] == ["uid-new"]


def test_metrics_are_asked_of_the_leaders_of_whole_replicas() -> None:
    pods = (*group(Stage.READY, Stage.READY), *group(Stage.READY, Stage.LOADING, number=1))
    serving = Serving(
        sets=(
            SetSeen(name="a", replicas=2, pods_per_replica=2, pods=pods),
            SetSeen(name="b", replicas=1, pods=(pod("p"),)),
        )
    )
    assert live(leaders(serving)) == {"g0-0": "uid-g0-0", "p": "uid-p"}
    assert live(leaders(serving), ["b"]) == {"p": "uid-p"}


H100 = Hardware(gpu="H100-SXM-80GB", vendor="nvidia", resource="nvidia.com/gpu", memory_bytes=80 * 2**30)


def test_room_is_counted_where_the_set_may_run() -> None:
    here = Grounds(inventory(pool(nodes=2), pool("L4", nodes=9)), OperatorConfig())
    ground = here.of(H100, Shape(1, 4), Layout())
    assert (ground.replicas, ground.provision_s, ground.declared) == (4, 0.0, False)
    other = here.of(H100, Shape(1, 8), Layout())
    assert (other.replicas, other.key == ground.key) == (2, False)
    barred = Hardware(
        gpu=H100.gpu, vendor="nvidia", resource=H100.resource, memory_bytes=1, selector={"team": "a"}
    )
    assert here.of(barred, Shape(1, 4), Layout()).replicas == 0


@pytest.mark.parametrize(
    ("there", "declared", "provision_s"),
    [
        ({"free": {8: 1}, "declared_nodes": 1, "node_class": "big"}, True, 0.0),
        ({"declared_nodes": 1, "node_class": "big"}, True, 900.0),
        ({"declared_nodes": 1, "promised": {0: 1}, "node_class": "big"}, True, 900.0),
        ({"unavailable": {"not ready": 1}, "node_class": "big"}, True, 900.0),
        ({"unavailable": {"unreachable": 1}, "node_class": "big"}, False, None),
        ({"unavailable": {"cordoned": 1}, "node_class": "big"}, False, None),
        ({"unavailable": {"not ready": 1}}, False, None),
    ],
    ids=[
        "could be made beside one that is there",
        "could be made",
        "is promised, to it or to others",
        "has come and is not ready",
        "has died",
        "is cordoned",
        "is of no class and not ready",
    ],
)
def test_a_node_is_waited_for_that(there: dict[str, Any], declared: bool, provision_s: float | None) -> None:
    big = {"name": "big", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1, "provisionSeconds": 900}
    config = OperatorConfig.model_validate({"nodeClasses": [big]})
    ground = Grounds(inventory(pool(**{"free": {}, **there})), config).of(H100, Shape(1, 8), Layout())
    assert (ground.declared, ground.provision_s) == (declared, provision_s)


@pytest.mark.parametrize(
    ("nodes", "whole", "halves"),
    [(1, 8, 0), (3, 24, 16)],
    ids=["one is no room for two", "the odd one is no room for two"],
)
def test_replicas_of_one_node_and_of_two_find_each_their_own_room(
    nodes: int, whole: float, halves: float
) -> None:
    """Whichever is asked about last."""
    (one,) = edited(EDITS["other labels"]).before.sets
    alone = replace(one, shape=Shape(1, 8), layout=Layout(tensor=8), gpus=8.0)
    wide = replace(one, shape=Shape(2, 8), layout=Layout(tensor=8, pipeline=2), gpus=16.0)
    for asked in ((alone, wide), (wide, alone)):
        here = Grounds(inventory(pool(nodes=nodes)), OperatorConfig())
        found = {each.shape.pods: here.for_set(each) for each in asked}
        free = here.free()
        assert (free[found[1].key], free[found[2].key]) == (whole, halves)


def test_grounds_say_which_pools_they_are_made_up_of() -> None:
    (one,) = edited(EDITS["other labels"]).before.sets
    west = pool(key="west")
    east = replace(west, key="east", labels={**west.labels, "side": "east"})
    here = Grounds(inventory(east, west), OperatorConfig())
    bound = replace(one, hardware=replace(one.hardware, selector={**one.hardware.selector, "side": "east"}))
    keys = [here.for_set(each).key for each in (one, bound)]
    assert [here.parts()[key] for key in keys] == [{"east", "west"}, {"east"}]


def test_room_on_tainted_nodes_is_for_those_who_bear_the_taint() -> None:
    barred = pool(nodes=2, taints=(Taint(key="team", value="other", effect="NoSchedule"),))
    here = Grounds(inventory(barred), OperatorConfig())
    assert here.of(H100, Shape(1, 8), Layout()).replicas == 0
    bears = (Toleration(key="team", operator="Exists"),)
    assert here.of(H100, Shape(1, 8), Layout(), bears).replicas == 2


def test_a_set_that_an_edit_renames_bears_the_same_entry_of_the_plan() -> None:
    kept = decide(seen(spec=AUTO)).kept
    asked = [seen(spec={**AUTO, "podAnnotations": {"team": team}}) for team in ("blue", "red")]
    grounds = Grounds(inventory(pool(nodes=1)), OperatorConfig())
    found = []
    for each in asked:
        subject = subject_of(each.deployment, kept, each.config, {})
        assert subject is not None
        (planned,) = subject.sets
        found.append(serving_set(planned, (), grounds.for_set(planned)))
    assert found[0].name != found[1].name
    assert found[0].entry == found[1].entry == planned.digest


def test_what_the_api_server_refuses_to_make_is_told_on() -> None:
    met = edited(EDITS["other labels"])
    (there, _) = met.serving.sets
    for why in ("", "exceeded quota: gpus"):
        (found,) = situation(met.before, Serving(sets=(replace(there, refused=why),))).roles[0].sets
        assert found.refused is bool(why)
