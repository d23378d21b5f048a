"""From a real engine's preemptions, through a real Prometheus, to the change that the operator would make, with the sizes of that engine.

It is a dry run, as a canary would be a second engine's start: benchmarks/retune.py follows a change to its end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import models
from asking import Engine
from cluster import Cluster
from cluster.images import VLLM_CPU, VLLM_CPU_VERSION, Recipe
from cluster.metrics import Prometheus
from plimsoll import names
from preempting import PATCHES, SEQUENCES, Load, spec
from real import Namespace
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

START_SECONDS: Final = 600.0
USERS: Final = 32


@pytest.fixture
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "preempting")
    made.create_all(models.dense().config_map())
    yield made
    made.remove()


@pytest.fixture
def prometheus(space: Namespace) -> Iterator[Prometheus]:
    leaders = f"{names.LABEL_LEADER}=true"
    with space.cluster.prometheus(
        namespaces=[space.name], selector=leaders, port="http", interval_ms=1000
    ) as one:
        yield one


@pytest.fixture
def desk(
    space: Namespace, prometheus: Prometheus, supervisor_image: Recipe, tmp_path: Path
) -> Iterator[Desk]:
    config = {
        "apiVersion": names.API_VERSION,
        "kind": names.CONFIG_KIND,
        "engines": {"versions": [{"version": VLLM_CPU_VERSION, "cpuImage": VLLM_CPU.reference}]},
        "runtime": {"enabled": True},
        "registry": {"runtimeImage": supervisor_image.reference},
        "network": {"offline": True},
        "trust": {"podPatches": {"allow": PATCHES}},
        "prometheusUrl": prometheus.url,
        "control": {"intervalSeconds": 1},
        "restarts": {"canarySeconds": 4},
    }
    file = tmp_path / "admin.json"
    file.write_text(json.dumps(config))
    args = ("--standalone", f"--lease-namespace={space.name}", f"--config={file}", "--log-level=debug")
    with Operator(space.cluster, tmp_path, args=args):
        yield Desk(space.cluster, space.name)


def test_preemptions_of_a_real_engine_ask_for_as_many_requests_as_its_pool_holds(
    desk: Desk, prometheus: Prometheus
) -> None:
    desk.apply(**spec(1, {"mode": "dryRun", "allow": ["maxSequences"]}))
    until(desk, lambda: desk.condition("Ready") == ("True", "Serving"))
    (served,) = desk.deployments()
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/chat")
    url = f"http://{service['spec']['clusterIP']}"
    assert Engine(url=url).answers(START_SECONDS)
    with Load(url, USERS) as load:
        until(desk, lambda: load.problem or bool(suggested(desk)))
        assert load.problem is None
        preempted = prometheus.query("sum(vllm:num_preemptions_total)")[0].value
    (change,) = suggested(desk)
    assert preempted > 0
    assert (change["setting"], change["before"]) == ("maxSequences", str(SEQUENCES))
    # By the lengths that are asked for the pool holds nine; those that were seen so far are a sample.
    assert 8 <= int(change["after"]) <= 12, change
    assert set(desk.deployments()) == {served}, "nothing is done in a dry run"


def suggested(desk: Desk) -> list[dict[str, Any]]:
    return list(desk.get()["status"].get("tuningHistory") or ())


def until(desk: Desk, holds: Any) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(json.dumps(desk.get().get("status"), indent=1))
        time.sleep(0.5)
