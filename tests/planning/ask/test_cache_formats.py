"""Formats of the cache by the engine's words: their bytes, and those that no kernel keeps for a model, with which the engine would not start."""

import pytest

from plimsoll.facts.models import lookup
from plimsoll.planning.ask.features import parse_kv_dtype
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import kv_bytes_per_token
from plimsoll.planning.plan import Outcome
from tests.planning.asking import QWEN_32B, R1, deployment, finding, planned, pool


@pytest.mark.parametrize(
    ("word", "vector"),
    [
        ("fp8", 128),
        ("fp8_e5m2", 128),
        ("fp8_per_token_head", 132),
        ("int8_per_token_head", 132),
        ("int4_per_token_head", 68),
    ],
)
def test_a_format_that_is_scaled_by_head_holds_a_float_for_each_vector(word, vector):
    layers, heads = 64, 8
    found = kv_bytes_per_token(lookup(QWEN_32B).architecture, Layout(), parse_kv_dtype(word))
    assert found == layers * heads * 2 * vector


@pytest.mark.parametrize("word", ["int8_per_token_head", "fp8_per_token_head", "fp8_e5m2", "turboquant_k8v4"])
def test_latents_are_kept_in_no_format_that_is_scaled_by_head_nor_in_other_eight_bits(word):
    asked = deployment(R1, memory={"kvCacheDtype": word})
    plan = planned(asked, pool("H200-SXM-141GB"))
    assert plan.outcome is Outcome.INVALID
    told = finding(plan, "KvDtypeNotOfLatents")
    assert told.field == "memory.kvCacheDtype"
    assert f"{word!r}, but" in told.message
    assert "write fp8 or, where the engine reads it, nvfp4_ds_mla" in told.message


@pytest.mark.parametrize("word", ["auto", "bfloat16", "fp8", "fp8_e4m3"])
def test_latents_are_kept_in_what_their_kernels_read(word):
    plan = planned(deployment(R1, memory={"kvCacheDtype": word}), pool("H200-SXM-141GB"))
    assert plan.sets
