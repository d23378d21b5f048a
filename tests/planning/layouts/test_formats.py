"""Formats whose rules go by more than the GPU: what is cut of a checkpoint, and which layers a cache is of."""

from dataclasses import replace

import pytest

from plimsoll.facts.architecture import Attention, MoeFfn, Quantization
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import gpu_named
from plimsoll.planning.layouts import shards
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.layouts.rules import Question, Site, Wishes, refusal_on
from tests.planning.architectures import architecture, attention, latent

FP8_BLOCK = Quantization(method="fp8", weights=Dtype.FP8, activations=Dtype.FP8, block=(128, 128))


@pytest.mark.parametrize(
    ("mixer", "words"),
    [
        (latent(), "unless a scorer picks its tokens"),
        (replace(attention(), v_head_dim=64), "of one width; these have 128 and 64"),
        (attention(head_dim=96), "no kernel reads heads of 96"),
    ],
)
def test_no_gpu_reads_a_cache_of_nvfp4_of_plain_latents_of_odd_heads_or_of_values_narrower_than_keys(
    mixer, words
):
    layers = architecture([attention(), mixer])
    asked = Question(architecture=layers, wishes=Wishes(), kv_dtype=Dtype.NVFP4)
    for gpu in ("B200-SXM", "H100-SXM-80GB", "RTX-PRO-6000"):
        there = Site(gpu=gpu_named(gpu), devices_per_node=8, devices=32)
        refused = refusal_on(Layout(), asked, there)
        assert refused is not None
        assert refused[0] == "cache-format"
        assert words in refused[1]
        assert refusal_on(Layout(), replace(asked, kv_dtype=Dtype.FP8), there) is None


def test_parts_that_a_checkpoint_leaves_alone_may_be_cut_anywhere():
    only_experts = replace(FP8_BLOCK, experts_only=True)
    narrow = architecture(
        [Attention(heads=32, kv_heads=8, head_dim=96, v_head_dim=96)] * 2,
        ffn=MoeFfn(experts=64, top_k=8, intermediate=2048),
        quantization=only_experts,
    )
    assert shards.refused(narrow, Layout(tensor=8)) is None
    assert shards.refused(replace(narrow, quantization=FP8_BLOCK), Layout(tensor=8)) is not None
