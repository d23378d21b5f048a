"""Every rule of the layouts, with a layout it lets through and one it turns down for its own reason."""

from dataclasses import replace
from fractions import Fraction

import pytest

from plimsoll.facts.architecture import (
    DenseFfn,
    LinearAttention,
    Mamba,
    MoeFfn,
    Quantization,
    VisionEncoder,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.gpus import gpu_named
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.layouts.rules import (
    MODEL_RULES,
    SITE_RULES,
    Question,
    Site,
    Wishes,
    first_refusal,
    refusal_on,
)
from tests.planning.architectures import architecture, attention, latent

MOE = MoeFfn(experts=64, top_k=8, intermediate=1536)
MAMBA = Mamba(heads=24, head_dim=64, groups=8, state_size=128, conv_kernel=4, state_dtype=Dtype.FLOAT32)
GDN = LinearAttention(
    key_heads=16, value_heads=32, key_dim=128, value_dim=128, conv_kernel=4, state_dtype=Dtype.FLOAT32
)
TOWER = VisionEncoder(parameters=10**9, hidden=1536, layers=24, max_item_tokens=4096, heads=(16, 12))
FP8_BLOCK = Quantization(method="fp8", weights=Dtype.FP8, activations=Dtype.FP8, block=(128, 128))
AWQ = Quantization(method="awq", weights=Dtype.INT4, group_size=128)
GPTQ_ACT = Quantization(method="gptq", weights=Dtype.INT4, group_size=128, act_order=True)
MXFP4 = Quantization(method="mxfp4", weights=Dtype.MXFP4)
NVFP4 = Quantization(method="modelopt_fp4", weights=Dtype.NVFP4, activations=Dtype.NVFP4, group_size=16)


def dense(*, heads=32, kv_heads=8, ffn=14336, quantization=None, **others):
    mixer = attention(heads=heads, kv_heads=kv_heads)
    return architecture([mixer] * 4, ffn=DenseFfn(intermediate=ffn), quantization=quantization, **others)


def moe(*, width=1536, experts=64, quantization=None):
    ffn = replace(MOE, intermediate=width, experts=experts)
    return architecture([attention(heads=32)] * 4, ffn=ffn, quantization=quantization)


def question(
    arch=None,
    *,
    largest=None,
    context_parallel=True,
    head_in_stages=True,
    tensors=(1, 2, 4, 8),
    kv_dtype=None,
    release=None,
    own_image=False,
    **wishes,
):
    return Question(
        architecture=arch or dense(),
        wishes=Wishes(**wishes),
        context_parallel=context_parallel,
        head_in_stages=head_in_stages,
        largest=largest,
        tensors=tensors,
        kv_dtype=kv_dtype,
        release=release,
        own_image=own_image,
    )


def site(gpu="H100-SXM-80GB", per_node=8, devices=32, **others):
    return Site(gpu=gpu_named(gpu), devices_per_node=per_node, devices=devices, **others)


def tp(size, **others):
    return Layout(tensor=size, **others)


MODEL_CASES = [
    ("asked", tp(4), tp(2), question(tensor=4), "topology.tensor asks for 4"),
    ("asked", tp(2, pipeline=2), tp(2), question(pipeline=2), "topology.pipeline asks for 2"),
    ("heads", tp(4), tp(3), question(), "32 attention heads do not divide by 3"),
    ("kv-heads", tp(4), tp(6), question(dense(heads=48, kv_heads=4)), "4 KV heads neither divide by 6"),
    ("draft-heads", tp(2), tp(4), replace(question(), draft=dense(heads=14, kv_heads=2)), "the draft's 14"),
    (
        "draft-heads",
        tp(4),
        tp(6),
        replace(question(dense(heads=48, kv_heads=6)), draft=dense(heads=24, kv_heads=4)),
        "the draft's 4 KV heads",
    ),
    ("draft-heads", tp(2), tp(4), replace(question(), draft_tensor=2), "1 rank or over all 4"),
    ("encoder-heads", tp(4), tp(8), question(dense(vision=TOWER)), "12 attention heads of an encoder"),
    ("state-heads", tp(8), tp(16), question(architecture([MAMBA] * 2)), "24 state-space heads"),
    ("state-heads", tp(16), tp(32), question(architecture([GDN] * 2)), "16 linear-attention key heads"),
    (
        "experts",
        tp(8, expert_parallel=True),
        tp(1, expert_parallel=True),
        question(moe()),
        "one rank holds all",
    ),
    ("experts", tp(8), tp(8, expert_parallel=True), question(), "no experts to spread"),
    (
        "experts",
        tp(8, expert_parallel=True),
        tp(8, data=16, expert_parallel=True),
        question(moe()),
        "64 experts cannot be spread over 128 ranks",
    ),
    (
        "experts",
        tp(4, expert_parallel=True),
        tp(8, expert_parallel=True),
        question(moe(experts=60), expert_balancing=True),
        "topology.expertBalancing moves experts only between ranks that have as many each",
    ),
    (
        "expert-width",
        tp(8),
        tp(8, data=64),
        question(moe(width=1280)),
        "cannot be cut over 512",
    ),
    ("dense-data", tp(2), tp(2, data=2), question(), "2 replicas do the same"),
    (
        "pipeline-support",
        tp(2),
        tp(2, pipeline=2),
        question(dense(supports_pipeline=False)),
        "cannot cut TestForCausalLM",
    ),
    ("pipeline-guesses", tp(2), tp(2, pipeline=2), question(head_in_stages=False), "an eagle head"),
    ("pipeline-layers", tp(1, pipeline=4), tp(1, pipeline=6), question(), "4 layers cannot fill 6 stages"),
    (
        "context-parallel",
        tp(8, decode_context=2),
        tp(8, decode_context=4),
        question(dense(kv_heads=4)),
        "hold 2 copies of 4 KV heads",
    ),
    (
        "context-parallel",
        tp(8),
        tp(8, decode_context=2),
        question(dense(kv_heads=4), context_parallel=False),
        "this engine version",
    ),
    ("budget", tp(4), tp(8), question(largest=4), "budget of 4"),
    ("fp8-block", tp(4), tp(8), question(moe(quantization=FP8_BLOCK)), "1536/8 = 192"),
    ("fp8-block", tp(8, expert_parallel=True), tp(8), question(moe(quantization=FP8_BLOCK)), "FP8 blocks"),
    ("quantization-group", tp(2), tp(4), question(dense(ffn=768, quantization=AWQ)), "groups of 128"),
    (
        "quantization-group",
        tp(4),
        tp(8),
        question(dense(ffn=576, quantization=NVFP4)),
        "NVFP4's groups of 16",
    ),
    ("marlin-shard", tp(1), tp(2), question(dense(ffn=320, quantization=GPTQ_ACT)), "320/2 = 160"),
]
SITE_CASES = [
    *(
        (
            "weight-format",
            tp(1),
            question(dense(quantization=form), release=release),
            site(right),
            site(wrong),
            why,
        )
        for form, release, right, wrong, why in (
            (
                FP8_BLOCK,
                None,
                "T4-16GB",
                "V100-SXM-16GB",
                "need compute capability 7.5; V100-SXM-16GB has 7.0",
            ),
            (FP8_BLOCK, Version(0, 28), "L4-24GB", "T4-16GB", "capability 8.0; T4"),
            (replace(FP8_BLOCK, method="modelopt"), None, "L4-24GB", "T4-16GB", "capability 8.0; T4"),
            (MXFP4, None, "L4-24GB", "T4-16GB", "capability 8.0; T4"),
            (NVFP4, None, "T4-16GB", "MI300X", "NVIDIA"),
        )
    ),
    *(
        (
            "engine-kernels",
            tp(1),
            question(release=release, own_image=own),
            site(right),
            wrong and site(wrong),
            why,
        )
        for release, own, right, wrong, why in (
            (None, False, "T4-16GB", "V100-SXM-16GB", "capability 7.5 on; V100-SXM-16GB has 7.0"),
            (Version(0, 20), False, "MI300X", "V100-PCIe-32GB", "version before 0.20.0"),
            (Version(0, 19), False, "V100-SXM-16GB", None, None),
            (None, True, "V100-SXM-16GB", None, None),
        )
    ),
    *(
        (
            "cache-format",
            tp(1),
            question(kv_dtype=Dtype.NVFP4, release=release),
            site(right),
            site(wrong),
            why,
        )
        for release, right, wrong, why in (
            (None, "H100-SXM-80GB", "MI300X", "an NVIDIA GPU"),
            (Version(0, 33), "H100-SXM-80GB", "V100-SXM-16GB", "capability 8.0; V100"),
            (Version(0, 29), "B200-SXM", "H100-SXM-80GB", "capability 10 before version 0.30.0; H100"),
            (Version(0, 29), "B200-SXM", "RTX-PRO-6000", "has 12.0"),
        )
    ),
    ("cache-format", tp(1), question(kv_dtype="fp8"), site("L4-24GB"), None, None),
    (
        "cache-format",
        tp(1),
        question(kv_dtype="fp8"),
        site("A100-SXM-80GB"),
        site("T4-16GB"),
        "FP8 needs compute capability 8.0",
    ),
    *(
        ("cache-format", tp(1), question(arch, kv_dtype=word), site(right), site(wrong), why)
        for arch, word, right, wrong, why in (
            (
                architecture([latent()]),
                "fp8",
                "L4-24GB",
                "A100-SXM-80GB",
                "latents in FP8 need compute capability 8.9",
            ),
            (architecture([attention(head_dim=96)]), "fp8_e5m2", "L4-24GB", "A10-24GB", "heads of 96"),
            (None, "fp8_per_token_head", "L4-24GB", "A100-SXM-80GB", "needs compute capability 8.9"),
            (None, "nvfp4_4over6", "B200-SXM", "H100-SXM-80GB", "on compute capability 10 only"),
            (None, "fp8_inc", "Gaudi3", "H100-SXM-80GB", "is for Gaudi"),
        )
    ),
    (
        "cache-format",
        tp(1),
        question(architecture([attention(head_dim=96)]), kv_dtype="fp8", release=Version(0, 28)),
        site("A100-SXM-80GB"),
        None,
        None,
    ),
    *(
        (
            "cache-format",
            tp(1),
            question(architecture([mixer] * 2), kv_dtype=Dtype.NVFP4),
            site("B200-SXM"),
            site(),
            why,
        )
        for mixer, why in (
            (
                attention(head_dim=64),
                "heads of 64 are read from a cache of NVFP4 on compute capability 10 only; H100",
            ),
            (
                latent(indexer=True),
                "latent attention reads a cache of NVFP4 on compute capability 10 only; H100",
            ),
        )
    ),
    (
        "share",
        tp(1),
        replace(question(), share=Fraction(1, 2)),
        site(sharing=2),
        site(sharing=4),
        "50% of a device whose time is shared by 4",
    ),
    ("partitioned", tp(2), question(), site(), site(partition="3g.40gb"), "3g.40gb partitions"),
    ("partitioned", tp(2), question(), site(), site(sharing=4), "shared by 4"),
    ("partitioned", tp(1), question(), site(sharing=4), None, None),
    ("pcie", tp(4), question(), site(), site("L40S-48GB"), "over PCIe; 2 is the most that pays"),
    ("pcie", tp(2), question(), site("L40S-48GB"), None, None),
    ("pcie", tp(4), question(tensor=4), site("L40S-48GB"), None, None),
    ("node", tp(8), question(), site(), site(per_node=4), "more than the 4 GPUs of a node"),
    ("node", tp(8), question(), site("GB200-NVL72", per_node=4, fabric_devices=72), None, None),
    (
        "nvlink-domain",
        tp(4),
        question(),
        site(),
        site("H100-NVL-94GB", per_node=4),
        "more than the 2 devices that one fast link domain joins",
    ),
    (
        "pool",
        tp(8, pipeline=2),
        question(tensors=()),
        site(),
        site(devices=8),
        "more than the 8 of the largest pool",
    ),
    (
        "interconnect",
        tp(2),
        question(interconnect="nvlink"),
        site(),
        site("L40S-48GB"),
        "topology.interconnect nvlink",
    ),
    (
        "interconnect",
        tp(8, pipeline=2),
        question(interconnect="rdma", tensors=()),
        site(rdma=True),
        site(),
        "do not say that they have RDMA",
    ),
    (
        "interconnect",
        tp(8, pipeline=2),
        question(interconnect="nvlink-domain", tensors=()),
        site("GB200-NVL72", per_node=4, fabric_devices=72, devices=72),
        site(),
        "16 GPUs, but 8 devices in one domain",
    ),
    (
        "pipeline-in-node",
        tp(2, pipeline=2),
        question(),
        site("L40S-48GB"),
        site(),
        "tp4 stays inside one link",
    ),
    ("pipeline-in-node", tp(8, pipeline=2), question(), site(), None, None),
    ("pipeline-in-node", tp(2, pipeline=2), question(pipeline=2), site(), None, None),
]


@pytest.mark.parametrize(
    ("rule", "kept", "turned_down", "asked", "words"),
    MODEL_CASES,
    ids=lambda value: str(value) if isinstance(value, str | Layout) else "",
)
def test_a_rule_of_the_model_keeps_one_layout_and_turns_another_down(rule, kept, turned_down, asked, words):
    found = first_refusal(kept, asked)
    assert found is None or found[0] != rule
    refused = first_refusal(turned_down, asked)
    assert refused is not None
    assert refused[0] == rule
    assert words in refused[1]


@pytest.mark.parametrize(
    ("rule", "layout", "asked", "sites", "words"),
    [(*case[:3], case[3:5], case[5]) for case in SITE_CASES],
    ids=lambda value: str(value) if isinstance(value, str | Layout) else "",
)
def test_a_rule_of_the_devices_keeps_a_layout_on_some_and_turns_it_down_on_others(
    rule, layout, asked, sites, words
):
    good, bad = sites
    assert refusal_on(layout, asked, good) is None
    if bad is not None:
        refused = refusal_on(layout, asked, bad)
        assert refused is not None
        assert refused[0] == rule
        assert words in refused[1]


def test_every_rule_has_a_case_of_both_kinds():
    shapes = {"fp8-block", "quantization-group", "marlin-shard"}
    named = {name for name, _ in MODEL_RULES} | {name for name, _ in SITE_RULES} | shapes
    rejected = {case[0] for case in MODEL_CASES} | {case[0] for case in SITE_CASES if case[4]}
    assert rejected == named


def test_an_encoder_that_the_user_asks_to_be_left_whole_goes_with_any_number_of_ranks():
    assert first_refusal(tp(8), replace(question(dense(vision=TOWER)), encoder_cut=False)) is None


def test_experts_that_stay_whole_are_not_cut_whatever_their_width():
    odd = question(moe(width=1000))
    assert first_refusal(tp(8, expert_parallel=True), odd) is None
