"""`plimsoll snapshot` and `--context`, against a server that answers lists: what is written plans like the cluster itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.facts.snapshot import read_snapshot
from tests.cli.running import plimsoll
from tests.kube.api_server import Api, kubeconfig, serving

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "LLMDeployment",
    "metadata": {"name": "chat", "namespace": "a"},
    "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}},
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Api]:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    container = {"image": "secret/image", "env": [{"name": "KEY", "value": "do-not-print"}]}
    requests = {"resources": {"requests": {"nvidia.com/gpu": "6"}}}
    with serving(tmp_path) as server:
        server.lists["/api/v1/nodes"] = [
            {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}
        ]
        server.lists["/api/v1/pods"] = [
            {
                "metadata": {"name": "p", "namespace": "b"},
                "spec": {"nodeName": "n", "containers": [container | requests]},
            }
        ]
        server.lists["/apis/plimsoll.dev/v1alpha1/llmdeployments"] = [DEPLOYMENT]
        yield server


@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_a_snapshot_plans_as_the_cluster_does(cluster: Api, tmp_path: Path, name: str):
    file = tmp_path / name
    ran = plimsoll("snapshot", "--context", "-o", str(file))
    assert ran.code == 0
    assert "1 node, 1 pod with requests, 1 LLMDeployment" in ran.err
    live = plimsoll("plan", "--context", "-o", "json")
    assert plimsoll("plan", "--snapshot", str(file), "-o", "json").out == live.out
    assert live.code == 0
    assert json.loads(live.out)["pools"][0]["free_before"] == 2


def test_without_a_file_it_goes_to_stdout_without_images_and_environment(cluster: Api):
    ran = plimsoll("snapshot", "--context", "here")
    assert len(read_snapshot(ran.out).nodes) == 1
    assert "do-not-print" not in ran.out
    assert "secret/image" not in ran.out


def test_a_snapshot_is_the_same_bytes_each_time(cluster: Api):
    assert plimsoll("snapshot").out == plimsoll("snapshot").out


def test_learned_facts_that_cannot_be_read_are_said_to_be_absent(cluster: Api):
    cluster.lists["/api/v1/configmaps"] = [
        {"metadata": {"name": "plimsoll-learned", "namespace": "p"}, "data": {"learned.json": "{"}}
    ]
    ran = plimsoll("snapshot")
    assert ran.code == 0
    assert "plimsoll-learned cannot be read" in ran.err


def test_what_may_not_be_listed_is_a_note_or_an_end(cluster: Api):
    cluster.lists["/apis/resource.k8s.io/v1/resourceslices"] = 403
    assert "resourceslices: 403" in plimsoll("snapshot").err
    cluster.lists["/api/v1/pods"] = 403
    ran = plimsoll("plan", "--context")
    assert ran.code == 3
    assert "list must be allowed" in ran.err


def test_an_unknown_context_and_a_silent_cluster_are_errors_of_the_user(tmp_path: Path):
    with kubeconfig(tmp_path, "http://127.0.0.1:9"):
        ran = plimsoll("snapshot", "--context", "nowhere")
        assert ran.code == 3
        assert "nowhere" in ran.err


def test_a_place_that_cannot_be_written_is_named(cluster: Api, tmp_path: Path):
    ran = plimsoll("snapshot", "-o", str(tmp_path / "none" / "s.yaml"))
    assert ran.code == 3
    assert "cannot be written" in ran.err
