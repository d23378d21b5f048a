"""What users of other operators complained about, reproduced: each test is named after the complaint that must not be true here.

The complaints are public issues of KServe, KubeAI, KAITO, Dynamo, AIBrix, Kthena, LeaderWorkerSet, OME and production-stack
under topology, status and trust, rollout, and GitOps.
"""

from __future__ import annotations

import json
import shlex
import time

import pytest

from cluster.api import Object
from common import LONG_SECONDS, ROOT, eventually, is_ready
from plimsoll import names
from turns.crashes import DIES
from turns.draining import drained
from turns.running import Desk, Operator

STARTS_AFTER = "e2e.plimsoll.dev/starts-after"
SLOW = {STARTS_AFTER: "20s"}
STRANGE = "strange-shape"
ROUTES = "gateway.networking.k8s.io/v1/httproutes"
POOLS = "inference.networking.k8s.io/v1/inferencepools"
LARGE = {"source": "hf://meta-llama/Llama-3.1-405B-Instruct"}


def stays(holds: object, seconds: float = 5.0) -> bool:
    """Whether it holds all the while."""
    assert callable(holds)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not holds():
            return False
        time.sleep(0.1)
    return True


def test_tensor_greater_than_the_gpus_of_a_node_never_creates_a_second_pod(desk: Desk) -> None:
    desk.apply(model=LARGE, topology={"tensor": 16})
    assert desk.says("Stalled", "True", "DoesNotFit")
    told = desk.message("Stalled")
    assert told.startswith("topology.tensor (16): no layout fits these devices")
    assert "16 tensor ranks are more than the 8 GPUs of a node" in told
    assert (desk.children(), desk.pods()) == ({}, []), "not even the first pod"


def test_a_model_over_two_nodes_never_starts_its_workers(desk: Desk) -> None:
    desk.apply(model=LARGE, topology={"tensor": 8, "pipeline": 2})
    assert desk.says("Ready", "True", "Serving")
    pods = desk.pods()
    nodes = {one["spec"]["nodeName"] for one in pods}
    assert (len(pods), len(nodes)) == (2, 2)
    leaders = [one for one in pods if one["metadata"]["labels"].get(names.LABEL_LEADER) == "true"]
    assert len(leaders) == 1
    assert desk.get()["status"]["ready"] == "1/1"


