"""Formats of the cache by the engine's words: their bytes, and those that no kernel keeps for a model, with which the engine would not start."""

from dataclasses import replace

import pytest

from plimsoll.planning.ask.features import parse_kv_dtype, unkept
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import kv_bytes_per_token
from plimsoll.planning.plan import Outcome
from tests.facts.known_models import known
from tests.planning.asking import QWEN_32B, R1, deployment, finding, planned, pool

FP8 = "Qwen/Qwen3-32B-FP8"
MIMO = "XiaomiMiMo/MiMo-V2-Flash"


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
    found = kv_bytes_per_token(known(QWEN_32B).architecture, Layout(), parse_kv_dtype(word))
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


@pytest.mark.parametrize(
    ("model", "word", "why"),
    [
        (QWEN_32B, "fp8_ds_mla", "only latents of which a scorer picks some"),
        (QWEN_32B, "nvfp4_ds_mla", "only latents of which a scorer picks some"),
        (FP8, "fp8_e5m2", "the checkpoint may bring scales of its own, which are for e4m3"),
        (MIMO, "int8_per_token_head", "keys and values differ in width"),
    ],
)
def test_what_no_kernel_keeps_for_a_model_is_refused_with_the_reason(model, word, why):
    plan = planned(deployment(model, memory={"kvCacheDtype": word}), pool("H200-SXM-141GB"))
    told = finding(plan, "KvDtypeNotOfModel")
    assert (plan.outcome, told.field) == (Outcome.INVALID, "memory.kvCacheDtype")
    assert why in told.message


@pytest.mark.parametrize("method", ["fp8", "fp8_per_tensor"])
def test_a_checkpoint_that_is_quantized_while_loading_brings_no_scales_for_a_cache(method):
    asked = deployment(QWEN_32B, quantization={"method": method}, memory={"kvCacheDtype": "fp8_e5m2"})
    assert planned(asked, pool("H100-SXM-80GB")).outcome is Outcome.FITS


def test_kernels_for_keys_and_values_of_two_widths_read_no_e5m2():
    plain = replace(known(MIMO).architecture, quantization=None)
    assert "differ in width" in (unkept("fp8_e5m2", plain) or "")
    assert unkept("fp8_e4m3", plain) is None


@pytest.mark.parametrize(
    ("model", "word"),
    [(QWEN_32B, "fp8_e5m2"), (QWEN_32B, "fp8_per_token_head"), (FP8, "fp8_e4m3"), (MIMO, "fp8")],
)
def test_what_some_kernel_keeps_is_planned(model, word):
    assert planned(deployment(model, memory={"kvCacheDtype": word}), pool("H200-SXM-141GB")).sets


def test_latents_are_packed_in_eight_bits_only_where_a_scorer_picks_of_them():
    refused = finding(planned(deployment(R1, memory={"kvCacheDtype": "fp8_ds_mla"})), "KvDtypeNotOfLatents")
    assert "only latents of which a scorer picks some" in refused.message
    sparse = deployment("deepseek-ai/DeepSeek-V3.2", memory={"kvCacheDtype": "fp8_ds_mla"})
    assert planned(sparse, pool("H200-SXM-141GB")).sets
