"""The real engine without root: a plain process that serves a model of this repository's own, and takes all of itself along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import models
from asking import Engine
from cluster.engine import EngineProcess, EngineUnavailable
from cluster.remains import Footprint
from common import eventually
from real import left_out

pytestmark = pytest.mark.real_engine


@pytest.fixture
def process(tmp_path: Path) -> Iterator[EngineProcess]:
    folder = models.dense().write(tmp_path / "dense")
    with ExitStack() as stack:
        try:
            started = EngineProcess(folder, "--served-model-name=dense", "--max-model-len=4096")
            yield stack.enter_context(started)
        except EngineUnavailable as why:
            left_out(str(why))


def test_it_serves_and_takes_all_of_itself_along(process: EngineProcess) -> None:
    engine = Engine(url=process.url)
    assert len(list(engine.stream("dense", "bada gudu", 16))) > 1
    assert engine.complete("dense", [5, 6, 7], 8) == engine.complete("dense", [5, 6, 7], 8)
    assert engine.chat("dense", "bada?", 8)
    assert "vllm:cache_config_info" in engine.metrics()
    footprint = Footprint.of_programs(process.processes)
    process.stop()
    assert eventually(lambda: footprint.left() == [])
