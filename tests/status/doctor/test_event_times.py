"""Of which pod an event tells, and for how long it is true."""

from __future__ import annotations

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import Object, deployment, event, look, serving_pod, waiting, workload

POD = "chat-1a2b3c4d-x"
KILLED = "Container engine failed startup probe, will be restarted"
STARTING = deployment({"type": "Ready", "status": "False", "reason": "Starting"})
QUOTA = "pods is forbidden: exceeded quota: gpus"
AGO_2_MIN = "2027-01-15T07:58:00Z"
AGO_4_MIN = "2027-01-15T07:56:00Z"
AGO_9_MIN = "2027-01-15T07:51:00Z"
AGO_40_MIN = "2027-01-15T07:20:00Z"
AGO_50_MIN = "2027-01-15T07:10:00Z"


def loading() -> Object:
    engine: Object = {"name": "engine", "ready": False, "state": {"running": {}}}
    return serving_pod(conditions=[{"type": "Ready", "status": "False"}], containerStatuses=[engine])


def reasons(pod: Object, *events: Object) -> list[str]:
    return [one.reason for one in diagnose(look(deployments=(STARTING,), pods=(pod,), events=events)).found]


def test_an_event_of_an_earlier_pod_of_the_same_name_is_not_held_against_this_one() -> None:
    """Pods of a StatefulSet keep their names."""
    mounted = event("FailedMount", "timed out", "Pod", POD, uid="the pod before")
    assert reasons(waiting("ContainerCreating"), mounted) == []
    killed = event("Killing", KILLED, "Pod", POD, uid="the pod before")
    assert reasons(loading(), killed) == []


def test_an_event_of_this_very_pod_is() -> None:
    assert reasons(waiting("ContainerCreating"), event("FailedMount", "timed out", "Pod", POD, uid=POD)) == [
        "Volume"
    ]
    assert reasons(loading(), event("Killing", KILLED, "Pod", POD, uid=POD)) == ["ProbeTooShort"]


def test_a_refusal_of_an_earlier_workload_of_the_same_name_is_not_held_against_this_one() -> None:
    short = workload("StatefulSet")
    short["metadata"]["uid"] = "this one"
    for uid, said in (("the one before", []), ("this one", ["Quota"])):
        refused = event("FailedCreate", QUOTA, "StatefulSet", "chat-1a2b3c4d", uid=uid)
        found = diagnose(look(pods=(), workloads=(short,), events=(refused,))).found
        assert [one.reason for one in found] == said


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ({"lastTimestamp": AGO_4_MIN}, True),
        ({"lastTimestamp": AGO_9_MIN}, True),
        ({"lastTimestamp": AGO_40_MIN}, False),
        ({"lastTimestamp": None, "eventTime": f"{AGO_40_MIN[:-1]}.000000Z"}, False),
        ({"eventTime": AGO_40_MIN, "series": {"count": 9, "lastObservedTime": AGO_4_MIN}}, True),
    ],
)
def test_a_volume_is_waited_for_only_while_the_kubelet_goes_on_saying_so(times: Object, told: bool) -> None:
    """It may say so only every five minutes, and events stay for an hour. What comes after is most often the pull of an image."""
    found = reasons(waiting("ContainerCreating"), event("FailedMount", "timed out", "Pod", POD, **times))
    assert found == (["Volume"] if told else [])


def test_a_pod_that_its_node_has_set_up_since_waits_for_images_only() -> None:
    """On a new node the network comes up after the first pods."""
    pod = waiting("ContainerCreating")
    failed = event(
        "FailedCreatePodSandBox", "cni plugin not initialized", "Pod", POD, lastTimestamp=AGO_4_MIN
    )
    assert reasons(pod, failed) == ["Sandbox"]
    pod["status"]["conditions"] = [{"type": "PodReadyToStartContainers", "status": "True"}]
    assert reasons(pod, failed) == []


def test_of_what_a_node_could_not_do_for_a_pod_the_last_is_told() -> None:
    """It sets up the network after the volumes are there."""
    mounted = event("FailedMount", "timed out", "Pod", POD, lastTimestamp=AGO_9_MIN)
    failed = event("FailedCreatePodSandBox", "no IP addresses", "Pod", POD, lastTimestamp=AGO_4_MIN)
    for events in ((mounted, failed), (failed, mounted)):
        assert reasons(waiting("ContainerCreating"), *events) == ["Sandbox"]


def test_a_container_beside_the_engine_that_is_killed_by_its_probe_is_not_told_as_the_engine() -> None:
    killed = "Container istio-proxy failed startup probe, will be restarted"
    assert reasons(loading(), event("Killing", killed, "Pod", POD)) == []


def test_an_engine_that_was_killed_and_then_became_ready_is_not_told_as_killed_when_it_is_unready() -> None:
    pod = loading()
    pod["status"]["conditions"][0]["lastTransitionTime"] = AGO_4_MIN
    assert reasons(pod, event("Killing", KILLED, "Pod", POD, lastTimestamp=AGO_40_MIN)) == []
    assert reasons(pod, event("Killing", KILLED, "Pod", POD)) == ["ProbeTooShort"]


def ended(reason: str, began: str, code: int = 137) -> Object:
    """It waits to be started again, for the sixth time, and was never ready."""
    last = {"reason": reason, "exitCode": code, "startedAt": began, "finishedAt": AGO_2_MIN}
    back_off = {"waiting": {"reason": "CrashLoopBackOff"}}
    engine: Object = {
        "name": "engine",
        "restartCount": 5,
        "state": back_off,
        "lastState": {"terminated": last},
    }
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": AGO_50_MIN}
    return serving_pod(phase="Running", conditions=[unready], containerStatuses=[engine])


@pytest.mark.parametrize(
    ("pod", "ago", "told"),
    [
        (ended("OOMKilled", AGO_9_MIN), AGO_40_MIN, "HostOutOfMemory"),
        (ended("OOMKilled", AGO_40_MIN), AGO_4_MIN, "HostOutOfMemory"),
        (ended("Error", AGO_9_MIN, 1), AGO_40_MIN, "EngineEnded"),
        (ended("Error", AGO_9_MIN), AGO_9_MIN, "ProbeTooShort"),
        (ended("Error", AGO_40_MIN), AGO_4_MIN, "ProbeTooShort"),
    ],
)  # fmt: skip
def test_a_probe_is_blamed_for_the_engine_s_last_end_only(pod: Object, ago: str, told: str) -> None:
    """Nor for one that the kernel caused: an engine that lost a process for host memory may hang until its probe ends it."""
    assert reasons(pod, event("Killing", KILLED, "Pod", POD, lastTimestamp=ago)) == [told]
