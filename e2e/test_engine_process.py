"""The real engine without root: a plain process that serves a model of this repository's own, and takes all of itself along."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import models
from asking import Engine
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.engine import EngineProcess, EngineUnavailable, ensure_engine
from cluster.remains import Footprint
from common import eventually
from real import left_out

pytestmark = pytest.mark.real_engine

GRANTED = """
import ctypes
for which in (0x1021, 0x1022):  # ARCH_GET_XCOMP_SUPP and ARCH_GET_XCOMP_PERM
    said = ctypes.c_uint64()
    ctypes.CDLL(None).syscall(158, which, ctypes.byref(said))  # arch_prctl
    print(said.value)
"""


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


def test_a_process_of_the_engine_may_use_all_that_the_kernel_grants_of_the_cpu() -> None:
    """Or its first request kills it on a CPU with matrix tiles that no library asks for."""
    try:
        python = ensure_engine(Places.of(os.environ), Progress(sys.stderr))  # noqa: TID251 - this machine's own
    except EngineUnavailable as why:
        left_out(str(why))
    told = subprocess.run([python, "-c", GRANTED], capture_output=True, text=True, check=True)
    known, granted = map(int, told.stdout.split())
    assert granted == known
