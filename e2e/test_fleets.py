"""Simulated fleets: nodes that are told apart from real ones by nothing the planner reads, and a plan that is the same both ways."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cluster import Cluster, ClusterFailed
from cluster.api import Object
from cluster.fleet import OTHERS, Fleet, fleet_of, read_fleet, ready_fleets
from common import eventually
from plimsoll import names
from plimsoll.facts.snapshot import read_snapshot

FIT: Final = (0, 2)
"""It fits, or it does not: both are answers."""
WANTED: Final = """
apiVersion: plimsoll.dev/v1alpha1
kind: LLMDeployment
metadata: {name: on-gpus, namespace: default}
spec:
  model: {source: "hf://Qwen/Qwen3-8B"}
---
apiVersion: plimsoll.dev/v1alpha1
kind: LLMDeployment
metadata: {name: on-cpus, namespace: default}
spec:
  model: {source: "hf://Qwen/Qwen3-0.6B"}
  topology: {cpu: {cores: 8, memory: 32Gi}}
"""


class Plimsoll:
    """The command line, as somebody with the cluster's kubeconfig would use it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}  # noqa: TID251 - a person's own
        self._folder = folder

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("plimsoll")
        return subprocess.run(
            [program, *args], cwd=self._folder, env=self._environ, capture_output=True, text=True, check=False
        )

    def plan(self, *args: str) -> dict[str, Any]:
        done = self.run("plan", "-f", "llm.yaml", "-o", "json", *args)
        assert done.returncode in FIT, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def plimsoll(cluster: Cluster, tmp_path: Path) -> Plimsoll:
    return Plimsoll(cluster, tmp_path)


@pytest.mark.parametrize("name", ready_fleets())
def test_a_cluster_shows_the_planner_the_fleet_that_its_file_describes(
    cluster: Cluster, plimsoll: Plimsoll, tmp_path: Path, name: str
) -> None:
    """Devices, what is free, partitions, sharing, zones and taints; then the plan, live, from a snapshot and from the file."""
    fleet = read_fleet(name)
    (tmp_path / "llm.yaml").write_text(WANTED)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(fleet.config))
    with cluster.fleet(fleet):
        live = plimsoll.plan("--context", "--config", "config.yaml")
        taken = plimsoll.run("snapshot", "--context", "--config", "config.yaml", "-o", "snapshot.json")
    assert taken.returncode == 0, taken.stderr
    seen, described = (tmp_path / "snapshot.json").read_text(), ready_fleets()[name].read_text()
    assert pools(seen) == pools(described)
    assert plimsoll.plan("--snapshot", "snapshot.json") == live
    assert chosen(live) == chosen(plimsoll.plan("--snapshot", str(ready_fleets()[name])))


def pools(text: str) -> list[tuple[object, ...]]:
    """What planning reads of a fleet, apart from keys and labels; nothing is left out of it, and nothing is odd about it."""
    inventory = read_snapshot(text).fleet().inventory()
    assert inventory.problems == ()
    assert not any(pool.unavailable or pool.notes for pool in inventory.pools)
    return sorted(
        (
            pool.gpu.name,
            pool.resource,
            pool.devices_per_node,
            pool.sharing,
            str(pool.partition),
            str(pool.card),
            str(pool.zone),
            sorted(pool.free.items()),
            sorted((taint.key, taint.value, taint.effect) for taint in pool.taints),
        )
        for pool in inventory.pools
    )


def chosen(answer: dict[str, Any]) -> list[tuple[object, ...]]:
    """Of the plan, what a person would look at first."""
    found: list[tuple[object, ...]] = []
    for plan in answer["plans"]:
        found.append((plan["name"], plan["outcome"]))
        found += [(one["hardware"]["gpu"], one["layout"], one["replicas"]) for one in plan.get("sets", ())]
    return found


def test_two_snapshots_of_one_cluster_are_the_same_bytes(cluster: Cluster, plimsoll: Plimsoll) -> None:
    with cluster.fleet(SMALL):
        first, second = (plimsoll.run("snapshot", "--context") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout


def test_pods_are_scheduled_and_run_where_devices_are_free(cluster: Cluster, namespace: str) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    with cluster.fleet(SMALL):
        cluster.api.create(deployments, workload(replicas=4, gpus=4))
        assert eventually(lambda: phases(cluster, namespace) == {"Running": 3, "Pending": 1})
        pods = cluster.api.items(f"/api/v1/namespaces/{namespace}/pods")
        (waiting,) = (pod for pod in pods if pod["status"]["phase"] == "Pending")
        assert eventually(lambda: "Insufficient nvidia.com/gpu" in unschedulable(cluster, namespace, waiting))
        cluster.api.patch(f"{deployments}/work", {"spec": {"replicas": 0}})
        assert eventually(lambda: phases(cluster, namespace) == {})


def test_a_pod_whose_image_takes_time_is_pending_until_then(cluster: Cluster, namespace: str) -> None:
    """Longer than anybody waits here, so that the test measures no time."""
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    with cluster.fleet(SMALL):
        slow = workload(replicas=1, gpus=1)
        slow["spec"]["template"]["metadata"]["annotations"] = {"e2e.plimsoll.dev/pull": "1h"}
        cluster.api.create(deployments, slow)
        assert eventually(lambda: scheduled(cluster, namespace) == ["True"])
        assert phases(cluster, namespace) == {"Pending": 1}


def test_unloading_a_fleet_leaves_no_node_and_no_pod(cluster: Cluster) -> None:
    with cluster.fleet(SMALL):
        assert len(cluster.api.items("/api/v1/nodes")) == 2
        assert len(cluster.api.items(f"/api/v1/namespaces/{OTHERS}/pods")) == 1
        with pytest.raises(ClusterFailed, match="small is loaded already"):
            cluster.simulator.load(SMALL)
    assert cluster.api.items("/api/v1/nodes") == []
    assert cluster.api.items(f"/api/v1/namespaces/{OTHERS}/pods") == []


SMALL: Final[Fleet] = fleet_of(
    "small",
    {
        "apiVersion": names.API_VERSION,
        "kind": "Fleet",
        "pools": [
            {
                "name": "h100",
                "gpuProduct": "H100-SXM-80GB",
                "gpusPerNode": 8,
                "nodes": 2,
                "freeGpus": [8, 4],
            }
        ],
    },
)


def workload(*, replicas: int, gpus: int) -> Object:
    devices = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "registry.invalid/work:1", "resources": {"limits": devices}}
    return {
        "metadata": {"name": "work"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "work"}},
            "template": {"metadata": {"labels": {"app": "work"}}, "spec": {"containers": [container]}},
        },
    }


def phases(cluster: Cluster, namespace: str) -> dict[str, int]:
    pods = cluster.api.items(f"/api/v1/namespaces/{namespace}/pods")
    return dict(Counter(pod["status"]["phase"] for pod in pods))


def scheduled(cluster: Cluster, namespace: str) -> list[str]:
    pods = cluster.api.items(f"/api/v1/namespaces/{namespace}/pods")
    conditions = (one for pod in pods for one in pod["status"].get("conditions") or ())
    return [one["status"] for one in conditions if one["type"] == "PodScheduled"]


def unschedulable(cluster: Cluster, namespace: str, pod: Object) -> str:
    found = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}")
    return " ".join(one.get("message", "") for one in found["status"].get("conditions") or ())
