"""A pod that is not ready though its engine is: something beside the engine, or the node, holds it back.

The kubelet writes both conditions at once, and says why; the node controller turns Ready alone, and leaves the words of the pod's good days.
"""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.control.rollout.failing import failure
from plimsoll.control.situation import ReplicaState
from plimsoll.facts.serving import SetSeen, Stage
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.reconcile.loop.replicas import replicas_of
from plimsoll.status.pod_words import words_of
from tests.kube.test_pod_seen import EPOCH, RUNNING, engine, pod, status

Object = dict[str, Any]
HELPER = "containers with unready status: [istio-proxy]"
GATE = 'corresponding condition of pod readiness gate "lb" does not exist.'


def held(
    containers: str, reason: str = "", message: str = "", *, ready: bool = True, gate: bool = False
) -> Object:
    """A pod that is not ready, by what its kubelet said of its containers and by the words of its condition."""
    found = status(engine(RUNNING, ready=ready))
    found["containerStatuses"].append(
        {"name": "istio-proxy", "ready": containers == "True", "state": RUNNING}
    )
    why = {"reason": reason, "message": message} if reason else {}
    found["conditions"][-1] |= why
    found["conditions"].append({"type": "ContainersReady", "status": containers} | why)
    return pod(found, spec={"readinessGates": [{"conditionType": "lb"}]} if gate else {})


CASES: dict[str, tuple[Object, Stage, str, str]] = {
    "a helper is not ready": (
        held("False", "ContainersNotReady", HELPER), Stage.LOADING, "ContainersNotReady", HELPER,
    ),
    "a helper is not ready, and nobody says why": (held("False"), Stage.LOADING, "ContainersNotReady", ""),
    "a gate is closed": (
        held("True", "ReadinessGatesNotReady", GATE, gate=True), Stage.LOADING, "ReadinessGatesNotReady", GATE,
    ),
    "a helper is not ready before a gate": (
        held("False", "ContainersNotReady", HELPER, gate=True), Stage.LOADING, "ContainersNotReady", HELPER,
    ),
    "its node is silent": (held("True"), Stage.FAILED, "NodeLost", "node node-1 does not answer"),
    "its node is silent and its gate was open": (
        held("True", gate=True), Stage.FAILED, "NodeLost", "node node-1 does not answer",
    ),
    "the engine is not ready": (
        held("False", "ContainersNotReady", HELPER, ready=False), Stage.LOADING, "", HELPER,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_holds_it_back_is_told_from_a_node_that_is_silent(case: str) -> None:
    item, stage, reason, message = CASES[case]
    seen = pod_seen(item)
    assert (seen.stage, seen.reason, seen.message) == (stage, reason, message)


@pytest.mark.parametrize(("case", "count"), [("a helper is not ready", 1), ("its node is silent", 0)])
def test_it_is_a_replica_that_starts_as_long_as_its_node_is_not_silent(case: str, count: int) -> None:
    there = SetSeen(name="chat-0a1b2c3d", replicas=1, pods=(pod_seen(CASES[case][0]),))
    states = [one.state for one in replicas_of(there, node_coming=False)]
    assert states == [ReplicaState.STARTING] * count


def test_it_is_late_in_time_and_says_what_was_not_ready() -> None:
    seen = pod_seen(CASES["a helper is not ready"][0])
    there = SetSeen(name="chat-0a1b2c3d", replicas=1, pods=(seen,))
    unready = EPOCH + 180
    assert failure(there, unready + 1800, 1800) is None
    said = f"chat-0a1b2c3d-x was not ready within 1800 s, though its engine was: {HELPER}"
    assert failure(there, unready + 1801, 1800) == said


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("a helper is not ready", f"chat-0a1b2c3d-x is not ready, though its engine is: {HELPER}; kubectl describe pod chat-0a1b2c3d-x says more"),
        ("a gate is closed", f"chat-0a1b2c3d-x is not ready, though its engine is: {GATE}; kubectl describe pod chat-0a1b2c3d-x says more"),
        ("the engine is not ready", None),
    ],
)  # fmt: skip
def test_a_person_reads_which_container_or_gate_it_is(case: str, sentence: str | None) -> None:
    words = words_of(pod_seen(CASES[case][0]))
    assert (words and words.sentence) == sentence


def test_an_engine_that_ended_before_and_is_ready_again_is_not_what_is_told() -> None:
    item = CASES["a helper is not ready"][0]
    item["status"]["containerStatuses"][0]["restartCount"] = 2
    words = words_of(pod_seen(item))
    assert words is not None
    assert HELPER in words.message
