from typing import Any

import pytest

from plimsoll import names
from plimsoll.facts.serving import Stage
from plimsoll.kube.pod_seen import pod_seen

Object = dict[str, Any]
CREATED, SCHEDULED, STARTED, ENDED = (f"2026-11-21T10:0{minute}:00Z" for minute in range(4))
EPOCH = 1795255200.0
PLACED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": SCHEDULED}


def pod(
    status: Object | None = None, *, node: str | None = "node-1", spec: Object | None = None, **metadata: Any
) -> Object:
    about = {"name": "chat-0a1b2c3d-x", "namespace": "team", "uid": "u", "creationTimestamp": CREATED}
    on = {"nodeName": node} if node else {}
    return {"metadata": about | metadata, "spec": on | (spec or {}), "status": status or {}}


def engine(state: Object, *, last: Object | None = None, ready: bool = False, restarts: int = 0) -> Object:
    return {
        "name": "engine",
        "state": state,
        "lastState": {"terminated": last} if last else {},
        "ready": ready,
        "restartCount": restarts,
    }


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def end(code: int, reason: str = "Error", message: str = "") -> Object:
    return {"exitCode": code, "reason": reason, "message": message, "finishedAt": ENDED}


RUNNING = {"running": {"startedAt": STARTED}}


def status(container: Object, *, ready: str = "False", phase: str = "Running", **rest: Any) -> Object:
    said = {"type": "Ready", "status": ready, "lastTransitionTime": ENDED}
    return {"phase": phase, "conditions": [PLACED, said], "containerStatuses": [container], **rest}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    "lastTransitionTime": SCHEDULED,
}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}

