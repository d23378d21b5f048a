"""The real engine without root: a plain process that serves a model of this repository's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import models
from asking import Engine
from cluster.engine import EngineProcess, EngineUnavailable
from cluster.remains import Footprint
from common import eventually

pytestmark = pytest.mark.real_engine


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    folder = models.dense().write(tmp_path_factory.mktemp("dense"))
    args = ["--served-model-name=dense", "--max-model-len=4096"]
    try:
        with EngineProcess(folder, *args) as running:
            yield running
    except EngineUnavailable as why:
        if os.environ.get("REQUIRE_REAL_NODE") == "1":  # noqa: TID251 - tests are an entry point
            pytest.fail(f"REQUIRE_REAL_NODE=1, but {why}")
        pytest.skip(str(why))


def test_it_streams_and_tells_its_metrics(process: EngineProcess) -> None:
    engine = Engine(url=process.url)
    assert len(list(engine.stream("dense", "bada gudu", 16))) == 16
    assert "vllm:cache_config_info" in engine.metrics()


def test_it_takes_requests_side_by_side(process: EngineProcess) -> None:
    engine = Engine(url=process.url)
    assert engine.chat("dense", "bada?", 8)
    assert engine.complete("dense", [5, 6, 7], 8) == engine.complete("dense", [5, 6, 7], 8)


def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    with EngineProcess(models.dense().write(tmp_path / "dense"), "--max-model-len=512") as running:
        footprint = Footprint.of_programs(running.processes)
    assert eventually(lambda: footprint.left() == [])
