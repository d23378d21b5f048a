"""The supervisor around the real engine: what it learns from a start, what it says of one that fails, what it does for answers that run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

import models
from asking import Engine
from build import NAME, build
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.engine import ENVIRONMENT, EngineUnavailable, ensure_engine
from cluster.processes import Ports
from common import alive
from real import left_out

pytestmark = pytest.mark.real_engine

SERVE: Final = ("-m", "vllm.entrypoints.cli.main", "serve")
PATIENCE_SECONDS: Final = 300.0
GRACE_SECONDS: Final = 240
LONG_ANSWER: Final = 300
"""Tokens: seconds of an engine on CPUs."""
GIB: Final = 1 << 30


class Supervised:
    """The supervisor with the engine below it, as a container starts it."""

    def __init__(self, folder: Path) -> None:
        places = Places.of(os.environ)  # noqa: TID251 - the default of an entry point
        try:
            self._python = ensure_engine(places, Progress(sys.stderr))
        except EngineUnavailable as why:
            left_out(str(why))
        self._model = models.dense().write(folder / "dense")
        self._packed = build(folder / NAME)
        self._folder = folder
        self.message = folder / "termination-log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str, kv_gib: int = 1) -> None:
        ports = Ports()
        engine, side = ports.take(), ports.take()
        ports.release()
        self.url, self._side = f"http://127.0.0.1:{engine}", f"http://127.0.0.1:{side}"
        own = [f"--port={side}", f"--grace={GRACE_SECONDS}", f"--termination-log={self.message}"]
        told = [str(self._model), "--load-format=dummy", "--enforce-eager", "--served-model-name=dense"]
        told += ["--max-model-len=4096", "--host=127.0.0.1", f"--port={engine}", *words]
        argv: list[str | Path] = [
            sys.executable,
            "-I",
            "-S",
            self._packed,
            "serve",
            *own,
            "--",
            self._python,
            *SERVE,
            *told,
        ]
        environment = {**ENVIRONMENT, "VLLM_CPU_KVCACHE_SPACE": str(kv_gib)}
        with (self._folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": os.defpath, "HOME": str(self._folder), **environment},
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def facts(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._side}/facts", timeout=10) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    def serving(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                facts = self.facts()
            except OSError:
                facts = {}
            if facts.get("state") == "serving":
                return facts
            time.sleep(0.2)
        raise AssertionError(f"does not serve: {self.said()}")

    def failure(self) -> dict[str, Any]:
        """After the end."""
        self.process.wait(PATIENCE_SECONDS)
        told: dict[str, Any] = json.loads(self.message.read_text())
        return told

    def said(self) -> str:
        return (self._folder / "output").read_text(errors="replace")

    def close(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGTERM)  # no answer is waited for
            self._process.wait(PATIENCE_SECONDS)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    one = Supervised(tmp_path)
    yield one
    one.close()


def test_a_start_is_measured_and_an_answer_that_runs_when_all_is_to_end_is_finished(
    supervised: Supervised,
) -> None:
    supervised.start()
    facts = supervised.serving()
    measured = facts["measured"]
    assert facts["engine"] == {"name": "vllm", "version": "0.32.0"}
    assert measured["kvBytes"] == GIB
    assert measured["kvTokens"] == measured["blocks"] * measured["blockSize"] == 262_144
    assert measured["graphsBytes"] is None  # eager: there are none
    names = [phase["name"] for phase in facts["phases"]]
    assert names == sorted(names, key=("imports", "config", "engine", "weights", "warmup", "server").index)
    assert (names[0], names[-1]) == ("imports", "server")
    engine = Engine(url=supervised.url)
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(engine.complete, "dense", [5, 6, number], LONG_ANSWER) for number in range(4)]
        while 'vllm:num_requests_running{engine="0",model_name="dense"} 4.0' not in engine.metrics():
            assert not any(answer.done() for answer in answers)
        supervised.process.send_signal(signal.SIGTERM)
        assert [bool(answer.result()) for answer in answers] == [True] * 4
    assert supervised.process.wait(PATIENCE_SECONDS) == 0
    assert not supervised.message.exists()


def test_a_worker_that_is_killed_ends_the_engine_with_that_reason_and_all_of_it_is_gone(
    supervised: Supervised,
) -> None:
    supervised.start()
    supervised.serving()
    family = descendants(supervised.process.pid)
    os.kill(next(pid for pid, name in family.items() if "Worker" in name), signal.SIGKILL)
    assert supervised.failure()["word"] == "WorkerLost"
    assert supervised.process.returncode != 0
    assert [pid for pid in family if alive(pid)] == []


def test_a_flag_that_this_release_does_not_know_is_named(supervised: Supervised) -> None:
    supervised.start("--swap-space=4")
    failure = supervised.failure()
    assert failure["word"] == "BadFlag"
    assert "--swap-space" in failure["message"]
    assert supervised.process.returncode == 2


def test_a_request_that_the_cache_cannot_hold_is_told_with_the_length_that_it_could(
    supervised: Supervised,
) -> None:
    supervised.start("--num-gpu-blocks-override=8")
    failure = supervised.failure()
    assert failure["word"] == "RequestLongerThanPool"
    assert "4096 tokens" in failure["message"]
    assert "896 tokens would fit" in failure["message"]


def descendants(parent: int) -> dict[int, str]:
    """With what each calls itself."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{parent}/task").iterdir():
        for pid in map(int, (task / "children").read_text().split()):
            found[pid] = (
                Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            found |= descendants(pid)
    return found
