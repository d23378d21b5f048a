"""How simulated pods and nodes fail, seen from outside: in statuses, conditions and events as a kubelet writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.api import ApiError, Object
from cluster.fleet import Fleet, fleet_of
from common import eventually
from plimsoll import names
from plimsoll.kube.pod_seen import pod_seen

HABIT: Final = "e2e.plimsoll.dev/"


def fleet(name: str, *, product: str = "L4-24GB", **pool: Any) -> Fleet:
    whole = {"name": name, "gpuProduct": product, "gpusPerNode": 4, "nodes": 1, **pool}
    return fleet_of(name, {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": [whole]})


class Pods:
    """Of one namespace, on one node."""

    def __init__(self, cluster: Cluster, namespace: str, node: str) -> None:
        self.api = cluster.api
        self.path = f"/api/v1/namespaces/{namespace}"
        self.node = node

    def create(self, name: str = "pod", *, restart: str = "Always", **habits: str) -> None:
        annotations = {HABIT + key.replace("_", "-"): value for key, value in habits.items()}
        self.api.create(
            f"{self.path}/pods",
            {
                "metadata": {"name": name, "annotations": annotations},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": self.node},
                    "restartPolicy": restart,
                    "containers": [
                        {"name": "main", "image": "registry.invalid/engine:1"},
                        {"name": "beside", "image": "registry.invalid/beside:1"},
                    ],
                },
            },
        )

    def change(self, habit: str, value: str | None, name: str = "pod") -> None:
        self.api.patch(f"{self.path}/pods/{name}", {"metadata": {"annotations": {HABIT + habit: value}}})

    def status(self, name: str = "pod") -> Any:
        return self.api.get(f"{self.path}/pods/{name}")["status"]

    def main(self, name: str = "pod") -> Any:
        return (self.status(name).get("containerStatuses") or [{}])[0]

    def waits(self, reason: str, name: str = "pod") -> bool:
        return bool((self.main(name).get("state") or {}).get("waiting", {}).get("reason") == reason)

    def condition(self, type_: str, name: str = "pod") -> Any:
        conditions = self.status(name).get("conditions") or ()
        return next((one for one in conditions if one["type"] == type_), {"status": None})

    def is_ready(self, name: str = "pod") -> bool:
        return bool(self.condition("Ready", name)["status"] == "True")

    def events(self) -> dict[str, str]:
        """The last message of each reason."""
        return {one["reason"]: one["message"] for one in self.api.items(f"{self.path}/events")}


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> Iterator[str]:
    with cluster.fleet(fleet("stages")) as loaded:
        yield loaded.nodes[0]["metadata"]["name"]


@pytest.fixture
def pods(cluster: Cluster, namespace: str, node: str) -> Pods:
    return Pods(cluster, namespace, node)


def test_an_image_that_is_pulled_keeps_the_pod_creating_until_then(pods: Pods) -> None:
    pods.create(pull="1h")
    assert eventually(lambda: pods.waits("ContainerCreating"))
    assert pods.status()["phase"] == "Pending"
    assert pods.condition("Ready")["reason"] == "ContainersNotReady"
    pods.change("pull", "1s")
    assert eventually(pods.is_ready)
    assert pods.events()["Pulling"] == 'Pulling image "registry.invalid/engine:1"'


def test_an_image_that_cannot_be_pulled_is_tried_again_until_it_can(pods: Pods) -> None:
    pods.create(pull_error="registry.invalid/engine:1: not found", back_off="500ms")
    assert eventually(lambda: pods.waits("ErrImagePull"))
    assert eventually(lambda: pods.waits("ImagePullBackOff"))
    assert "not found" in pods.main()["state"]["waiting"]["message"]
    assert eventually(lambda: {"Failed", "BackOff"} <= set(pods.events()))
    assert eventually(lambda: pods.waits("ErrImagePull"))
    pods.change("pull-error", None)
    assert eventually(pods.is_ready)


def test_a_pod_that_takes_time_to_start_runs_and_is_not_ready_until_then(pods: Pods) -> None:
    pods.create(starts_after="1h")
    assert eventually(lambda: pods.status()["phase"] == "Running")
    assert not pods.is_ready()
    assert [one["ready"] for one in pods.status()["containerStatuses"]] == [False, True]
    pods.change("starts-after", "1s")
    assert eventually(pods.is_ready)


def test_a_container_that_keeps_failing_is_restarted_ever_later(pods: Pods) -> None:
    pods.create(dies="exit", exit_code="3", message="CUDA error: device lost", back_off="1s")
    seen: list[Any] = []

    def waits_again() -> bool:
        seen[:] = [pods.status()]
        main = (seen[0].get("containerStatuses") or [{}])[0]
        return "waiting" in main.get("state", {}) and main["restartCount"] >= 2

    assert eventually(waits_again)
    (status,) = seen  # at one moment, as the next one may be another's
    main, beside = status["containerStatuses"]
    last = main["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (3, "Error", "CUDA error: device lost")
    assert main["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    pause = 2 ** (main["restartCount"] - 1)
    assert main["state"]["waiting"]["message"].startswith(
        f"back-off {pause}s restarting failed container=main pod="
    )
    assert status["phase"] == "Running"
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "False"
    assert beside["ready"]
    assert "Back-off restarting failed container main" in pods.events()["BackOff"]


def test_a_container_that_takes_too_much_memory_is_killed_and_says_so_after_its_restart(pods: Pods) -> None:
    pods.create(dies="oom", times="1")
    assert eventually(lambda: pods.main().get("restartCount") == 1 and pods.is_ready())
    last = pods.main()["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "OOMKilled")


@pytest.mark.parametrize("probe", ["liveness", "startup"])
def test_a_container_that_fails_a_probe_is_killed_and_restarted(pods: Pods, probe: str) -> None:
    pods.create(dies=probe, times="1")
    assert eventually(lambda: pods.main().get("restartCount") == 1 and pods.is_ready())
    assert pods.main()["lastState"]["terminated"]["exitCode"] == 137
    assert pods.events()["Unhealthy"].startswith(f"{probe.capitalize()} probe failed")
    assert pods.events()["Killing"] == f"Container main failed {probe} probe, will be restarted"


def test_a_pod_whose_readiness_fails_runs_on_and_is_ready_again_when_it_passes(pods: Pods) -> None:
    pods.create()
    assert eventually(pods.is_ready)
    pods.change("unready", "true")
    assert eventually(lambda: not pods.is_ready())
    assert pods.condition("Ready")["message"] == "containers with unready status: [main]"
    assert pods.status()["phase"] == "Running"
    assert eventually(lambda: pods.events().get("Unhealthy", "").startswith("Readiness probe failed"))
    pods.change("unready", None)
    assert eventually(pods.is_ready)
    assert "reason" not in pods.condition("Ready")


def test_an_evicted_pod_has_failed_and_says_of_what(pods: Pods) -> None:
    pods.create(dies="eviction")
    assert eventually(lambda: pods.status()["phase"] == "Failed")
    status = pods.status()
    assert status["reason"] == "Evicted"
    assert status["message"].startswith("The node was low on resource: memory")
    assert pods.condition("DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert all("terminated" in one["state"] for one in status["containerStatuses"])
    assert "Evicted" in pods.events()


@pytest.mark.parametrize(
    ("code", "phase", "reason"), [("0", "Succeeded", "Completed"), ("9", "Failed", "Error")]
)
def test_a_pod_that_is_not_restarted_ends_with_its_message(
    pods: Pods, code: str, phase: str, reason: str
) -> None:
    pods.create(restart="Never", dies="exit", exit_code=code, message='{"layers": 36}')
    assert eventually(lambda: pods.status()["phase"] == phase)
    ended = pods.main()["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (int(code), reason, '{"layers": 36}')


def test_a_pod_that_stops_slowly_is_there_until_then(pods: Pods) -> None:
    pods.create(stops_after="1h")  # but its grace period ends in 30 s
    assert eventually(pods.is_ready)
    pods.api.delete(f"{pods.path}/pods/pod")
    assert pods.api.get(f"{pods.path}/pods/pod")["metadata"]["deletionTimestamp"]
    pods.change("stops-after", "1s")
    assert eventually(lambda: pods.api.items(f"{pods.path}/pods") == [])


def test_pods_take_on_the_habits_of_their_node_where_they_have_none_of_their_own(
    cluster: Cluster, namespace: str
) -> None:
    slow = fleet("slow", labels={f"{HABIT}pull": "1s-2s", f"{HABIT}dies": "oom", f"{HABIT}times": "1"})
    with cluster.fleet(slow) as loaded:
        pods = Pods(cluster, namespace, loaded.nodes[0]["metadata"]["name"])
        pods.create("theirs")
        pods.create("own", pull="1h")
        assert eventually(lambda: pods.main("theirs").get("restartCount") == 1)
        assert eventually(lambda: pods.waits("ContainerCreating", "own"))
        events = cluster.api.items(f"{pods.path}/events", fieldSelector="involvedObject.name=theirs")
        assert "Pulling" in {one["reason"] for one in events}


def test_a_pod_that_fits_nowhere_waits_and_says_why(cluster: Cluster, namespace: str, node: str) -> None:
    pods = Pods(cluster, namespace, f"no-{node}")
    pods.create()
    assert eventually(lambda: pods.condition("PodScheduled").get("reason") == "Unschedulable")
    assert "didn't match Pod's node affinity/selector" in pods.condition("PodScheduled")["message"]
    assert eventually(lambda: "FailedScheduling" in pods.events())


def test_a_spot_node_is_announced_to_go_and_goes(cluster: Cluster) -> None:
    spot = fleet("spot", labels={f"{HABIT}reclaimed-after": "1s", f"{HABIT}reclaim-notice": "3s"})
    (name,) = (one["metadata"]["name"] for one in spot.nodes)
    with cluster.fleet(spot):
        assert eventually(lambda: "karpenter.sh/disrupted" in taints(cluster, name))
        events = cluster.api.items(
            "/api/v1/namespaces/default/events", fieldSelector=f"involvedObject.name={name}"
        )
        assert "SpotInterrupted" in {one["reason"] for one in events}
        assert eventually(lambda: not is_there(cluster, name))


def test_a_node_that_is_silent_is_lost_and_its_pods_with_it_until_it_is_back() -> None:
    """In a cluster of its own, which finds that out in seconds."""
    with Cluster(node_grace_seconds=4) as impatient, impatient.fleet(fleet("lossy", nodes=2)) as loaded:
        name, other = (one["metadata"]["name"] for one in loaded.nodes)
        pods = Pods(impatient, "default", name)
        pods.create()
        assert eventually(pods.is_ready)
        impatient.simulator.lose(name)
        assert eventually(lambda: ready(impatient, name) == "Unknown")
        assert eventually(lambda: "node.kubernetes.io/unreachable" in taints(impatient, name))
        assert eventually(lambda: not pods.is_ready())
        assert pods.main()["ready"]  # nobody there who could say otherwise
        assert pods.condition("ContainersReady")["status"] == "True"
        assert pod_seen(impatient.api.get(f"{pods.path}/pods/pod")).reason == "NodeLost"
        assert ready(impatient, other) == "True"
        impatient.simulator.bring_back(name)
        assert eventually(lambda: ready(impatient, name) == "True" and taints(impatient, name) == set())
        assert eventually(pods.is_ready)


def test_a_node_is_made_when_a_pod_waits_for_one_and_goes_when_it_is_empty(
    cluster: Cluster, namespace: str
) -> None:
    growing = fleet("grown", nodes=0, maxNodes=2, taints=[{"key": "dedicated", "value": "gpu"}])
    # Longer than a scheduler leaves a pod that did not fit, or the node would go before its pod came.
    with cluster.growing(growing, after_seconds=0.5, empty_seconds=15.0) as growth:
        assert nodes_of(cluster, growing) == []
        for name, gpus, key in [("one", "4", "dedicated"), ("two", "4", "dedicated"), ("not", "1", "other")]:
            cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", gpu_pod(name, gpus, key))
        pods = Pods(cluster, namespace, "")
        assert eventually(lambda: pods.is_ready("one") and pods.is_ready("two"))
        assert sorted(growth.made) == nodes_of(cluster, growing) == ["grown-0", "grown-1"]
        assert pods.condition("PodScheduled", "not")["reason"] == "Unschedulable"
        cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods/one")
        assert eventually(lambda: len(nodes_of(cluster, growing)) == 1)
        assert pods.is_ready("two")
        # Three fit on no more than two nodes, so one waits.
        for name in ("three", "four"):
            cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", gpu_pod(name, "4", "dedicated"))
        assert eventually(lambda: sorted((pods.is_ready("three"), pods.is_ready("four"))) == [False, True])
        assert nodes_of(cluster, growing) == ["grown-0", "grown-1"]


def gpu_pod(name: str, gpus: str, tolerated: str) -> Object:
    container = {
        "name": "main",
        "image": "registry.invalid/engine:1",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    tolerations = [{"key": tolerated, "operator": "Exists"}]
    # Other fleets may be there, whose nodes would do.
    selector = {names.LABEL_POOL: "grown"}
    spec = {"containers": [container], "tolerations": tolerations, "nodeSelector": selector}
    return {"metadata": {"name": name}, "spec": spec}


def nodes_of(cluster: Cluster, fleet: Fleet) -> list[str]:
    return [
        one["metadata"]["name"] for one in cluster.api.items("/api/v1/nodes", labelSelector=fleet.selector)
    ]


def ready(cluster: Cluster, node: str) -> str:
    conditions = cluster.api.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
    return next(str(one["status"]) for one in conditions if one["type"] == "Ready")


def taints(cluster: Cluster, node: str) -> set[str]:
    return {one["key"] for one in cluster.api.get(f"/api/v1/nodes/{node}")["spec"].get("taints") or ()}


def is_there(cluster: Cluster, node: str) -> bool:
    try:
        cluster.api.get(f"/api/v1/nodes/{node}")
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True
