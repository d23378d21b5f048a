"""The ledger's arithmetic against vLLM's own, done without a GPU: one model of each kind of cache.

The whole catalogue, and what differs of it, is `benchmarks/engine_arithmetic.py`.
"""

import pytest

import engine_arithmetic as arithmetic
from plimsoll.facts.gpus import gpu_named

ALIKE = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-30B-A3B",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
)
"""Dense, experts, windows, latents, states: blocks, tokens and weight bytes."""
IN_CACHE = ("openai/gpt-oss-20b", "Qwen/Qwen3-Next-80B-A3B-Instruct")
"""Sinks, gated deltas: blocks and tokens; weights are repacked, or small ones counted otherwise."""


@pytest.mark.parametrize("version", ["0.33.0", "0.20.2"])
def test_blocks_tokens_and_weight_bytes_are_what_the_engine_counts_itself(place, version):
    cases = [
        arithmetic.Case(
            name=name,
            model=model,
            gpu=gpu_named("H100-SXM-80GB"),
            version=version,
            tensor=2,
            pipeline=1,
            kv=kv,
            block=None,
        )
        for name, model in arithmetic.distinct((*ALIKE, *IN_CACHE))
        for kv in ("auto", "fp8")
    ]
    answers = list(arithmetic.ask(cases, place, version))
    assert len(answers) == len(cases)
    verdicts = [arithmetic.judged(case, answer) for case, answer in zip(cases, answers, strict=True)]
    assert [(one.case.title, one.refused) for one in verdicts if one.refused] == []
    assert [(one.case.title, one.cache) for one in verdicts if one.cache] == []
    assert [
        (one.case.title, one.weights) for one in verdicts if one.case.name in ALIKE and not one.equal
    ] == []
