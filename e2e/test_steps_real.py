"""Smaller steps, as a retune asks for them, on the real engine: an answer goes on between the pieces of a long prompt."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

import models
from asking import Engine
from cluster.engine import EngineProcess, EngineUnavailable
from common import eventually
from plimsoll.control.retune.scene import applied
from plimsoll.planning.settings import EngineSettings
from real import left_out

pytestmark = pytest.mark.real_engine

CONTEXT: Final = 8192
PROMPT: Final = 7168
PLANNED: Final = EngineSettings(
    max_model_len=CONTEXT, max_num_seqs=16, max_num_batched_tokens=CONTEXT, utilization=0.9
)
RETUNED: Final = applied(PLANNED, "maxBatchedTokens", "64")
STEPS: Final = PROMPT // RETUNED.max_num_batched_tokens
ANSWER: Final = 20 * STEPS
"""Long enough to be under way all the while."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    folder = models.dense().write(tmp_path / "dense")
    words = (
        "--served-model-name=dense",
        f"--max-model-len={RETUNED.max_model_len}",
        f"--max-num-seqs={RETUNED.max_num_seqs}",
        f"--max-num-batched-tokens={RETUNED.max_num_batched_tokens}",
    )
    with ExitStack() as stack:
        try:
            process = stack.enter_context(EngineProcess(folder, *words))
        except EngineUnavailable as why:
            left_out(str(why))
        yield Engine(url=process.url)


def generated(engine: Engine) -> float:
    """Tokens of answers that it has counted."""
    lines = re.findall(r"^vllm:generation_tokens_total\{.*\} (\S+)$", engine.metrics(), flags=re.MULTILINE)
    return sum(map(float, lines))


def test_an_answer_goes_on_between_the_steps_that_a_long_prompt_is_cut_into(engine: Engine) -> None:
    chance = random.Random(5)
    prompt = [chance.randrange(3, models.VOCABULARY) for _ in range(PROMPT)]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(engine.complete, "dense", "bada gudu", ANSWER)
        assert eventually(lambda: generated(engine) > 0)
        before = generated(engine)
        engine.complete("dense", prompt, 1)
        between = generated(engine) - before
        assert not answer.done(), "it ended before the prompt was read"
        answer.result()
    print(f"{between:.0f} tokens while a prompt took {STEPS} steps or more")
    assert between >= STEPS