CASES: dict[str, tuple[Object, Stage, str, str]] = {
    "just made": (pod(node=None), Stage.UNSCHEDULED, "", ""),
    "no node has room": (
        pod({"phase": "Pending", "conditions": [UNSCHEDULABLE]}, node=None),
        Stage.UNSCHEDULED,
        "Unschedulable",
        "3 Insufficient nvidia.com/gpu",
    ),
    "held by a gate": (
        pod(
            {"conditions": [GATED]},
            node=None,
            spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
        ),
        Stage.GATED,
        "SchedulingGated",
        "kueue.x-k8s.io/admission",
    ),
    "on a node, nothing said yet": (pod({"conditions": [PLACED]}), Stage.PULLING, "", ""),
    "creating": (pod(status(engine(waiting("ContainerCreating")), phase="Pending")), Stage.PULLING, "", ""),
    "init containers run": (
        pod(
            status(
                engine(waiting("PodInitializing")),
                phase="Pending",
                initContainerStatuses=[{"name": "supervisor", "state": RUNNING}],
            )
        ),
        Stage.PULLING,
        "",
        "",
    ),
    "an init container failed": (
        pod(
            status(
                engine(waiting("PodInitializing")),
                initContainerStatuses=[
                    {"name": "supervisor", "state": {"terminated": end(1, message="no space")}}
                ],
            )
        ),
        Stage.FAILED,
        "Error",
        "no space",
    ),
    "an init container is done": (
        pod(
            status(
                engine(RUNNING),
                initContainerStatuses=[{"name": "supervisor", "state": {"terminated": end(0, "Completed")}}],
            )
        ),
        Stage.LOADING,
        "",
        "",
    ),
    "its image is not found": (
        pod(status(engine(waiting("ErrImagePull", "not found")), phase="Pending")),
        Stage.FAILED,
        "ErrImagePull",
        "not found",
    ),
    "it waits to pull again": (
        pod(status(engine(waiting("ImagePullBackOff")), phase="Pending")),
        Stage.FAILED,
        "ImagePullBackOff",
        "",
    ),
    "its secret is missing": (
        pod(status(engine(waiting("CreateContainerConfigError", 'secret "hub" not found')))),
        Stage.FAILED,
        "CreateContainerConfigError",
        "hub",
    ),
    "it loads": (pod(status(engine(RUNNING))), Stage.LOADING, "", ""),
    "it serves": (pod(status(engine(RUNNING, ready=True), ready="True")), Stage.READY, "", ""),
    "it crashes again and again": (
        pod(
            status(
                engine(
                    waiting("CrashLoopBackOff", "back-off 20s restarting"),
                    last=end(1, message="ValueError: no such model"),
                    restarts=4,
                )
            )
        ),
        Stage.FAILED,
        "CrashLoopBackOff",
        "no such model",
    ),
    "it was killed for memory and waits": (
        pod(status(engine(waiting("CrashLoopBackOff"), last=end(137, "OOMKilled"), restarts=2))),
        Stage.FAILED,
        "OOMKilled",
        "",
    ),
    "it has just ended": (
        pod(status(engine({"terminated": end(2, message="bad flag")}))),
        Stage.FAILED,
        "Error",
        "bad flag",
    ),
    "it loads once more": (pod(status(engine(RUNNING, last=end(1), restarts=1))), Stage.LOADING, "", ""),
    "evicted": (
        pod({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
        Stage.FAILED,
        "Evicted",
        "low on resource",
    ),
    "refused by its node": (
        pod({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices"}),
        Stage.FAILED,
        "UnexpectedAdmissionError",
        "no devices",
    ),
    "it has ended for good": (
        pod(status(engine({"terminated": end(0, "Completed")}), phase="Succeeded")),
        Stage.FAILED,
        "Completed",
        "",
    ),
    "its node is silent": (pod(status(engine(RUNNING, ready=True))), Stage.FAILED, "NodeLost", "node-1"),
    "it leaves": (
        pod(status(engine(RUNNING, ready=True), ready="True"), deletionTimestamp=ENDED),
        Stage.LEAVING,
        "",
        "",
    ),
    "it leaves because its node drains": (
        pod(
            {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "EvictionByEvictionAPI",
                        "message": "m",
                    }
                ]
            },
            deletionTimestamp=ENDED,
        ),
        Stage.LEAVING,
        "EvictionByEvictionAPI",
        "m",
    ),
    "a helper crashes beside an engine that serves": (
        pod(
            status(engine(RUNNING, ready=True))
            | {
                "containerStatuses": [
                    {"name": "helper", "state": waiting("CrashLoopBackOff", "back-off")},
                    engine(RUNNING, ready=True),
                ]
            }
        ),
        Stage.FAILED,
        "CrashLoopBackOff",
        "back-off",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pod_is_told_by_its_status(case: str) -> None:
    item, stage, reason, part = CASES[case]
    seen = pod_seen(item)
    assert (seen.stage, seen.reason) == (stage, reason)
    assert part in seen.message
    assert seen.since > 0


@pytest.mark.parametrize(
    ("case", "minute"),
    [
        ("just made", 0),
        ("no node has room", 1),
        ("creating", 1),
        ("it loads", 2),
        ("it serves", 3),
        ("it crashes again and again", 3),
        ("evicted", 0),
    ],
)
def test_a_stage_has_lasted_since_the_pod_says(case: str, minute: int) -> None:
    assert pod_seen(CASES[case][0]).since == EPOCH + 60 * minute


@pytest.mark.parametrize(
    ("state", "ready", "unready"),
    [
        (waiting("CrashLoopBackOff"), "False", EPOCH + 60),
        (RUNNING, "False", EPOCH + 60),
        (RUNNING, "True", None),
    ],
    ids=["it waits to be started again", "it is started again", "it serves"],
)
def test_since_when_a_pod_is_not_ready_outlasts_each_end_of_its_engine(
    state: Object, ready: str, unready: float | None
) -> None:
    told = status(engine(state, last=end(1), restarts=7), ready=ready)
    told["conditions"][-1]["lastTransitionTime"] = SCHEDULED
    assert pod_seen(pod(told)).unready == unready


def test_of_a_pod_that_no_node_has_told_of_it_is_not_known_since_when_it_is_not_ready() -> None:
    assert pod_seen(pod({"conditions": [PLACED]})).unready is None


def test_leaving_began_when_it_was_asked_for() -> None:
    seen = pod_seen(pod(deletionTimestamp=ENDED, deletionGracePeriodSeconds=60))
    assert seen.since == EPOCH + 120


def test_restarts_and_the_last_end_are_told_while_it_loads_again() -> None:
    seen = pod_seen(pod(status(engine(RUNNING, last=end(137, "OOMKilled"), restarts=3))))
    assert (seen.restarts, seen.exit_code) == (3, 137)


PROBED = {"containers": [{"name": "engine", "startupProbe": {"periodSeconds": 10, "failureThreshold": 6}}]}


@pytest.mark.parametrize(
    ("code", "began", "ready_since", "late_s"),
    [(137, STARTED, CREATED, 60), (0, STARTED, CREATED, 60), (1, STARTED, CREATED, 0), (137, STARTED, ENDED, 0), (137, ENDED, CREATED, 0)],
    ids=["killed", "it ended in peace", "it died by itself", "it had been ready", "it was stopped before"],
)  # fmt: skip
def test_an_engine_that_was_stopped_once_its_start_took_too_long_is_told_from_one_that_died(
    code: int, began: str, ready_since: str, late_s: int
) -> None:
    ended = {**end(code), "startedAt": began}
    told = status(engine(waiting("CrashLoopBackOff"), last=ended, restarts=1))
    told["conditions"][-1]["lastTransitionTime"] = ready_since
    assert pod_seen(pod(told, spec=PROBED)).late_s == late_s


@pytest.mark.parametrize(
    ("labels", "group", "rank"),
    [
        ({}, None, 0),
        ({names.LABEL_GROUP: "2", names.LABEL_RANK: "1"}, 2, 1),
        (
            {"leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/worker-index": "3"},
            0,
            3,
        ),
        (
            {
                "leaderworkerset.sigs.k8s.io/group-index": "4",
                "leaderworkerset.sigs.k8s.io/worker-index": "0",
                names.LABEL_RANK: "4",
            },
            4,
            0,
        ),
        ({names.LABEL_GROUP: "-1"}, None, 0),
    ],
)
def test_a_pod_of_a_group_says_which_and_at_what_rank(labels: Object, group: int | None, rank: int) -> None:
    seen = pod_seen(pod(labels=labels))
    assert (seen.group, seen.rank) == (group, rank)


@pytest.mark.parametrize(
    ("labels", "leads"),
    [({}, False), ({names.LABEL_LEADER: "true"}, True), ({names.LABEL_LEADER: "false"}, False)],
)
def test_a_pod_that_takes_requests_is_told_by_its_label(labels: Object, leads: bool) -> None:
    assert pod_seen(pod(labels=labels)).leads is leads


@pytest.mark.parametrize(
    ("case", "ended"), [("evicted", True), ("it has ended for good", True), ("its node is silent", False)]
)
def test_a_pod_that_will_not_run_again_says_so(case: str, ended: bool) -> None:
    assert pod_seen(CASES[case][0]).ended is ended


def test_long_last_words_are_cut() -> None:
    assert len(pod_seen(pod(status(engine({"terminated": end(1, message="x" * 4096)})))).message) == 1000


LEFT = (
    '{"word": "NoKvRoom", "message": "no room for the cache", "remedy": "fewer sequences", "evidence": ["'
    + "x" * 3000
    + '"]}'
)


def test_what_a_supervisor_left_is_kept_as_data_and_told_by_its_sentence():
    seen = pod_seen(pod(status(engine(waiting("CrashLoopBackOff"), last=end(1, message=LEFT), restarts=2))))
    assert seen.stage is Stage.FAILED
    assert seen.failure is not None
    assert (seen.failure.word, seen.failure.remedy) == ("NoKvRoom", "fewer sequences")
    assert seen.message == "no room for the cache"


def test_why_it_ended_stays_known_while_it_starts_again():
    seen = pod_seen(pod(status(engine(RUNNING, last=end(1, message=LEFT), restarts=1))))
    assert seen.stage is Stage.LOADING
    assert seen.failure is not None


def test_an_engine_s_own_last_words_are_told_in_one_line():
    seen = pod_seen(
        pod(status(engine(waiting("CrashLoopBackOff"), last=end(1, message="\x1b[31ma\x1b[0m\nb"))))
    )
    assert (seen.message, seen.failure) == ("a b", None)


def test_the_supervisor_s_port_is_seen_where_there_is_one():
    ports = [{"name": "http", "containerPort": 8000}, {"name": "runtime", "containerPort": 8079}]
    spec = {"containers": [{"name": "other", "ports": ports}, {"name": "engine", "ports": ports}]}
    assert pod_seen(pod(status(engine(RUNNING)), spec=spec)).runtime_port == 8079
    assert pod_seen(pod(status(engine(RUNNING)))).runtime_port is None


def test_a_pod_asks_to_stay_until_it_is_ready_where_it_says_so():
    assert pod_seen(pod(annotations={names.ANNOTATION_UNTIL_READY: "true"})).until_ready
    assert not pod_seen(pod(annotations=dict(names.STAY))).until_ready
    assert not pod_seen(pod(annotations=None)).until_ready


@pytest.mark.parametrize(
    ("last", "rebooted"),
    [
        (end(255, "Unknown"), True),
        (end(137, "ContainerStatusUnknown"), True),
        (end(1), False),
        (end(137, "OOMKilled"), False),
        (None, False),
    ],
)
def test_an_engine_that_ended_as_its_node_went_down_is_told_from_one_that_crashed(
    last: Object | None, rebooted: bool
) -> None:
    seen = pod_seen(pod(status(engine(RUNNING, last=last, restarts=2))))
    assert (seen.restarts, seen.rebooted) == (2, rebooted)
