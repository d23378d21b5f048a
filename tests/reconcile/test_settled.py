"""When there is nothing to do, as told from what is cached alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.serving import Stage
from plimsoll.kube.applier import Applied, Refusal, Taken
from plimsoll.kube.child import Child, read_child
from plimsoll.kube.errors import Unreachable, refusal
from plimsoll.kube.kinds import kind_of
from plimsoll.objects import Manifest, Ref
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.settled import settled
from plimsoll.reconcile.turn import _story
from plimsoll.status.told import status_after
from tests.reconcile.test_decide import after, seen

NOW = "2026-11-22T12:00:00Z"
SERVICE = Ref("v1", "Service", "team-a", "chat")


def at_rest() -> tuple[Seen, Decision]:
    """A deployment that serves, and what its last turn decided."""
    asked = seen()
    metadata = asked.deployment.metadata.model_copy(update={"uid": "u1", "generation": 1})
    asked = replace(asked, deployment=asked.deployment.model_copy(update={"metadata": metadata}))
    world = after(decide(asked), asked)
    decision = decide(world)
    world = after(decision, asked)
    return world, decide(world)


def children(decision: Decision) -> dict[Ref, Child]:
    """As they are seen once they are written."""
    found = (_child(one) for one in decision.manifests)
    return {child.ref: child for child in found}


def _child(one: Manifest) -> Child:
    body = json.loads(json.dumps(one.body))
    body["metadata"] |= {"uid": one.ref.name, "resourceVersion": "5"}
    child = read_child(kind_of(one.ref), body, clean=True)
    assert child is not None
    return child


def after_telling(world: Seen, decision: Decision, applied: Applied) -> LLMDeployment:
    status = status_after(_story(world, decision, applied), LLMDeploymentStatus(), NOW)
    return world.deployment.model_copy(update={"status": status})


def test_what_serves_as_it_was_told_is_left_alone() -> None:
    world, decision = at_rest()
    deployment = after_telling(world, decision, Applied())
    assert settled(deployment, children(decision), world.serving, world.mark)


@pytest.mark.parametrize(
    ("bears", "paused", "rests"),
    [(True, None, False), (True, True, True), (False, None, True)],
    ids=["it is to be set free", "nothing is to be touched", "it was"],
)
def test_a_pod_that_is_ready_and_still_asks_to_stay_is_work(
    bears: bool, paused: bool | None, rests: bool
) -> None:
    world, decision = at_rest()
    (there,) = world.serving.sets
    pods = tuple(replace(pod, until_ready=bears) for pod in there.pods)
    serving = replace(world.serving, sets=(replace(there, pods=pods),))
    assert serving.loaded == (pods if bears else ())
    deployment = after_telling(world, decision, Applied())
    spec = deployment.spec.model_copy(update={"paused": paused})
    deployment = deployment.model_copy(update={"spec": spec})
    assert settled(deployment, children(decision), serving, world.mark) is rests


@pytest.mark.parametrize(
    "applied",
    [
        Applied(refused=[Refusal(SERVICE, Unreachable("the answer was lost"))]),
        Applied(refused=[Refusal(SERVICE, refusal(403, {"reason": "Forbidden"}))]),
        Applied(taken=[Taken(SERVICE, "Helper h")]),
    ],
    ids=["lost", "refused", "taken"],
)
def test_what_could_not_be_written_is_looked_at_again_though_all_is_there_by_now(applied: Applied) -> None:
    """The API server does what it is asked also where its answer is lost: then nothing but the status says that something is amiss."""
    world, decision = at_rest()
    deployment = after_telling(world, decision, applied)
    assert {one.type for one in deployment.status.conditions} & {names.RECONCILING, names.STALLED}
    assert not settled(deployment, children(decision), world.serving, world.mark)


@pytest.mark.parametrize(
    ("message", "rests"),
    [
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", True),
        ('0/1 nodes are available: persistentvolumeclaim "nope" not found.', False),
        ("", False),
    ],
    ids=["no room", "no claim", "no scheduler"],
)
def test_what_a_pod_lacks_beside_room_is_told_again_as_no_number_shows_a_change_of_it(
    message: str, rests: bool
) -> None:
    world, _ = at_rest()
    (there,) = world.serving.sets
    waits = tuple(replace(pod, stage=Stage.UNSCHEDULED, node=None, message=message) for pod in there.pods)
    world = replace(world, serving=replace(world.serving, sets=(replace(there, pods=waits),)))
    decision = decide(world)
    deployment = after_telling(world, decision, Applied())
    assert settled(deployment, children(decision), world.serving, world.mark) is rests


@pytest.mark.parametrize(("serves", "rests"), [(True, True), (False, False)])
def test_that_a_pod_was_ended_by_its_node_is_told_while_the_one_in_its_place_does_not_serve(
    serves: bool, rests: bool
) -> None:
    """No number tells of it, as the other one starts at once."""
    world, _ = at_rest()
    (there,) = world.serving.sets
    stage = Stage.READY if serves else Stage.PULLING
    pods = tuple(replace(pod, stage=stage) for pod in there.pods)
    world = replace(world, serving=replace(world.serving, sets=(replace(there, pods=pods),)))
    decision = decide(world)
    deployment = after_telling(world, decision, Applied())
    assert settled(deployment, children(decision), world.serving, world.mark)
    (there,) = world.serving.sets
    refused = replace(there.pods[0], stage=Stage.FAILED, reason="UnexpectedAdmissionError", ended=True)
    serving = replace(world.serving, sets=(replace(there, ended=(refused,)),))
    assert settled(deployment, children(decision), serving, world.mark) is rests
