"""Real vLLM in pods without rights: it serves through its Service, runs short of memory in sight of Prometheus, and spans nodes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import pytest

import engines
import models
from asking import Engine
from cluster import Cluster
from cluster.api import Object
from cluster.metrics import Prometheus
from cluster.metrics.prometheus import value_of
from common import PATIENCE_SECONDS
from real import Namespace

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

START_SECONDS: Final = 600.0
"""40 s on an idle machine."""
BLOCKS: Final = 64
"""Of 128 tokens: thirteen requests of 600."""
REQUESTS: Final = 32


@pytest.fixture(scope="module")
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "engines")
    made.create_all(models.dense().config_map(), models.experts().config_map(), models.adapter().config_map())
    yield made
    made.remove()


@contextmanager
def started(space: Namespace, objects: list[Object]) -> Iterator[Engine]:
    """The engine behind the last Service, while it is used."""
    made = space.create_all(*objects)
    services = [one for one in made if one["kind"] == "Service"]
    (leader, *_) = (one["metadata"]["name"] for one in made if one["kind"] == "Pod")
    try:
        space.ready(leader, START_SECONDS)
        engine = Engine(url=f"http://{services[-1]['spec']['clusterIP']}:{engines.PORT}")
        assert engine.answers(PATIENCE_SECONDS)
        yield engine
    finally:
        space.delete_all(*made)  # the next one needs the memory


@pytest.fixture(scope="module")
def small(space: Namespace) -> Iterator[Engine]:
    """One with little memory, and with an adapter."""
    lora = ["--enable-lora", f"--lora-modules=adapter={engines.ADAPTER_PATH}"]
    objects = engines.engine(
        models.dense(), "small", f"--num-gpu-blocks-override={BLOCKS}", *lora, adapter=models.adapter()
    )
    with started(space, objects) as engine:
        yield engine


@pytest.fixture(scope="module")
def prometheus(real_cluster: Cluster, space: Namespace) -> Iterator[Prometheus]:
    with real_cluster.prometheus(namespaces=[space.name], port="http", interval_ms=1000) as running:
        yield running


def test_an_engine_streams_through_its_service(small: Engine) -> None:
    pieces = list(small.stream("dense", "bada gudu", 16))
    assert len(pieces) > 1
    assert "".join(pieces) == small.complete("dense", "bada gudu", 16)
    assert small.chat("dense", "bada?", 8)


def test_an_adapter_answers_otherwise_than_its_model(small: Engine) -> None:
    assert small.models() == ["dense", "adapter"]
    assert small.complete("adapter", "bada gudu", 32) != small.complete("dense", "bada gudu", 32)


def test_prometheus_sees_the_engine_s_memory(small: Engine, prometheus: Prometheus) -> None:
    (found,) = prometheus.wait_for("vllm:cache_config_info")
    assert (found.labels["pod"], found.labels["num_gpu_blocks"]) == ("small", str(BLOCKS))
    assert value_of(prometheus.query("vllm:kv_cache_usage_perc")) == 0.0
    assert "vllm:kv_cache_usage_perc" in small.metrics()


def test_long_requests_preempt_one_another_where_memory_is_short(
    small: Engine, prometheus: Prometheus
) -> None:
    chance = random.Random(3)
    prompts = [[chance.randrange(3, models.VOCABULARY) for _ in range(200)] for _ in range(REQUESTS)]
    with ThreadPoolExecutor(REQUESTS) as pool:
        answers = [pool.submit(small.complete, "dense", prompt, 400) for prompt in prompts]
        prometheus.wait_for("vllm:kv_cache_usage_perc > 0.9", seconds=START_SECONDS)
        prometheus.wait_for("vllm:num_requests_waiting > 0", seconds=START_SECONDS)
        for answer in answers:
            answer.result()
    (found,) = prometheus.wait_for("vllm:num_preemptions_total > 0")
    print(f"{found.value:.0f} preemptions")


def test_a_mixture_of_experts_is_served(space: Namespace) -> None:
    with started(space, engines.engine(models.experts(), "experts")) as engine:
        assert len(list(engine.stream("experts", "bada gudu", 16))) > 1


def test_two_pods_on_two_nodes_serve_one_model(space: Namespace) -> None:
    with started(space, engines.group(models.dense(), "group")) as engine:
        pods = [space.pod(f"group-{rank}") for rank in range(2)]
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
        assert len(list(engine.stream("dense", "bada gudu", 16))) > 1
