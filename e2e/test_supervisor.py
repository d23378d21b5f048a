"""The supervisor around the real engine: what it learns from a start, what it says of one that fails, what it does for answers that run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import models
from asking import Engine, Keeping
from build import NAME, build
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.engine import EngineUnavailable, ensure_engine
from common import alive, eventually
from failures import CASES, Case, provoked
from real import left_out
from supervised import PATIENCE_SECONDS, Supervised, Told

pytestmark = pytest.mark.real_engine

GRACE_SECONDS: Final = 240
CLIENTS, EACH = 8, 12
LONG_ANSWER: Final = 1200
"""Tokens: the first of four must not be over before the last has begun, on a machine that is late with everything."""
GIB: Final = 1 << 30


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    try:
        python = ensure_engine(Places.of(os.environ), Progress(sys.stderr))  # noqa: TID251 - an entry point
    except EngineUnavailable as why:
        left_out(str(why))
    one = Supervised(python, build(tmp_path / NAME), tmp_path)
    yield one
    one.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    answered: int
    opened: int
    for_scrapes: int


def _connections(supervised: Supervised, model: Path, told: Told) -> Connections:
    """What several clients at once, and one that scrapes, see of an engine."""
    supervised.start(model, told)
    supervised.serving()
    clients = [Keeping("127.0.0.1", supervised.port) for _ in range(CLIENTS)]
    scraper = Keeping("127.0.0.1", supervised.port)

    def answered(client: Keeping) -> int:
        return sum(client.complete("dense", [5, 6, 7], 2) for _ in range(EACH))

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = sum(pool.map(answered, clients))
    assert all(scraper.read("GET", "/metrics") for _ in range(3))
    opened = sum(client.opened for client in clients)
    for each in (*clients, scraper):
        each.close()
    return Connections(answered=answers, opened=opened, for_scrapes=scraper.opened)


def started(supervised: Supervised, folder: Path, *words: str) -> None:
    model = models.dense().write(folder / "dense")
    supervised.start(model, Told(words=words, own=(f"--grace={GRACE_SECONDS}",)))


def test_a_start_is_measured_and_an_answer_that_runs_when_all_is_to_end_is_finished(
    supervised: Supervised,
    tmp_path: Path,
) -> None:
    started(supervised, tmp_path)
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


def test_told_so_the_engine_closes_connections_after_answers_and_clients_that_keep_them_lose_none(
    supervised: Supervised,
    tmp_path: Path,
) -> None:
    """Without it the engine keeps them, so this is the supervisor's doing."""
    model = models.dense().write(tmp_path / "dense")
    kept = _connections(supervised, model, Told())
    supervised.close()
    closed = _connections(supervised, model, Told(own=("--close-connections",)))
    assert (kept.answered, closed.answered) == (CLIENTS * EACH, CLIENTS * EACH)
    assert (kept.opened, closed.opened) == (CLIENTS, CLIENTS * EACH)
    assert (kept.for_scrapes, closed.for_scrapes) == (1, 1)


def test_a_worker_that_is_killed_ends_the_engine_with_that_reason_and_all_of_it_is_gone(
    supervised: Supervised,
    tmp_path: Path,
) -> None:
    started(supervised, tmp_path)
    supervised.serving()
    family = supervised.family()
    os.kill(supervised.one("Worker"), signal.SIGKILL)
    assert supervised.failure()["word"] == "WorkerLost"
    assert supervised.process.returncode != 0
    assert eventually(lambda: not any(alive(pid) for pid in family))


def test_a_flag_that_this_release_does_not_know_is_named(supervised: Supervised, tmp_path: Path) -> None:
    started(supervised, tmp_path, "--swap-space=4")
    failure = supervised.failure()
    assert failure["word"] == "BadFlag"
    assert "--swap-space" in failure["message"]
    assert supervised.process.returncode == 2


def test_a_request_that_the_cache_cannot_hold_is_told_with_the_length_that_it_could(
    supervised: Supervised,
    tmp_path: Path,
) -> None:
    started(supervised, tmp_path, "--num-gpu-blocks-override=8")
    failure = supervised.failure()
    assert failure["word"] == "RequestLongerThanPool"
    assert "4096 tokens" in failure["message"]
    assert "896 tokens would fit" in failure["message"]


@pytest.mark.parametrize("case", [case for case in CASES if case.in_tests], ids=lambda case: case.name)
def test_a_failure_is_told_by_its_word(case: Case, supervised: Supervised, tmp_path: Path) -> None:
    if case.root and os.geteuid() != 0:
        left_out("only root can take away what an engine needs")
    assert provoked(case, supervised, tmp_path)["word"] == case.word
