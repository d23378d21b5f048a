"""What the doctor says of a real API server, beside what the conditions say: quotas, limits, Pod Security, images, GPUs.

As a plugin of the real kubectl, which finds it by its name on the PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.api import Object
from common import LONG_SECONDS, eventually
from turns.crashes import DIES
from turns.running import Desk

PODS = "requests.nvidia.com/gpu"


def doctor(desk: Desk, *args: str) -> tuple[int, list[dict[str, str]]]:
    """Exit code and findings, of the namespace."""
    ran = plugin(desk, "-n", desk.namespace, "-o", "json", *args)
    assert ran.returncode in (0, 2), ran.stderr
    return ran.returncode, json.loads(ran.stdout)["found"]


def plugin(desk: Desk, *args: str) -> subprocess.CompletedProcess[str]:
    """`kubectl plimsoll doctor`: the plugin is given no flags of kubectl's, so the cluster comes from the environment."""
    home = Path(sys.executable).parent
    environment = {**os.environ, "KUBECONFIG": str(desk.cluster.kubeconfig)}  # noqa: TID251 - another process's
    environment["PATH"] = f"{home}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        [str(desk.cluster.programs["kubectl"]), "plimsoll", "doctor", *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def put(desk: Desk, path: str, body: Object) -> None:
    name = body["metadata"]["name"]
    group, plural = path.rsplit("/", 1)
    root = f"/api/{group}" if group == "v1" else f"/apis/{group}"
    desk.cluster.api.apply(f"{root}/namespaces/{desk.namespace}/{plural}/{name}", body, force=True)


def quota(desk: Desk, **hard: str) -> None:
    put(
        desk,
        "v1/resourcequotas",
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "share"}, "spec": {"hard": hard}},
    )


def test_a_quota_is_told_in_conditions_and_by_the_doctor_and_raising_it_is_enough(desk: Desk) -> None:
    quota(desk, **{PODS: "0"})
    assert eventually(lambda: desk.items("v1/resourcequotas")[0].get("status", {}).get("hard") is not None)
    desk.apply()
    assert desk.says("Ready", "False", "WaitingForQuota")
    assert "exceeded quota: share" in desk.message("Ready")
    assert "raise ResourceQuota share" in desk.message("Ready")
    assert desk.get()["status"]["replicaStatus"]["waitingForQuota"] == 1
    code, found = doctor(desk, "chat")
    assert code == 2
    assert {"Quota", "QuotaUsedUp"} <= {one["reason"] for one in found}
    quota(desk, **{PODS: "8"})
    # The ReplicaSet's controller tries again after a back-off that has doubled meanwhile.
    assert any(eventually(lambda: desk.condition("Ready") == ("True", "Serving")) for _ in range(4))
    assert doctor(desk, "chat")[0] == 0


@pytest.mark.parametrize(
    "limit", [{"max": {"memory": "1Mi"}}, {"min": {"memory": "100Ti"}}], ids=["max", "min"]
)
def test_what_only_a_person_can_allow_is_stalled(desk: Desk, limit: Object) -> None:
    put(
        desk,
        "v1/limitranges",
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "sizes"},
            "spec": {"limits": [{"type": "Container"} | limit]},
        },
    )
    desk.apply()
    assert desk.says("Stalled", "True", "Refused")
    assert "kubectl describe limitrange" in desk.message("Stalled")
    code, found = doctor(desk, "chat")
    assert (code, [one["reason"] for one in found]) == (2, ["LimitRange"])


def test_pods_that_pod_security_refuses_are_told(desk: Desk) -> None:
    n = desk.namespace
    desk.cluster.kubectl(
        "label", "namespace", n, "pod-security.kubernetes.io/enforce=restricted", "--overwrite"
    )
    # Admission learns of a label from a watch, as everybody.
    assert eventually(
        lambda: desk.cluster.kubectl("-n", n, "run", "x", "--image=x", "--dry-run=server").returncode != 0
    )
    desk.apply(podAnnotations={"container.apparmor.security.beta.kubernetes.io/engine": "unconfined"})
    assert desk.says("Stalled", "True", "Refused")
    assert "violates PodSecurity" in desk.message("Stalled")
    code, found = doctor(desk)
    assert (code, [one["reason"] for one in found]) == (2, ["PodSecurity"])
    desk.apply()
    assert desk.says("Ready", "True", "Serving")


