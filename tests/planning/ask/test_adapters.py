"""Adapters on models whose class in the engine takes none: it would be said only once all weights are loaded."""

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import LLAMA, deployment, finding, planned

ADAPTERS = {"items": [{"name": "a", "source": "hf://example/adapter"}]}
GEMMA_3N = "google/gemma-3n-E2B-it"


@pytest.mark.parametrize(
    ("source", "adapters"),
    [
        (GEMMA_3N, ADAPTERS),
        (GEMMA_3N, {"runtimeLoading": True}),
        ("moonshotai/Kimi-VL-A3B-Instruct", ADAPTERS),
        ("tiiuae/falcon-mamba-7b-instruct", ADAPTERS),
        ("nvidia/MiniMax-M3-NVFP4", ADAPTERS),
    ],
)
def test_they_are_refused_with_the_class(source, adapters):
    made = planned(deployment(source, adapters=adapters, replicas=1))
    assert made.outcome is Outcome.INVALID
    told = finding(made, "NoAdapters")
    assert told.field == "adapters"
    assert "takes no LoRA adapters" in told.message


@pytest.mark.parametrize("source", [LLAMA, "deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3-VL-8B-Instruct"])
def test_other_models_have_them(source):
    assert planned(deployment(source, adapters=ADAPTERS, replicas=1)).sets
