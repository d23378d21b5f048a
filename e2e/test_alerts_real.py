"""The shipped rules on the real engine: every record finds its metrics there, and requests that preempt one another raise the alert."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

import models
from asking import Engine
from cluster.engine import EngineProcess, EngineUnavailable
from cluster.metrics import Prometheus, Target
from common import eventually
from hearing import shipped
from plimsoll.alerts.records import RECORDS
from real import left_out

pytestmark = pytest.mark.real_engine

LABELS: Final = {"namespace": "team", "pod": "chat-0a1b2c3d-7c9f8d6b5f-x2k4p"}
BLOCKS: Final = 64
REQUESTS: Final = 32


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineProcess]:
    folder = models.dense().write(tmp_path / "dense")
    small = ("--served-model-name=dense", "--max-model-len=4096", f"--num-gpu-blocks-override={BLOCKS}")
    with ExitStack() as stack:
        try:
            yield stack.enter_context(EngineProcess(folder, *small))
        except EngineUnavailable as why:
            left_out(str(why))


def test_requests_that_preempt_one_another_raise_the_alert(engine: EngineProcess) -> None:
    asked = Engine(url=engine.url)
    asked.complete("dense", "bada gudu", 8)
    address = engine.url.removeprefix("http://").rstrip("/")
    chance = random.Random(3)
    prompts = [[chance.randrange(3, models.VOCABULARY) for _ in range(200)] for _ in range(REQUESTS)]
    scraped = [Target(address=address, labels=LABELS)]
    with Prometheus(targets=scraped, rules={"plimsoll": shipped()}, interval_ms=1000) as prometheus:
        prometheus.wait_for("llm:running:sum")
        with ThreadPoolExecutor(REQUESTS) as pool:
            for answer in [pool.submit(asked.complete, "dense", prompt, 400) for prompt in prompts]:
                answer.result()
        (found,) = prometheus.wait_for("llm:preempted:ratio5m > 0.05")
        assert (found.labels["namespace"], found.labels["llm"]) == ("team", "chat")
        print(f"{found.value:.2f} preemptions for each request")
        raised = eventually(
            lambda: "PlimsollPreemption" in {one["labels"]["alertname"] for one in prometheus.alerts()}
        )
        assert raised
        of_engines = [record.name for record in RECORDS if "vllm:" in record.expr]
        assert len(of_engines) > 8
        assert eventually(lambda: all(prometheus.query(name) for name in of_engines)), of_engines
