"""The stand-in engines where they meet real programs: a Prometheus that scrapes them, and the engine that they stand in for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import models
from asking import Engine
from cluster.engine import EngineProcess, EngineUnavailable
from cluster.metrics import Prometheus
from cluster.metrics.prometheus import value_of
from plimsoll.load.exposition import read_exposition
from real import left_out
from standin.fleet import Fleet
from standin.told import Told

OPTIONAL = re.compile(r"vllm:(estimated_.*|lora_requests_info|.*_created)$")
"""Exported where a flag or the platform says so, or not at all by an engine of several processes."""
NEWER = ("vllm:request_num_preemptions", "vllm:admission_rejections", "vllm:prompt_tokens_cached_by_source")


def test_a_prometheus_scrapes_as_many_engines_as_one_likes() -> None:
    with Fleet() as fleet:
        names = [f"pod-{place}" for place in range(20)]
        for name in names:
            fleet.add("team", name)
        fleet.load(100, input_tokens=100, output_tokens=50)
        with Prometheus(targets=[fleet.target("team", name) for name in names]) as prom:
            prom.wait_for("count(up == 1) == 20")
            prom.wait_for("sum(rate(vllm:generation_tokens_total[5s])) > 0")
            prom.wait_for(
                "histogram_quantile(0.5, sum by (le) (vllm:time_to_first_token_seconds_bucket)) > 0"
            )
            fleet.remove("team", "pod-0")
            prom.wait_for("count(up == 1) == 19")
            (pool,) = prom.query('vllm:cache_config_info{pod="pod-1"}')
            assert value_of([pool]) == 1
            assert pool.labels["num_gpu_blocks"] == str(Told().limits.blocks)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = models.dense().write(tmp_path_factory.mktemp("models") / "dense")
    with ExitStack() as stack:
        try:
            process = stack.enter_context(
                EngineProcess(folder, "--served-model-name=dense", "--max-model-len=4096")
            )
        except EngineUnavailable as why:
            left_out(str(why))
        yield Engine(url=process.url)


@pytest.mark.real_engine
def test_its_page_has_the_series_of_the_real_engine(engine: Engine) -> None:
    engine.complete("dense", [5, 6, 7], 8)
    real = _series(engine.metrics())
    with Fleet(Told(model="dense")) as fleet:
        fleet.add("team", "a")
        stand_in = _series(fleet.tell("team", "a", lambda one: one.metrics()))
    # The newest real engine that runs without a GPU may be a version behind.
    missing = real - stand_in
    beyond = {one for one in stand_in - real if not one[0].startswith(NEWER)}
    assert (missing, beyond) == (set(), set())


def _series(page: str) -> set[tuple[str, tuple[str, ...]]]:
    """Names with the names of their labels, and the values of those that come from a list; the cache's labels are the flags'."""
    found = set()
    for one in read_exposition(page):
        if one.name.startswith("vllm:") and not OPTIONAL.match(one.name):
            labels = {
                key: value
                for key, value in one.labels.items()
                if one.name != "vllm:cache_config_info" and not (key == "le" and "tokens" in one.name)
            }
            found.add((one.name, tuple(sorted(f"{key}={value}" for key, value in labels.items()))))
    return found
