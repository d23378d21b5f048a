"""What is told of pods whose engine ended, or whose node did: the cause, by whichever pod knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.facts.failure import Failure
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.status.pod_words import words_of
from plimsoll.status.said import conditions_of
from plimsoll.status.story import Story
from tests.kube.test_pod_seen import RUNNING, end, engine, status, waiting
from tests.kube.test_pod_seen import pod as of_kubernetes
from tests.status.stories import pod, story

WORKER = Failure("WorkerLost", "worker 1 was killed by signal 9", "see what else its node runs")
MEMBER = Failure("MemberLost", "rank 1 of this replica ended: WorkerLost", "see the node of rank 1")
OVER = Failure("GroupEnded", "this replica is over", "see rank 0")
STARTED_AGAIN = Failure("MemberLost", "rank 1 of this replica was started again", "see the node of rank 1")


@pytest.mark.parametrize(
    ("gone", "reason"),
    [
        ({"reason": "NodeLost"}, "NodeLost"),
        ({"reason": "Evicted", "ended": True}, "Evicted"),
        ({"reason": "UnexpectedAdmissionError", "ended": True}, "EndedByNode"),
        ({"reason": "Terminated", "ended": True}, "EndedByNode"),
    ],
)
def test_what_became_of_a_pod_is_not_told_by_how_its_engine_ended_before(
    gone: dict[str, Any], reason: str
) -> None:
    words = words_of(pod(Stage.FAILED, restarts=1, failure=WORKER, **gone))
    assert words is not None
    assert words.reason == reason


def with_ended(*pods: PodSeen, ended: PodSeen, **others: Any) -> Story:
    """A story whose set also has a pod that its node ended."""
    told = story(*pods, now=1000.0, **others)
    (seen,) = told.serving.sets
    return replace(told, now=1000.0, serving=replace(told.serving, sets=(replace(seen, ended=(ended,)),)))


def evicted(since: float) -> PodSeen:
    return pod(Stage.FAILED, 9, reason="Evicted", message="low on memory", ended=True, since=since)


@pytest.mark.parametrize(
    ("since", "said"),
    [
        (900.0, "chat-aaaa-9 was evicted: low on memory; look for pressure"),
        (100.0, "the rest loads the model"),
    ],
)
def test_a_pod_that_was_evicted_lately_is_why_the_one_in_its_place_does_not_serve_yet(
    since: float, said: str
) -> None:
    (ready,) = (
        one
        for one in conditions_of(with_ended(pod(Stage.LOADING), ended=evicted(since)))
        if one.type == "Ready"
    )
    assert (ready.status, ready.reason) == ("False", "Starting")
    assert said in ready.message


def test_what_is_wrong_with_the_pod_of_today_is_told_before_that_another_was_evicted() -> None:
    dies = pod(Stage.FAILED, reason="OOMKilled", restarts=2)
    (ready,) = (one for one in conditions_of(with_ended(dies, ended=evicted(990.0))) if one.type == "Ready")
    assert "evicted" not in ready.message
    assert "killed for host memory" in ready.message


def test_what_was_stopped_has_stopped_though_a_pod_that_was_evicted_lies_there_still() -> None:
    told = with_ended(pod(), ended=evicted(10.0), spec={"replicas": 0})
    (seen,) = told.serving.sets
    empty = replace(told, serving=replace(told.serving, sets=(replace(seen, replicas=0, pods=()),)))
    (ready,) = (one for one in conditions_of(empty) if one.type == "Ready")
    assert (ready.status, ready.reason) == ("True", "Stopped")


@pytest.mark.parametrize(
    ("how", "reason", "remedy"),
    [
        (end(137, "OOMKilled"), "HostOutOfMemory", "memory.kvOffload"),
        (end(1, message="Access to model meta-llama/x is restricted"), "HubRefused", "tokenSecret"),
        (end(128, "StartError", message="nvidia-container-cli: driver error"), "CannotRun", "GPU driver"),
    ],
)
def test_why_an_engine_ended_stays_told_while_it_runs_once_more(
    how: dict[str, Any], reason: str, remedy: str
) -> None:
    back_off = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
    for state, ready in ((back_off, False), (RUNNING, False), (RUNNING, True)):
        told = status(engine(state, last=how, restarts=4, ready=ready), ready=str(ready))
        words = words_of(pod_seen(of_kubernetes(told)))
        assert words is not None
        assert words.reason == reason
        assert remedy in words.remedy


@pytest.mark.parametrize(("how", "late_s"), [("Error", 600), ("OOMKilled", 0)])
def test_an_engine_that_was_killed_for_memory_is_not_said_to_have_been_slow(how: str, late_s: int) -> None:
    ran = end(137, how) | {"startedAt": "2027-01-01T00:00:00Z", "finishedAt": "2027-01-01T00:10:00Z"}
    probe = {"periodSeconds": 10, "failureThreshold": 60}
    spec = {"containers": [{"name": "engine", "startupProbe": probe}]}
    told = status(engine(RUNNING, last=ran, restarts=1))
    assert pod_seen(of_kubernetes(told, spec=spec)).late_s == late_s


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("ImageInspectError", "ImagePull"),
        ("RegistryUnavailable", "ImagePull"),
        ("SignatureValidationFailed", "ImagePull"),
        ("RunContainerError", "CannotRun"),
    ],
)
def test_a_container_that_never_ran_is_no_engine_that_ended(word: str, reason: str) -> None:
    words = words_of(pod_seen(of_kubernetes(status(engine(waiting(word, "said"))))))
    assert words is not None
    assert (words.reason, "--previous" in words.remedy) == (reason, False)


def test_the_pod_of_a_group_on_a_lost_node_is_said_to_have_no_other_in_its_place() -> None:
    words = words_of(pod(Stage.FAILED, reason="NodeLost", message="node node-1 does not answer", group=0))
    assert words is not None
    assert "no other pod is made in its place before the node is back" in words.remedy


def test_a_lost_node_is_told_as_such_and_not_as_an_engine_that_ended() -> None:
    words = words_of(pod(Stage.FAILED, reason="NodeLost", message="node node-1 does not answer"))
    assert words is not None
    assert "is lost: node node-1 does not answer; look why: kubectl describe node" in words.sentence


def of_group(rank: int, failure: Failure | None, stage: Stage = Stage.LOADING, **others: Any) -> PodSeen:
    return pod(stage, rank, group=0, rank=rank, restarts=1, exit_code=1, failure=failure, **others)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ((of_group(0, MEMBER), of_group(1, WORKER)), "WorkerLost"),
        ((of_group(0, OVER), of_group(1, MEMBER), of_group(2, WORKER)), "WorkerLost"),
        ((of_group(0, WORKER), of_group(1, OVER)), "WorkerLost"),
        # Killed as a whole, it left no word.
        ((of_group(0, STARTED_AGAIN), of_group(1, None)), "MemberLost"),
        ((of_group(0, None), of_group(1, OVER)), "GroupEnded"),
        # A pod that was made anew has not ended yet.
        ((of_group(0, STARTED_AGAIN), pod(Stage.LOADING, 1, group=0, rank=1)), "MemberLost"),
        # A node's own word for it is as good as an engine's.
        ((of_group(0, STARTED_AGAIN), of_group(1, None, Stage.FAILED, reason="OOMKilled")), "HostOutOfMemory"),
        # Of a member that answers its probe while the other still loads.
        ((of_group(0, MEMBER), of_group(1, WORKER, Stage.READY)), "WorkerLost"),
    ],
)  # fmt: skip
def test_a_group_that_ended_together_is_told_by_the_pod_that_knows_why(
    pods: tuple[PodSeen, ...], reason: str
) -> None:
    for order in (pods, pods[::-1]):
        ready = next(
            one for one in conditions_of(story(*order, per_replica=len(pods))) if one.type == names.READY
        )
        assert (ready.status, ready.reason) == ("False", reason)
    back = tuple(replace(one, stage=Stage.READY) for one in pods)
    again = {one.type: one for one in conditions_of(story(*back, per_replica=len(pods)))}
    assert again[names.READY].reason == "Serving"
    assert again[names.DEGRADED].reason == "EngineRestarts"


def test_how_a_replica_that_serves_once_ended_is_not_why_another_one_does_not() -> None:
    before = pod(Stage.READY, 0, restarts=1, failure=WORKER)
    scene = story(before, pod(Stage.LOADING, 1), spec={"replicas": 2})
    ready = next(one for one in conditions_of(scene) if one.type == names.READY)
    assert (ready.status, ready.reason) == ("False", "Starting")
    assert "loads the model" in ready.message


@pytest.mark.parametrize(
    ("how", "now", "reason"),
    [
        ({}, 3600.0, "EngineRestarts"),
        ({}, 3601.0, "Healthy"),
        ({"rebooted": True}, 0.0, "Healthy"),
        ({"rebooted": True, "restarts": 2}, 0.0, "Healthy"),
    ],
    ids=[
        "within the hour",
        "after it",
        "its node began anew",
        "its node began anew, and it had ended before",
    ],
)
def test_an_engine_that_ended_by_itself_is_told_until_it_has_served_for_an_hour(
    how: dict[str, Any], now: float, reason: str
) -> None:
    scene = replace(story(pod(**{"restarts": 1, "exit_code": 1, **how})), now=now)
    told = {one.type: one for one in conditions_of(scene)}
    assert (told[names.READY].reason, told[names.DEGRADED].reason) == ("Serving", reason)


@pytest.mark.parametrize("restarts", [1, 2])
def test_an_engine_that_loads_after_its_node_began_anew_is_one_that_starts(restarts: int) -> None:
    """How it ended before that is not known any more: the pod has only its last end."""
    scene = story(pod(Stage.LOADING, restarts=restarts, exit_code=255, rebooted=True))
    ready = next(one for one in conditions_of(scene) if one.type == names.READY)
    assert (ready.reason, ready.message.partition(": ")[2]) == ("Starting", "the rest loads the model")