def test_ready_while_only_old_pods_are_ready(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    desk.apply(podAnnotations=SLOW)
    assert desk.says("Ready", "False", "RollingOut")
    assert desk.get()["status"]["ready"] == "0/1"
    assert desk.says("Ready", "True", "Serving")
    assert desk.get()["status"]["ready"] == "1/1"


def test_ready_false_for_ever_after_natural_scaling(desk: Desk) -> None:
    for count in (1, 3, 2):
        desk.apply(replicas=count)
        assert eventually(lambda count=count: desk.get().get("status", {}).get("ready") == f"{count}/{count}")  # type: ignore[misc]
        assert desk.says("Ready", "True", "Serving")


def test_ready_true_during_a_crash_loop(desk: Desk) -> None:
    desk.apply(podAnnotations=DIES)
    assert desk.says("Ready", "False", "StartFailed")
    assert stays(lambda: desk.condition("Ready")[0] == "False")


def test_ready_waits_for_a_gateway_that_has_accepted_long_ago(operator: Operator, desk: Desk) -> None:
    """KServe 6072: a pool was accepted by another way in than a Gateway, and Ready went on waiting for one."""
    desk.cluster.install_others("gateway-api", "inferencepool")
    desk.apply(networking={"gateway": {"name": "front", "endpointPicker": {"service": "picker"}}})
    assert desk.says("Ready", "True", "Serving"), "nobody accepts anything here"
    assert eventually(lambda: bool(desk.items(POOLS) and desk.items(ROUTES)))
    accepted = {
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "by another way in",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    way = {"group": "example.com", "kind": "Way", "name": "in"}
    parents = [{"controllerName": "example.com/ways", "parentRef": way, "conditions": [accepted]}]
    path = f"/apis/inference.networking.k8s.io/v1/namespaces/{desk.namespace}/inferencepools/chat/status"
    desk.cluster.api.patch(path, {"status": {"parents": parents}})
    assert operator.rests()
    assert desk.condition("Ready") == ("True", "Serving")
    assert desk.condition("Degraded")[0] != "True"
    assert "Gateway" not in json.dumps(desk.get()["status"])
    assert desk.items(POOLS)[0]["status"]["parents"], "whose status it is, nobody else wrote"


def test_a_node_of_a_shape_that_nobody_knows_ends_who_looks_at_it(operator: Operator, desk: Desk) -> None:
    """OME 140: its agent died on a machine that was in no table. Here such a node is passed over, and what can be served is."""
    failed = operator.turns_failed()
    desk.cluster.api.create("/api/v1/nodes", strange(desk.cluster.api.items("/api/v1/nodes")[0]))
    try:
        desk.apply(replicas=2)
        assert desk.says("Ready", "True", "Serving")
        assert STRANGE not in {one["spec"]["nodeName"] for one in desk.pods()}
        desk.apply("strange", topology={"gpuProducts": ["Z9000-SXM-1TB"]})
        assert eventually(lambda: desk.condition("Stalled", "strange")[0] == "True")
        assert "Z9000-SXM-1TB" in desk.message("Stalled", "strange")
        assert operator.process.poll() is None
        assert operator.turns_failed() == failed
    finally:
        desk.cluster.api.delete(f"/api/v1/nodes/{STRANGE}")


def strange(known: Object) -> Object:
    """Another node like it, but of a product that is in no catalogue, with labels that make no sense."""
    labels = {
        **known["metadata"]["labels"],
        "kubernetes.io/hostname": STRANGE,
        "node.kubernetes.io/instance-type": "cloud.x9",
        "nvidia.com/gpu.product": "NVIDIA-Z9000-SXM-1TB",
        "nvidia.com/gpu.memory": "much",
        "nvidia.com/gpu.count": "some",
    }
    devices = {"allocatable": {**known["status"]["allocatable"], "nvidia.com/gpu": "7"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": STRANGE, "labels": labels},
        "status": {**known["status"], **devices},
    }


def test_hours_in_transit_with_no_reason_and_only_startup_probe_failed(desk: Desk) -> None:
    desk.apply(podAnnotations={**DIES, "e2e.plimsoll.dev/message": "CUDA error: out of memory"})
    assert desk.says("Stalled", "True", "StartFailed")
    assert "CUDA error: out of memory" in desk.message("Stalled")
    desk.apply("image", podAnnotations={"e2e.plimsoll.dev/pull-error": "not found"})
    assert eventually(
        lambda: "image" in str(desk.get("image").get("status", {}).get("conditions", "")).lower()
    )
    assert eventually(lambda: desk.condition("Ready", "image") == ("False", "StartFailed"))
    assert "engine.image" in desk.message("Ready", "image")


def test_reverting_mid_rollout_deletes_the_serving_generation(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    (old,) = desk.deployments()
    serving = {one["metadata"]["uid"] for one in desk.pods()}
    desk.apply(podAnnotations={STARTS_AFTER: "1m"})
    assert desk.says("Ready", "False", "RollingOut")
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    assert eventually(lambda: desk.deployments() == {old: 1})
    assert serving <= {one["metadata"]["uid"] for one in desk.pods()}


def test_no_guide_says_how_to_change_what_serves_and_how_to_go_back(desk: Desk) -> None:
    """Dynamo 14085: fields were listed, and no procedure. Here the guide's own commands are run, one after the other."""
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    before = desk.deployments()
    guide = (ROOT / "docs/operator.md").read_text().partition("## A change, and the way back")[2]
    commands = guide.partition("```sh\n")[2].partition("```")[0].splitlines()
    seen = set[str]()
    for command in commands:
        kubectl, *words = shlex.split(command, comments=True)
        done = desk.cluster.kubectl("-n", desk.namespace, *words)
        assert (kubectl, done.returncode) == ("kubectl", 0), done.stderr
        seen |= set(desk.deployments())
    assert len(seen) == 2, "it changed on the way"
    assert eventually(lambda: desk.deployments() == before)


def test_the_old_pod_is_gone_and_nothing_comes_after_it(desk: Desk) -> None:
    """Kthena 372: of one replica that is replaced the old pod was deleted, which woke nobody."""
    desk.apply(rollout={"strategy": "replace"})
    assert desk.says("Ready", "True", "Serving")
    (old,) = desk.deployments()
    desk.apply(rollout={"strategy": "replace"}, podAnnotations={"edit": "2"})
    assert eventually(lambda: len(desk.deployments()) == 1 and old not in desk.deployments())
    assert desk.says("Ready", "True", "Serving")


def test_new_pods_are_duplicated_during_a_rollout(desk: Desk) -> None:
    desk.apply(replicas=2)
    assert desk.says("Ready", "True", "Serving")
    seen: list[int] = []

    def moved() -> bool:
        seen.append(len(desk.pods()))
        return desk.condition("Progressing")[1] == "RolledOut"

    desk.apply(replicas=2, workload={"contextTokens": 8192})
    assert eventually(moved, LONG_SECONDS)
    assert max(seen) <= 3, "two, and one more while they move"
    assert desk.says("Ready", "True", "Serving")


def test_the_whole_set_restarts_when_the_operator_does(operator: Operator, desk: Desk) -> None:
    desk.apply(replicas=2)
    assert desk.says("Ready", "True", "Serving")
    before = {one["metadata"]["uid"] for one in desk.pods()}
    operator.restart()
    assert eventually(lambda: operator.metric("plimsoll_turns_total") > 0)
    assert stays(lambda: {one["metadata"]["uid"] for one in desk.pods()} == before)


def test_the_operator_rewrites_replicas_against_an_autoscaler(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    done = desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=3")
    assert done.returncode == 0, done.stderr
    assert eventually(lambda: desk.get()["status"].get("ready") == "3/3")
    assert stays(lambda: desk.get()["spec"]["replicas"] == 3 and sum(desk.deployments().values()) == 3)


def test_two_autoscalers_write_one_number_and_undo_each_other_for_ever(
    operator: Operator, desk: Desk
) -> None:
    """An HPA that targets a child: Kubernetes' own controller writes its minimum again and again. Each write is taken back by one of
    ours, one condition and one event tell of it, and once the HPA is gone nothing is written any more."""
    desk.apply(replicas=1)
    assert desk.says("Ready", "True", "Serving")
    (child,) = desk.deployments()
    scaler = {"apiVersion": "apps/v1", "kind": "Deployment", "name": child}
    path = f"/apis/autoscaling/v2/namespaces/{desk.namespace}/horizontalpodautoscalers"
    desk.cluster.api.create(path, {
        "metadata": {"name": "load", "namespace": desk.namespace},
        "spec": {"scaleTargetRef": scaler, "minReplicas": 3, "maxReplicas": 5},
    })  # fmt: skip
    workload = f"/apis/apps/v1/namespaces/{desk.namespace}/deployments/{child}"

    def generation() -> int:
        """Of the child: each write that changes what is asked for counts."""
        return int(desk.cluster.api.get(workload)["metadata"]["generation"])

    before = generation()
    assert eventually(lambda: generation() >= before + 4, LONG_SECONDS), "it was written twice, and put back"
    assert desk.says("AutoscalerConflict", "True", "SeveralWriters")
    assert f"HorizontalPodAutoscaler load on Deployment {child}" in desk.message("AutoscalerConflict")
    assert eventually(lambda: desk.deployments() == {child: 1})
    desk.cluster.api.delete(f"{path}/load")
    assert eventually(lambda: desk.condition("AutoscalerConflict") == ("", ""))
    told = [one for one in desk.items("v1/events") if one["reason"] == "SeveralWriters"]
    assert sum(one.get("count") or 1 for one in told) == 1
    assert operator.rests()
    assert desk.deployments() == {child: 1}


def test_an_edit_of_the_topology_does_not_reach_the_pods(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    desk.apply(topology={"tensor": 2})
    assert desk.says("Ready", "True", "Serving")
    assert eventually(
        lambda: (
            [one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] for one in desk.pods()]
            == ["2"]
        )
    )


def test_a_rollout_trusts_old_pods_that_were_preempted(operator: Operator, desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    (old,) = desk.pods()
    pods = f"/api/v1/namespaces/{desk.namespace}/pods"

    def of(*, old_set: bool) -> list[Object]:
        """Without the one that is preempted."""
        return [
            one
            for one in desk.pods()
            if (one["metadata"]["labels"][names.LABEL_SET] == old["metadata"]["labels"][names.LABEL_SET])
            == old_set
            and one["metadata"]["uid"] != old["metadata"]["uid"]
        ]

    desk.apply(podAnnotations={STARTS_AFTER: "1h"})
    assert eventually(lambda: len(desk.pods()) == 2)
    assert desk.says("Ready", "False", "RollingOut")
    desk.cluster.api.delete(f"{pods}/{old['metadata']['name']}?gracePeriodSeconds=0")
    assert eventually(lambda: [is_ready(one) for one in of(old_set=True)] == [True])
    assert operator.rests()
    assert desk.condition("Ready") == ("False", "RollingOut")
    assert desk.get()["status"]["ready"] == "0/1", "one that answers is of a set that goes"
    (new,) = of(old_set=False)
    now = {"metadata": {"annotations": {STARTS_AFTER: "1s"}}}
    desk.cluster.api.patch(f"{pods}/{new['metadata']['name']}", now)
    assert desk.says("Ready", "True", "Serving")
    assert desk.get()["status"]["ready"] == "1/1"
    assert eventually(lambda: [one["metadata"]["uid"] for one in desk.pods()] == [new["metadata"]["uid"]])


def test_argo_shows_a_diff_for_ever(operator: Operator, desk: Desk) -> None:
    """The same manifest ten times by the server's apply, and ten by the client's, which leaves an annotation of its own: nothing is
    written, nothing in the spec is another one, and a diff finds nothing."""
    made = desk.apply(replicas=1, workload={"contextTokens": 8192})
    assert desk.says("Ready", "True", "Serving")
    assert operator.rests()
    before, children, writes = desk.get(), desk.children(), operator.writes()
    for _ in range(10):
        desk.apply(replicas=1, workload={"contextTokens": 8192})
    where = {"name": "chat", "namespace": desk.namespace}
    manifest = json.dumps({**{key: made[key] for key in ("apiVersion", "kind", "spec")}, "metadata": where})
    for verb in (*["apply"] * 10, "diff"):
        done = desk.cluster.kubectl(verb, "-f", "-", input=manifest)
        assert done.returncode == 0, (
            verb,
            done.stdout,
            done.stderr,
        )  # a diff that finds something ends with 1
    assert stays(lambda: operator.writes() == writes, 3)
    after = desk.get()
    assert (after["spec"], after["status"], desk.children()) == (before["spec"], before["status"], children)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert set(after["spec"]) == {"model", "replicas", "workload"}, "no default was written into the spec"


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_node_that_is_drained_hangs_or_takes_all_replicas_at_once(desk: Desk, replicas: int) -> None:
    desk.apply(replicas=replicas, podAnnotations={STARTS_AFTER: "1s"})
    assert desk.says("Ready", "True", "Serving")
    budget = desk.items("policy/v1/poddisruptionbudgets")[0]["spec"]
    assert (budget["minAvailable"], budget["unhealthyPodEvictionPolicy"]) == (replicas, "AlwaysAllow")
    node = desk.pods()[0]["spec"]["nodeName"]
    try:
        assert drained(desk, node) == replicas, "one more comes first"
        assert eventually(
            lambda: (
                len(desk.pods()) == replicas
                and node not in {one["spec"].get("nodeName") for one in desk.pods()}
            )
        )
        assert desk.says("Ready", "True", "Serving")
        assert desk.says("Progressing", "True", "RolledOut")
    finally:
        desk.cluster.kubectl("uncordon", node)


def test_a_node_cannot_be_drained_where_no_other_has_room(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    nodes = [one["metadata"]["name"] for one in desk.cluster.api.items("/api/v1/nodes")]
    node = desk.pods()[0]["spec"]["nodeName"]
    try:
        desk.cluster.kubectl("cordon", *(name for name in nodes if name != node))
        assert drained(desk, node) == 0
        assert desk.says("Ready", "False", "WaitingForGPUs")
    finally:
        desk.cluster.kubectl("uncordon", *nodes)
    assert desk.says("Ready", "True", "Serving")
