"""Each check of the doctor: the look that makes it speak, what it then says, and that a healthy look is silent."""

from __future__ import annotations

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.status.doctor.diagnosis import CHECKS, diagnose
from tests.status.doctor.shown import (
    LABELS,
    Object,
    claim,
    deployment,
    dies,
    event,
    held_back,
    lease,
    look,
    node,
    old_crd,
    overdue,
    scaler,
    serving_pod,
    storage_class,
    unscheduled,
    waiting,
    workload,
)

QUOTA = 'pods "chat-1a2b3c4d-x" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=1, limited: pods=1'
HELD_STILL = deployment({"type": "Ready", "status": "False", "reason": "Paused"})
VOLUME = {"storage": {"weights": {"claim": {"name": "weights"}}}}
CARD = {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}
KILLED = "Container engine failed startup probe, will be restarted"


def serves_but(condition: Object) -> Object:
    return deployment({"type": "Ready", "status": "True", "reason": "Serving"}, condition)


def warned(said: str) -> Object:
    found = deployment({"type": "Ready", "status": "True", "reason": "Serving"})
    return {**found, "status": {**found["status"], "sets": [{"name": "a"}, {"name": "b", "warning": said}]}}


SICK: dict[str, tuple[Object, str, str, str]] = {
    # what is seen: (other than healthy, reason, part of the message, part of the cure)
    "no CRD": ({"crds": (), "deployments": ()}, "NoCRD", "knows no LLMDeployments", "plimsoll crd | kubectl apply"),
    "an older CRD": ({"crds": (old_crd(),)}, "OldCRD", "spec.model.revision, spec.slo", "plimsoll crd"),
    "an older CRD of the status": (
        {"crds": (old_crd("status", "ramp"),)}, "OldCRD", "status.ramp: the API server drops such fields of a spec without a word, and the operator leaves", "plimsoll crd",
    ),
    "no operator": (
        {"leases": (), "deployments": (deployment() | {"status": {}},)}, "NoOperator", "team/chat", "image.repository=REGISTRY/plimsoll",
    ),
    "an operator that is silent": (
        {"leases": (lease(renewed="2027-01-15T07:50:00Z"),)}, "OperatorDown", "pod-a renewed its Lease 600 s ago", "-n plimsoll",
    ),
    "an operator that left": ({"leases": (lease(holder=""),)}, "OperatorDown", "gave its Lease back", "get pods"),
    "GPUs without a label": ({"nodes": (node({}),)}, "MissingLabel", "nvidia.com/gpu", "feature discovery"),
    "labels without GPUs": (
        {"nodes": (node(gpus=0),)}, "ContradictoryLabels", "the device plugin does not run", "device plugin",
    ),
    "GPUs by claims on an old Kubernetes": (
        {"nodes": (node(gpus=0),)}, "ContradictoryLabels", "by claims (DRA), which needs Kubernetes 1.34", "device plugin",
    ),
    "a product that nobody knows": (
        {"nodes": (node(LABELS | {"nvidia.com/gpu.product": "NVIDIA-Z9"}),)}, "UnknownProduct", "NVIDIA-Z9", "nodeClasses",
    ),
    "a card without a driver": (
        {"nodes": (node(CARD, gpus=0),)},
        "NoDriver", "an NVIDIA card, but the node offers no nvidia.com/gpu: install the NVIDIA GPU operator", "device plugin",
    ),
    "no accelerators": ({"nodes": (node({}, gpus=0),)}, "NoAccelerators", "only run on CPUs", "nodeClasses"),
    "a cordoned node": ({"nodes": (node(unschedulable=True),)}, "NodeAway", "cordoned", "kubectl uncordon n1"),
    "a node under pressure": (
        {"nodes": (node(conditions=[{"type": "DiskPressure", "status": "True"}]),)},
        "DiskPressure", "DiskPressure", "describe node n1",
    ),
    "an image that cannot be pulled": (
        {"pods": (waiting("ImagePullBackOff", "not found"),)}, "ImagePull", "not found", "engine.image",
    ),
    "a secret that is not there": (
        {"pods": (waiting("CreateContainerConfigError", 'secret "hub" not found'),)}, "ConfigError", '"hub"', "Secrets",
    ),
    "a taint": (
        {"pods": (unscheduled("0/1 nodes are available: 1 node(s) had untolerated taint {a: b}."),)},
        "Unschedulable", "untolerated taint", "topology.tolerations",
    ),
    "too few free GPUs": (
        {"pods": (unscheduled("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),)},
        "Unschedulable", "Insufficient nvidia.com/gpu", "free GPUs",
    ),
    "a claim that a pod waits for": (
        {"pods": (unscheduled('0/1 nodes are available: persistentvolumeclaim "nope" not found.'),)},
        "NoVolume", '"nope" not found', "spec.storage",
    ),
    "a scheduler that has not looked at a pod": (
        {"pods": (serving_pod(phase="Pending", conditions=[]),)},
        "NoScheduler", "spec.scheduling.schedulerName", "describe pod",
    ),
    "a container beside the engine that is not ready": (
        {"pods": (held_back(),)},
        "ContainersNotReady", "unready status: [istio-proxy]", "describe pod",
    ),
    "a gated model": (
        {"pods": (dies("401 Client Error: gated repo"),)},
        "HubRefused", "gated repo", "spec.model.tokenSecret",
    ),
    "a hub that cannot be reached": (
        {"pods": (dies("Failed to resolve 'huggingface.co'"),)},
        "HubUnreachable", "huggingface.co", "spec.storage.weights",
    ),
    "an old driver": (
        {"pods": (dies("The NVIDIA driver on your system is too old"),)},
        "Driver", "too old", "update it",
    ),
    "an engine that dies": (
        {"pods": (dies("bad flag"),)},
        "EngineEnded", "exit code 1, 4 times: bad flag", "kubectl logs",
    ),
    "a start that takes longer than its probe": (
        {
            "pods": (dies(code=137),),
            "events": (event("Killing", KILLED, "Pod", "chat-1a2b3c4d-x"),),
        },
        "ProbeTooShort", "after 600 s", "spec.rollout.deadlineSeconds",
    ),
    "a volume that cannot be mounted": (
        {
            "pods": (waiting("ContainerCreating"),),
            "events": (event("FailedMount", "secret not found", "Pod", "chat-1a2b3c4d-x"),),
        },
        "Volume", "FailedMount: secret not found", "spec.storage",
    ),
    "a network that has no address for a pod": (
        {
            "pods": (waiting("ContainerCreating"),),
            "events": (event("FailedCreatePodSandBox", "failed (add): no IP addresses", "Pod", "chat-1a2b3c4d-x"),),
        },
        "Sandbox", "cannot be set up on its node: FailedCreatePodSandBox: failed (add): no IP", "describe pod chat-1a2b3c4d-x",
    ),
    "a claimed device that its driver cannot prepare": (
        {
            "pods": (waiting("ContainerCreating"),),
            "events": (event("FailedPrepareDynamicResources", "driver not found", "Pod", "chat-1a2b3c4d-x"),),
        },
        "Sandbox", "FailedPrepareDynamicResources: driver not found", "DRA driver",
    ),
    "a pod that does not go": ({"pods": (overdue(),)}, "StuckLeaving", "10 minutes ago, and its node (n1)", "node.kubernetes.io/out-of-service"),
    "a quota that refuses": (
        {"pods": (), "workloads": (workload("Deployment", 0, {"type": "ReplicaFailure", "status": "True", "message": QUOTA}),)},
        "Quota", "exceeded quota: gpus", "raise ResourceQuota gpus",
    ),
    "pod security refuses pods of a group": (
        {
            "pods": (),
            "workloads": (workload("StatefulSet"),),
            "events": (event("FailedCreate", 'pods "x" is forbidden: violates PodSecurity "restricted:latest": y', "StatefulSet", "chat-1a2b3c4d"),),
        },
        "PodSecurity", "violates PodSecurity", "pod-security.kubernetes.io/enforce",
    ),
    "a claim that is not there": ({"deployments": (deployment(**VOLUME),)}, "NoClaim", "weights", "spec.storage.weights.claim.name"),
    "a claim in the model's source": (
        {"deployments": (deployment(model={"source": "pvc://models/qwen"}),)}, "NoClaim", "models", "spec.model.source",
    ),
    "a storage class that is not there": (
        {"deployments": (deployment(**VOLUME),), "claims": (claim("slow"),)}, "ClaimPending", "slow is not there; the cluster has fast", "get storageclass",
    ),
    "no default storage class": (
        {"deployments": (deployment(**VOLUME),), "claims": (claim(),), "classes": ()}, "ClaimPending", "no default", "storageClass",
    ),
    "a quota that is used up": (
        {"quotas": ({"metadata": {"name": "q", "namespace": "team"}, "status": {"hard": {"requests.nvidia.com/gpu": "8", "cpu": "1"}, "used": {"requests.nvidia.com/gpu": "8", "cpu": "1"}}},)},
        "QuotaUsedUp", "requests.nvidia.com/gpu 8 of 8;", "raise the quota",
    ),
    "an autoscaler without replicas": ({"autoscalers": (scaler(),)}, "SetReplicas", "by kubectl scale, and never in what", ""),
    "two autoscalers": (
        {"autoscalers": (scaler(), scaler("other")), "deployments": (deployment(replicas=2),)}, "SeveralWriters", "keep one", "",
    ),
    "an autoscaler of a child": (
        {"autoscalers": (scaler("load", ("Deployment", "chat-1a2b3c4d")),)}, "SeveralWriters", "target the LLMDeployment", "",
    ),
    "an autoscaler without metrics": (
        {
            "autoscalers": (scaler("load", (names.KIND, "chat"), {"type": "ScalingActive", "status": "False", "reason": "FailedGetMetric", "message": "no metrics"}),),
            "deployments": (deployment(replicas=2),),
        },
        "FailedGetMetric", "no metrics", "describe horizontalpodautoscaler load",
    ),
    "a deployment that says so": (
        {"deployments": (deployment({"type": "Stalled", "status": "True", "reason": "DoesNotFit", "message": "too large"}),)},
        "DoesNotFit", "too large", "",
    ),
    "a deployment that serves less": (
        {"deployments": (deployment({"type": "Ready", "status": "True", "reason": "Serving"}, {"type": "Degraded", "status": "True", "reason": "EngineRestarts"}),)},
        "EngineRestarts", "words", "",
    ),
    "nobody sees how loaded replicas are": (
        {"deployments": (serves_but({"type": "MetricsAvailable", "status": "False", "reason": "Missing"}),)},
        "Missing", "words", "docs/runbooks/MetricsStale.md",
    ),
    "a query that finds nothing while replicas are seen": (
        {"deployments": (serves_but({"type": "MetricsAvailable", "status": "False", "reason": "QueryUnanswered"}),)},
        "QueryUnanswered", "words", "spec.scaling.zero.wake.query, seen at prometheusUrl",
    ),
    "a query on which Prometheus fails": (
        {"deployments": (serves_but({"type": "MetricsAvailable", "status": "False", "reason": "QueryFailed"}),)},
        "QueryFailed", "words", "the Prometheus of prometheusUrl",
    ),
    "more replicas are wanted than may be": (
        {"deployments": (serves_but({"type": "ScalingLimited", "status": "True", "reason": "AtMax"}),)},
        "AtMax", "words", "",
    ),
    "retuning that waits for a person": (
        {"deployments": (serves_but({"type": "AutotunePaused", "status": "True", "reason": "RepeatedFailure"}),)},
        "RepeatedFailure", "words", "plimsoll history chat -n team",
    ),
    "a promise that nothing keeps": (
        {"deployments": (serves_but({"type": "SLOAttainable", "status": "False", "reason": "Unattainable"}),)},
        "Unattainable", "words", "",
    ),
    "a deployment that is held before it serves": (
        {"deployments": (HELD_STILL,)}, "Paused", "words", "set spec.paused to false",
    ),
    "engines that warn of what costs speed": (
        {"deployments": (warned("chat-0: NoNvlink: not all GPUs reach one another by it. Remedy: other nodes"),)},
        "EngineWarns", "NoNvlink: not all GPUs", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("others", "reason", "message", "remedy"), SICK.values(), ids=SICK)
def test_what_is_wrong_is_said_with_what_was_seen_and_what_cures_it(
    others: Object, reason: str, message: str, remedy: str
) -> None:
    found = diagnose(look(**others)).found
    assert [one.reason for one in found] == [reason]
    assert message in found[0].message
    assert remedy in found[0].remedy


HALF: Object = {
    "pods": (
        serving_pod("a-0", {names.LABEL_GROUP: "0"}),
        unscheduled("none is free", "a-1", {names.LABEL_GROUP: "0"}),
    )
}


def test_half_a_group_is_said_beside_why_the_other_half_waits() -> None:
    group, pod = diagnose(look(**HALF)).found
    assert (group.reason, pod.reason) == ("GroupHalfScheduled", "Unschedulable")
    assert "group 0 has nodes for 1 of its 2 pods" in group.message
    assert "lets its GPUs go" in group.message
    assert "none is free" in pod.message


def test_a_healthy_cluster_is_not_spoken_of() -> None:
    assert diagnose(look()).found == ()


def test_every_check_has_a_case() -> None:
    for check in CHECKS:
        looks = [look(**others) for others in (HALF, *(others for others, *_ in SICK.values()))]
        assert any(list(check(one)) for one in looks), check.__name__


HARMLESS: dict[str, Object] = {
    "a start": {"deployments": (deployment({"type": "Ready", "status": "False", "reason": "Starting"}),)},
    "words about an older spec": {
        "deployments": (
            deployment({"type": "Stalled", "status": "True", "reason": "X", "observedGeneration": 1}),
        )
    },
    "a claim that waits for its pod": {
        "deployments": (deployment(**VOLUME),),
        "claims": (claim("late"),),
        "classes": (storage_class("late", "WaitForFirstConsumer"),),
    },
    "a claim of somebody else": {"claims": (claim("slow"),)},
    "no operator where nothing is asked of one": {"leases": (), "deployments": ()},
    "what KEDA keeps for itself": {
        "deployments": (deployment(replicas=2),),
        "autoscalers": (
            scaler(),
            {
                **scaler("keda-hpa-load"),
                "metadata": {
                    "name": "keda-hpa-load",
                    "namespace": "team",
                    "ownerReferences": [{"kind": "ScaledObject", "name": "load"}],
                },
            },
        ),
    },
    "a volume that came late": {"events": (event("FailedMount", "not yet", "Pod", "chat-1a2b3c4d-x"),)},
    "an engine that was killed once and serves": {
        "events": (event("Killing", KILLED, "Pod", "chat-1a2b3c4d-x"),)
    },
    "live conditions that are well": {
        "deployments": (
            deployment(
                {"type": "Ready", "status": "True", "reason": "Serving"},
                {"type": "MetricsAvailable", "status": "True", "reason": "Fresh"},
                {"type": "AutotunePaused", "status": "False", "reason": "Active"},
                {"type": "SLOAttainable", "status": "True", "reason": "NotDeclared"},
            ),
        ),
    },
    "an autoscaler of before, of which a check of its own would tell": {
        "deployments": (serves_but({"type": "ScalingLimited", "status": "True", "reason": "SetReplicas"}),)
    },
    "a refusal that is over": {
        "events": (event("FailedCreate", QUOTA, "Deployment", "chat-1a2b3c4d"),),
    },
    "what could not be read": {
        "crds": (),
        "leases": (),
        "deployments": (deployment(**VOLUME),),
        "unseen": {"crds": "403", "leases": "403", "claims": "403"},
    },
    "a card whose devices may be given by claims that could not be read": {
        "nodes": (node(CARD, gpus=0),),
        "unseen": {"slices": "403"},
    },
    "nodes whose devices may be given by claims that could not be read": {
        "nodes": (node({}, gpus=0),),
        "unseen": {"slices": "403"},
    },
}


@pytest.mark.parametrize("others", HARMLESS.values(), ids=HARMLESS)
def test_what_is_as_it_may_be_is_not_spoken_of(others: Object) -> None:
    assert diagnose(look(**others)).found == ()


WARNED = (
    "an autoscaler without replicas",
    "two autoscalers",
    "an autoscaler of a child",
    "an autoscaler without metrics",
    "a quota that is used up",
    "a deployment that serves less",
    "nobody sees how loaded replicas are",
    "more replicas are wanted than may be",
    "a deployment that is held before it serves",
)


@pytest.mark.parametrize("case", WARNED)
def test_what_keeps_nothing_from_serving_is_a_warning(case: str) -> None:
    """Of which the exit code of the command is 0."""
    assert [one.severity for one in diagnose(look(**SICK[case][0])).found] == ["warning"]


def test_errors_come_before_warnings_and_what_was_not_seen_is_named() -> None:
    sick = look(
        nodes=(node(unschedulable=True),),
        pods=(waiting("ImagePullBackOff"),),
        unseen={"quotas": "403 Forbidden"},
    )
    diagnosis = diagnose(sick)
    assert [one.severity for one in diagnosis.found] == ["error", "warning"]
    assert diagnosis.errors == 1
    assert diagnosis.unseen == ("quotas: 403 Forbidden",)


def test_nodes_that_say_the_same_are_one_finding() -> None:
    nodes = tuple({**node({}), "metadata": {"name": f"n{number}"}} for number in range(5))
    (found,) = diagnose(look(nodes=nodes)).found
    assert found.about == "Node n0, n1, n2 and 2 more"


def test_a_node_class_of_the_admins_says_what_labels_leave_out() -> None:
    unnamed = node({key: value for key, value in LABELS.items() if "product" not in key} | {"pool": "h100"})
    (found,) = diagnose(look(nodes=(unnamed,))).found
    assert "nodeClasses" in found.remedy
    one = {
        "name": "h100",
        "labels": {"pool": "h100"},
        "gpuProduct": "H100-SXM-80GB",
        "gpusPerNode": 8,
        "maxNodes": 4,
    }
    config = OperatorConfig.model_validate({"nodeClasses": [one]})
    assert diagnose(look(nodes=(unnamed,), config=config)).found == ()