def scaler(name: str, kind: str, target: str, version: str = "plimsoll.dev/v1alpha1") -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": target},
            "minReplicas": 2,
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }


def test_an_autoscaler_is_told_what_to_set_and_then_scales(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    put(desk, "autoscaling/v2/horizontalpodautoscalers", scaler("load", "LLMDeployment", "chat"))
    assert desk.says("ScalingLimited", "True", "SetReplicas")
    assert "HorizontalPodAutoscaler load" in desk.message("ScalingLimited")
    assert "SetReplicas" in [one["reason"] for one in doctor(desk)[1]]
    desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=1")
    assert eventually(lambda: desk.condition("ScalingLimited") == ("", ""))
    # Its own minimum needs no metrics.
    assert eventually(lambda: desk.get()["status"].get("ready") == "2/2")


def test_a_scaled_object_is_told_what_to_set_once_its_kind_is_served(desk: Desk) -> None:
    """As written by hand; nobody else reads it here, so that nothing scales."""
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    desk.cluster.install_others("keda")
    target = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LLMDeployment", "name": "chat"}
    trigger = {
        "type": "prometheus",
        "metadata": {"serverAddress": "http://p", "query": "q", "threshold": "5"},
    }
    written = {"kind": "ScaledObject", "apiVersion": "keda.sh/v1alpha1", "metadata": {"name": "load"}}
    put(
        desk,
        "keda.sh/v1alpha1/scaledobjects",
        {**written, "spec": {"scaleTargetRef": target, "triggers": [trigger]}},
    )
    assert desk.says("ScalingLimited", "True", "SetReplicas", patience=LONG_SECONDS)
    assert desk.message("ScalingLimited").startswith(
        "ScaledObject load scales this resource, which works only while spec.replicas is set: set it once, e.g. to the "
        "number that runs now (1)"
    )
    assert "SetReplicas" in [one["reason"] for one in doctor(desk)[1]]
    desk.apply(replicas=1)
    assert desk.says("Ready", "True", "Serving"), (
        "of the spec as it is now, so that no other condition is of before"
    )
    assert desk.condition("ScalingLimited") == desk.condition("AutoscalerConflict") == ("", "")


def test_two_autoscalers_and_one_below_are_a_conflict_until_they_are_gone(desk: Desk) -> None:
    desk.apply(replicas=1)
    assert desk.says("Ready", "True", "Serving")
    (child,) = desk.deployments()
    put(desk, "autoscaling/v2/horizontalpodautoscalers", scaler("a", "Deployment", child, "apps/v1"))
    assert desk.says("AutoscalerConflict", "True", "SeveralWriters")
    assert f"HorizontalPodAutoscaler a on Deployment {child}" in desk.message("AutoscalerConflict")
    assert "SeveralWriters" in [one["reason"] for one in doctor(desk)[1]]
    desk.cluster.kubectl("-n", desk.namespace, "delete", "hpa", "a")
    assert eventually(lambda: desk.condition("AutoscalerConflict") == ("", ""))
    for name in ("b", "c"):
        put(desk, "autoscaling/v2/horizontalpodautoscalers", scaler(name, "LLMDeployment", "chat"))
    assert eventually(lambda: "b, HorizontalPodAutoscaler c" in said(desk))


def said(desk: Desk) -> str:
    return desk.message("AutoscalerConflict") if desk.condition("AutoscalerConflict")[0] else ""


def test_an_image_that_cannot_be_pulled_is_told_by_the_plugin_with_its_cure(desk: Desk) -> None:
    desk.apply(podAnnotations={"e2e.plimsoll.dev/pull-error": "ErrImagePull"})
    assert desk.says("Ready", "False", "StartFailed")
    ran = plugin(desk, "chat", "-n", desk.namespace)
    assert ran.returncode == 2, ran.stderr
    assert "error Pod" in ran.stdout
    assert "cure: check engine.image" in ran.stdout


SICK: dict[str, tuple[Object, Object, str, str]] = {
    # what is wrong with a node: (its labels, its status, reason, part of the cure)
    "nobody-labelled-it": ({}, {"allocatable": {"nvidia.com/gpu": "8"}}, "MissingLabel", "feature discovery"),
    "without-a-driver": (
        {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, {"allocatable": {}}, "NoDriver", "device plugin",
    ),
    "under-pressure": (
        {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        {
            "allocatable": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}],
        },
        "DiskPressure", "kubectl describe node under-pressure",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SICK)
def test_a_node_that_keeps_models_away_is_told_with_its_cure(desk: Desk, name: str) -> None:
    labels, status, reason, cure = SICK[name]
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }
    desk.cluster.api.create("/api/v1/nodes", body)
    try:
        told = [one for one in doctor(desk)[1] if one["about"] == f"Node {name}" and one["reason"] == reason]
    finally:
        desk.cluster.api.delete(f"/api/v1/nodes/{name}")
    assert [cure in one["remedy"] for one in told] == [True]


def test_a_hub_that_pods_cannot_reach_is_told_with_its_cure(desk: Desk) -> None:
    said = "Failed to resolve 'huggingface.co' ([Errno -3] Temporary failure in name resolution)"
    desk.apply(podAnnotations={**DIES, "e2e.plimsoll.dev/message": said})
    assert desk.says("Ready", "False", "StartFailed")
    assert eventually(lambda: "let the pods reach the hub" in desk.message("Ready"))

    def remedies() -> list[str]:
        return [one["remedy"] for one in doctor(desk, "chat")[1] if one["reason"] == "HubUnreachable"]

    # While it runs once more, nothing is known of why it died.
    assert eventually(lambda: ["NetworkPolicy, DNS" in one for one in remedies()] == [True]), remedies()


def test_a_taint_that_keeps_pods_away_is_told_with_its_cure(desk: Desk) -> None:
    """It comes once all is planned, and pods that are there stay; the next one finds no node."""
    desk.apply(replicas=1)
    assert desk.says("Ready", "True", "Serving")
    desk.cluster.kubectl("taint", "nodes", "--all", "team=other:NoSchedule")
    try:
        desk.cluster.kubectl("-n", desk.namespace, "delete", "pods", "--all", "--wait=false")
        assert desk.says("Ready", "False", "WaitingForGPUs")
        assert eventually(lambda: "topology.tolerations" in desk.message("Ready"))
        assert eventually(lambda: any("topology.tolerations" in one["remedy"] for one in doctor(desk)[1]))
    finally:
        desk.cluster.kubectl("taint", "nodes", "--all", "team-")
    assert desk.says("Ready", "True", "Serving")


def test_a_name_that_is_not_there_is_no_answer(desk: Desk) -> None:
    desk.apply()
    ran = plugin(desk, "chap", "-n", desk.namespace)
    assert ran.returncode == 3
    assert "did you mean chat?" in ran.stderr


def test_a_replica_over_nodes_that_a_quota_refuses_is_told_as_well(desk: Desk) -> None:
    quota(desk, **{PODS: "0"})
    assert eventually(lambda: desk.items("v1/resourcequotas")[0].get("status", {}).get("hard") is not None)
    desk.apply(
        model={"source": "hf://meta-llama/Llama-3.1-405B-Instruct"}, topology={"tensor": 8, "pipeline": 2}
    )
    assert desk.says("Ready", "False", "WaitingForQuota")
    assert "exceeded quota: share" in desk.message("Ready")
    assert "Quota" in [one["reason"] for one in doctor(desk)[1]]
