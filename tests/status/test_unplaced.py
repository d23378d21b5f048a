"""What is told of pods that have no node: GPUs are named where GPUs are lacking, and else what the spec names and nobody has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.control.rollout.rules import PLACE_SECONDS
from plimsoll.facts.serving import SetSeen, Stage
from plimsoll.status.pod_words import words_of
from plimsoll.status.told import status_after
from tests.status.stories import NOW, pod, story

FULL = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
TAINT = "0/4 nodes are available: 4 node(s) had untolerated taint {team: other}."
CLAIM = '0/4 nodes are available: persistentvolumeclaim "nope" not found. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.'
UNBOUND = "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."
LOST = "0/4 nodes are available: 4 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."
NOW_S = 1000.0
FIELD = "spec.scheduling.schedulerName"
OLD = SetSeen(name="chat-old", replicas=1, pods=(pod(number=9),))


@pytest.mark.parametrize(
    ("message", "reason", "says", "for_gpus"),
    [
        (FULL, "WaitingForGPUs", "free GPUs, add nodes", 1),
        (TAINT, "WaitingForGPUs", "topology.tolerations", 1),
        (CLAIM, "StartFailed", "check spec.storage: the claim is not there", 0),
        (LOST, "StartFailed", "check spec.storage: the claim, its class or its volume is not there", 0),
        (UNBOUND, "Starting", "check spec.storage: the claim, its class or its volume is not there", 0),
        ("", "Starting", FIELD, 0),
    ],
    ids=["full", "a taint", "no claim", "a lost volume", "a volume that is being made", "no scheduler has looked"],
)  # fmt: skip
def test_a_replica_waits_for_gpus_only_where_the_fleet_lacks_them(
    message: str, reason: str, says: str, for_gpus: int
) -> None:
    status = status_after(story(pod(Stage.UNSCHEDULED, message=message)), LLMDeploymentStatus(), NOW)
    ready, counted = get_condition(status.conditions, names.READY), status.replica_status
    assert ready is not None
    assert counted is not None
    assert (ready.status, ready.reason) == ("False", reason)
    assert says in ready.message
    assert (counted.waiting_for_gpus, counted.starting) == (for_gpus, 1 - for_gpus)


@pytest.mark.parametrize(
    ("message", "says"), [(CLAIM, '"nope" not found'), ("", FIELD)], ids=["no claim", "no scheduler"]
)
def test_an_edit_that_names_what_is_not_there_is_stalled_in_the_end_while_the_old_set_serves(
    message: str, says: str
) -> None:
    waits = pod(Stage.UNSCHEDULED, message=message)
    early = status_after(story(waits, old=(OLD,), now=PLACE_SECONDS + 1), LLMDeploymentStatus(), NOW)
    assert {one.name: one.replicas for one in early.sets} == {"chat-old": 1, "chat-aaaa": 1}
    assert get_condition(early.conditions, names.STALLED) is None
    late = status_after(story(waits, old=(OLD,), now=1801.0), LLMDeploymentStatus(), NOW)
    stalled, ready = (get_condition(late.conditions, kind) for kind in (names.STALLED, names.READY))
    assert stalled is not None
    assert ready is not None
    assert says in stalled.message
    assert "chat-old serves again" in stalled.message
    assert ready.message.endswith("1 replicas still serve")
    progress = get_condition(late.conditions, names.PROGRESSING)
    assert progress is not None
    assert (progress.status, progress.reason) == ("False", "RolledBack")


CONTROL_PLANE = "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
OTHERS = "10 node(s) didn't match Pod's node affinity/selector"
GPUS, MEMORY, CORES = "2 Insufficient nvidia.com/gpu", "1 Insufficient memory", "1 Insufficient cpu"
CLAIMS = "2 cannot allocate all claims"
NO_HELP = "1 Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("reasons", "preemption", "says"),
    [
        ((CONTROL_PLANE, GPUS), f"{NO_HELP}, 2 No preemption victims found for incoming pod", "free GPUs"),
        ((OTHERS, GPUS), "", "free GPUs"),
        ((MEMORY, GPUS), "", "free GPUs"),
        ((CORES, MEMORY), "", "more host memory"),
        ((CORES, OTHERS), "", "more free cores"),
        ((CLAIMS, "1 node(s) had untolerated taint(s)"), "", "free GPUs"),
        (("3 node(s) didn't match pod anti-affinity rules", "1 node(s) had untolerated taint {a: b}"), "", ""),
        ((OTHERS, CORES), NO_HELP, "more free cores"),
        ((CONTROL_PLANE,), NO_HELP, "tolerate the taint"),
        ((CONTROL_PLANE, OTHERS), NO_HELP, "labels of the GPU nodes"),
        (("2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }",), NO_HELP, ""),
        (("2 node(s) had untolerated taint {a: b}", OTHERS), NO_HELP, "tolerate the taint"),
        (("2 node(s) had untolerated taint(s)",), NO_HELP, "tolerate the taint"),
    ],
)  # fmt: skip
def test_what_helps_is_of_the_nodes_that_could_take_the_pod_and_not_of_those_that_never_would(
    reasons: tuple[str, ...], preemption: str, says: str
) -> None:
    """In most clusters some nodes are of the control plane, and others have no GPUs."""
    tried = f" preemption: 0/12 nodes are available: {preemption}." if preemption else ""
    message = f"0/12 nodes are available: {', '.join(reasons)}.{tried}"
    words = words_of(pod(Stage.UNSCHEDULED, reason="Unschedulable", message=message))
    assert words is not None
    assert says in words.remedy
    assert bool(says) == bool(words.remedy)


def test_each_lack_has_a_word_of_its_own() -> None:
    found = {text: words_of(pod(Stage.UNSCHEDULED, message=text)) for text in (FULL, CLAIM, UNBOUND, "")}
    assert [words and words.reason for words in found.values()] == [
        "Unschedulable",
        "NoVolume",
        "VolumeUnbound",
        "NoScheduler",
    ]


def test_a_new_replica_beside_one_that_serves_is_no_lack_of_gpus() -> None:
    """A pod is seen before its scheduler has looked at it, so each start would be told by an event as such a lack."""
    scene = story(
        pod(), replace(pod(Stage.UNSCHEDULED, 1), created=NOW_S, since=NOW_S), spec={"replicas": 2}, now=NOW_S
    )
    ready = get_condition(status_after(scene, LLMDeploymentStatus(), NOW).conditions, names.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "Starting")
