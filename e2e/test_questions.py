"""The questions of a tick, asked of a real Prometheus: what two jobs scrape of one pod is counted once, and each engine in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import pytest

from cluster.metrics import MetricsServer
from cluster.metrics import Prometheus as Running
from common import eventually
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.pod_sample import PodSample
from plimsoll.prometheus.client import Prometheus
from plimsoll.prometheus.fleet import FleetMetrics
from plimsoll.prometheus.queries import ALL_SERIES, Selector
from plimsoll.prometheus.vocabulary import vocabulary
from plimsoll.prometheus.wakes import WakeQueries

WORDS: Final = vocabulary([engine_facts("vllm", "0.33.0").metrics])
POD: Final = ("team", "chat-0a1b2c3d-7c9f8d6b5f-x2k4p")
JOBS: Final = ("pods", "service")


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer() as running:
        yield running


def sample(url: str, select: Selector = ALL_SERIES) -> PodSample | None:
    async def look() -> PodSample | None:
        client = Prometheus(url)
        try:
            reading, problem = await FleetMetrics(client, WORDS, interval_s=300, select=select).look(0.0)
            assert (problem, reading.errors) == (None, {})
            return reading.samples.get(POD)
        finally:
            client.close()

    return asyncio.run(look())


def is_seen(url: str, select: Selector = ALL_SERIES) -> bool:
    return sample(url, select) is not None


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_pod_that_several_jobs_scrape_is_one_and_its_engines_are_two(
    server: MetricsServer, jobs: int
) -> None:
    page = server.page()
    for engine in ("0", "1"):
        page.set("vllm:num_requests_running", 3, engine=engine)
        page.set("vllm:num_requests_waiting", 1, engine=engine)
        page.set("vllm:cache_config_info", 1, engine=engine, num_gpu_blocks="500", block_size="16")
        page.set("vllm:request_success_total", 40, engine=engine, finished_reason="stop")
        page.set("vllm:request_success_total", 2, engine=engine, finished_reason="length")
        page.set("vllm:request_success_total", 1, engine=engine, finished_reason="error")
    once = page.pod(*POD, uid="u")
    targets = [replace(once, labels={**once.labels, "job": job}) for job in JOBS[:jobs]]
    with Running(targets=targets) as prometheus:
        prometheus.wait_for(f"count(vllm:num_requests_running) == {2 * jobs}")
        assert eventually(partial(is_seen, prometheus.url))
        found = sample(prometheus.url)
        assert found is not None
        assert (found.running, found.waiting, found.kv_tokens) == (6.0, 2.0, 8_000)
        assert (found.finished, found.errors) == (84.0, 2.0)


def test_of_two_clusters_with_the_same_pod_each_is_seen_alone(server: MetricsServer) -> None:
    loads = {"eu-1": 3, 'Köln "\\d"': 40}
    targets = []
    for number, (cluster, load) in enumerate(loads.items()):
        page = server.page(f"metrics-{number}")
        page.set("vllm:num_requests_running", load, engine="0")
        page.set("vllm:request_success_total", 2 * load, engine="0", finished_reason="stop")
        page.set("vllm:cache_config_info", 1, engine="0", num_gpu_blocks=str(10 * load), block_size="16")
        once = page.pod(*POD, uid="u")
        targets.append(replace(once, labels={**once.labels, "cluster": cluster}))
    with Running(targets=targets) as prometheus:
        prometheus.wait_for("count(vllm:num_requests_running) == 2")
        for cluster, load in loads.items():
            select = Selector({"cluster": cluster})
            assert eventually(partial(is_seen, prometheus.url, select))
            found = sample(prometheus.url, select)
            assert found is not None
            assert (found.running, found.finished, found.kv_tokens) == (load, 2 * load, 160 * load)
        assert sample(prometheus.url, Selector({"cluster": "us-1"})) is None


def test_hundreds_of_wake_queries_are_one_question_and_a_wrong_one_among_them_is_found(
    server: MetricsServer,
) -> None:
    page = server.page()
    queries = {
        f"team/chat-{n}": f'sum(gateway_queue_of_requests_that_wait{{llm="chat-{n}"}})' for n in range(300)
    }
    for n in range(300):
        page.set("gateway_queue_of_requests_that_wait", n, llm=f"chat-{n}")
    with Running(targets=[page.target()]) as prometheus:
        prometheus.wait_for("count(gateway_queue_of_requests_that_wait) == 300")

        async def looks(times: int) -> list[tuple[int, int]]:
            client = Prometheus(prometheus.url)
            wakes, found = WakeQueries(client), []
            try:
                for _ in range(times):
                    woken = await wakes.look(asked)
                    found.append((len(woken.waiting), len(woken.refused)))
            finally:
                client.close()
            return found

        asked = dict(queries)
        assert asyncio.run(looks(2)) == [(300, 0)] * 2
        asked["team/chat-7"] = "sum(gateway_queue_of_requests_that_wait) by"
        assert asyncio.run(looks(12))[-1] == (299, 1)
