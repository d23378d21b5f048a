"""The command line against a real API server: what it may read is planned on, what it may not is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import Cluster
from cluster.api import Object
from plimsoll import names

PLIMSOLL = Path(sys.executable).with_name("plimsoll")
NODES = 3
GPUS = 8


def plimsoll(kubeconfig: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}  # noqa: TID251 - the command runs as it would for a person
    return subprocess.run([PLIMSOLL, *args], capture_output=True, text=True, check=False, env=env)


def pod(name: str, node: str, gpus: int) -> Object:
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "x", "image": "registry.example/x", "resources": {"limits": limits}}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}


@pytest.fixture
def fleet(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Three nodes of eight H100, six GPUs of one taken, and a resource; the namespace of it all."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": str(GPUS)}
    amounts = {"nvidia.com/gpu": str(GPUS), "cpu": "96", "memory": "1Ti", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]
    for number in range(NODES):
        path = f"/api/v1/nodes/gpu-{number}"
        cluster.api.create("/api/v1/nodes", {"metadata": {"name": f"gpu-{number}", "labels": labels}})
        cluster.api.patch(
            f"{path}/status", {"status": {"allocatable": amounts, "capacity": amounts, "conditions": ready}}
        )
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod("other", "gpu-0", 6))
    resource = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "chat"},
        "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}},
    }
    cluster.api.create(f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURAL}", resource)
    yield namespace
    for number in range(NODES):
        cluster.api.delete(f"/api/v1/nodes/gpu-{number}")


def test_a_cluster_is_planned_on_as_it_is(cluster: Cluster, fleet: str) -> None:
    ran = plimsoll(cluster.kubeconfig, "plan", "--context", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    assert data["order"] == [f"{fleet}/chat"]
    assert [(pool["devices"], pool["free_before"]) for pool in data["pools"]] == [
        (NODES * GPUS, NODES * GPUS - 6)
    ]


@pytest.mark.usefixtures("fleet")
def test_a_snapshot_plans_as_the_cluster_does(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    ran = plimsoll(cluster.kubeconfig, "snapshot", "--context", "-o", str(file))
    assert ran.returncode == 0, ran.stderr
    assert f"{NODES} nodes" in ran.stderr
    assert "registry.example" not in file.read_text()
    live = plimsoll(cluster.kubeconfig, "plan", "--context", "-o", "json")
    assert plimsoll(cluster.kubeconfig, "plan", "--snapshot", str(file), "-o", "json").stdout == live.stdout


def test_what_kubectl_prints_of_the_nodes_is_enough(cluster: Cluster, fleet: str, tmp_path: Path) -> None:
    nodes, resource = tmp_path / "nodes.yaml", tmp_path / "llm.yaml"
    nodes.write_text(cluster.kubectl("get", "nodes", "-o", "yaml").stdout)
    resource.write_text(cluster.kubectl("get", "llm", "chat", "-n", fleet, "-o", "yaml").stdout)
    ran = plimsoll(cluster.kubeconfig, "plan", "-f", str(resource), "--nodes", str(nodes))
    assert ran.returncode == 0, ran.stderr
    assert "every allocatable GPU is taken as free" in " ".join(ran.stdout.split())


def test_an_account_that_may_not_list_nodes_is_told_so(cluster: Cluster, fleet: str) -> None:
    ran = plimsoll(cluster.kubeconfig_for(fleet, "default"), "plan", "--context")
    assert ran.returncode == 3
    assert "403 Forbidden for /api/v1/nodes; list must be allowed" in ran.stderr
