"""What a retune changes reaches the real engine: it goes by it, as its own metrics show."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import models
from asking import Engine
from cluster.engine import EngineProcess, EngineUnavailable
from cluster.images import VLLM_CPU_VERSION
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.control.retune.scene import applied
from plimsoll.engines.vllm import command
from plimsoll.facts.engines import engine_facts
from preempting import spec
from real import left_out
from tests.engines.sets import chosen

pytestmark = pytest.mark.real_engine

STEP: Final = 256
"""Tokens; a bound of the engine's histogram of steps."""
PROMPT, PROMPTS = 240, 8
"""Of so many tokens, two never end in one such step, however they come. The engine counts a prompt where it ends."""
STEPS: Final = re.compile(
    r'^vllm:iteration_tokens_total_bucket\{.*le="([0-9.]+|\+Inf)".*\} ([0-9.]+)$', re.MULTILINE
)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[EngineProcess]:
    planned = chosen(vendor="cpu", max_model_len=4096, max_num_seqs=32, max_num_batched_tokens=2048)
    retuned = replace(planned, settings=applied(planned.settings, "maxBatchedTokens", str(STEP)))
    asked = LLMDeploymentSpec.model_validate(spec(1, {"mode": "auto"}))
    told = command(asked, retuned, engine_facts("vllm", VLLM_CPU_VERSION))
    folder = models.dense().write(tmp_path / "dense")
    with ExitStack() as stack:
        try:
            # Without the program and the model, which lies elsewhere here.
            yield stack.enter_context(EngineProcess(folder, *told.argv[3:], environment=told.env))
        except EngineUnavailable as why:
            left_out(str(why))


def test_no_step_of_an_engine_is_longer_than_a_retune_lets_it_be(process: EngineProcess) -> None:
    said = process.processes.log("engine").read_text()
    assert re.findall(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)", said) == [str(STEP)]
    engine, chance = Engine(url=process.url), random.Random(5)
    prompts = [
        [chance.randrange(len(models.SPECIAL), models.VOCABULARY) for _ in range(PROMPT)]
        for _ in range(PROMPTS)
    ]
    with ThreadPoolExecutor(PROMPTS) as pool:
        for answer in [pool.submit(engine.complete, "tiny", prompt, 16) for prompt in prompts]:
            answer.result()
    steps = {float(bound): float(count) for bound, count in STEPS.findall(engine.metrics())}
    assert steps[STEP] - steps[STEP / 2] == PROMPTS, f"prompts shared steps: {steps}"
    assert steps[float("inf")] == steps[STEP], f"there were longer ones: {steps}"
