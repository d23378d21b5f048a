"""Terms beside the peak: weights as loaded, contexts, graphs, adapters, drafts, and the constants behind them."""

import pytest

from plimsoll.facts.architecture import MoeFfn, Quantization
from plimsoll.facts.dtypes import Dtype
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory import overheads
from plimsoll.planning.memory.constants import fitted_constants, parse_constants
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from plimsoll.planning.settings import LoraSlots, Speculation
from tests.planning import architectures as known
from tests.planning.situations import GIB, situation


def test_every_constant_says_what_it_was_fitted_on_and_how_far_truth_strays():
    for constant in fitted_constants().named.values():
        assert constant.fitted_on
        assert constant.spread >= 0
        assert constant.rows >= 0


def test_no_constant_is_keyed_by_a_model():
    prefixes = ("context", "graphs", "sampler", "unexplained", "weights")
    assert all(name.startswith(prefixes) for name in fitted_constants().named)


def test_constants_are_read_by_name():
    made = parse_constants({"constants": {"a": {"value": 1, "spread": 2, "rows": 3, "fittedOn": "4"}}})
    assert made["a"].spread == 2
    assert made.value("a") == 1


@pytest.mark.parametrize(
    ("gpu", "version", "layout", "name"),
    [
        ("H100-SXM-80GB", "0.20.0", Layout(), "contextSingle"),
        ("H100-SXM-80GB", "0.14.0", Layout(tensor=4), "contextMulti"),
        ("H100-SXM-80GB", "0.20.0", Layout(tensor=4), "contextMultiFused"),
        ("H100-SXM-80GB", "0.29.0", Layout(tensor=8), "contextMulti"),
        ("H100-SXM-80GB", "0.20.0", Layout(pipeline=2), "contextMulti"),
        ("L40S-48GB", "0.20.0", Layout(tensor=2), "contextMultiPcie"),
        ("MI300X", "0.20.0", Layout(), "contextSingleRocm"),
        ("MI300X", "0.20.0", Layout(tensor=8), "contextMultiRocm"),
        ("A100-SXM-80GB", "0.6.0", Layout(), "contextFirst"),
        ("A100-SXM-80GB", "0.6.0", Layout(tensor=4), "contextFirstMulti"),
        ("A100-SXM-80GB", "0.7.3", Layout(), "contextSingle"),
        ("A100-SXM-80GB", "0.7.3", Layout(tensor=4), "contextMulti"),
    ],
)
def test_contexts_go_by_gpu_class_ranks_and_version(gpu, version, layout, name):
    assert overheads.context_name(situation(gpu=gpu, version=version, layout=layout)) == name


def test_a_pipeline_costs_more_than_tensor_parallel_ranks():
    tensor = overheads.context(situation(gpu="L40S-48GB", layout=Layout(tensor=2)))
    pipeline = overheads.context(situation(gpu="L40S-48GB", layout=Layout(pipeline=2)))
    assert pipeline.bytes > tensor.bytes


@pytest.mark.parametrize(
    ("arch", "gpu", "version", "counted"),
    [
        (known.llama_8b(), "H100-SXM-80GB", "0.19.0", False),
        (known.llama_8b(), "H100-SXM-80GB", "0.20.0", True),
        (known.llama_8b(), "H100-SXM-80GB", "0.25.0", False),
        (known.qwen3_30b(), "H100-SXM-80GB", "0.25.0", True),
        (known.llama_8b(), "H100-SXM-80GB", "0.29.0", True),
        (known.qwen3_30b(), "MI300X", "0.25.0", False),
        (known.qwen3_30b(), "MI300X", "0.29.0", True),
    ],
)
def test_graphs_come_out_of_the_budget_where_the_runner_estimates_them(arch, gpu, version, counted):
    assert overheads.graphs_counted(situation(arch, gpu=gpu, version=version)) is counted


@pytest.mark.parametrize(
    ("gpu", "version", "name"),
    [
        ("H100-SXM-80GB", "0.20.0", "graphsPerLayer"),
        ("H100-SXM-80GB", "0.33.0", "graphsPerLayerSecond"),
        ("MI300X", "0.33.0", "graphsPerLayerRocm"),
    ],
)
def test_graphs_go_by_vendor_and_runner(gpu, version, name):
    assert overheads.graphs_name(situation(gpu=gpu, version=version)) == name


def test_eager_mode_has_no_graphs_and_few_sequences_have_small_ones():
    usual = overheads.graphs(situation())
    assert overheads.graphs(situation(eager=True)).bytes == 0
    assert 0 < overheads.graphs(situation(max_num_seqs=8)).bytes < usual.bytes
    assert overheads.graphs(situation(max_graph_batch=64)).bytes < usual.bytes


def loaded(arch, **others):
    now = situation(arch, **others)
    ranks = rank_weight_bytes(now.model, now.layout)
    return overheads.loaded_weights(now, ranks.stages[0], ranks.experts[0]).bytes / GIB


def gpt_oss_20b():
    return known.architecture(
        [known.attention(kv_heads=8, head_dim=64)] * 24,
        ffn=MoeFfn(experts=32, top_k=4, intermediate=2880),
        hidden=2880,
        vocab=201_088,
        quantization=Quantization(method="mxfp4", weights=Dtype.MXFP4, skips_attention=True),
    )


@pytest.mark.parametrize(
    ("gpu", "layout", "channels", "inner"),
    [
        ("H100-SXM-80GB", Layout(), 3072 / 2880, 1.0),
        ("B200-SXM", Layout(), 3072 / 2880, 3072 / 2880),
        ("L40S-48GB", Layout(), 3072 / 2880, 2944 / 2880),
        ("H100-SXM-80GB", Layout(tensor=8), 3072 / 2880, 384 / 360),
        ("H100-SXM-80GB", Layout(tensor=8, expert_parallel=True), 3072 / 2880, 1.0),
    ],
)
def test_4_bit_float_experts_are_padded_to_what_kernels_take(gpu, layout, channels, inner):
    now = situation(gpt_oss_20b(), gpu=gpu, layout=layout)
    assert overheads.expert_factor(now).value == pytest.approx(channels * inner)


def test_experts_in_16_bits_take_more_on_rocm():
    """58.2 GiB of a 30B model on an H200, 79.3 on an MI300X."""
    nvidia = loaded(known.qwen3_30b(), gpu="H200-SXM-141GB")
    assert loaded(known.qwen3_30b(), gpu="MI300X") / nvidia == pytest.approx(1.36, abs=0.03)


def test_offloaded_weights_do_not_count():
    assert loaded(known.llama_8b()) - loaded(known.llama_8b(), weight_offload_bytes=4 * GIB) == pytest.approx(
        4
    )


def test_what_a_rule_filled_in_widens_the_weights():
    def spread(*assumed):
        now = situation(known.architecture([known.attention()] * 32, assumed=assumed))
        return overheads.loaded_weights(now, 10 * GIB, 0).spread

    assert spread("hidden_size") == pytest.approx(0.3 * GIB)
    assert spread() == spread("vision.max_item_tokens") == 0


def test_slots_grow_with_their_number_and_rank_and_shrink_with_tensor_parallel_ranks():
    def size(count, rank, **others):
        slots = LoraSlots(max_loras=count, max_rank=rank, max_cpu_loras=count)
        return overheads.lora(situation(lora=slots, **others)).bytes

    assert size(4, 16) == 2 * size(2, 16) == 2 * size(1, 32)
    assert size(2, 16) / 4 < size(2, 16, layout=Layout(tensor=4)) < size(2, 16)
    assert overheads.lora(situation()).bytes == 0


@pytest.mark.parametrize(
    ("speculation", "expected"),
    [
        (None, 0),
        (Speculation(method="ngram", tokens=4), 0),
        (Speculation(method="draft_model", tokens=4, draft_weight_bytes=2 * GIB), GIB),
        (Speculation(method="mtp", tokens=1), 3 * GIB),
    ],
)
def test_a_draft_brings_its_own_weights_or_the_checkpoints(speculation, expected):
    now = situation(layout=Layout(tensor=2), speculation=speculation)
    assert overheads.draft(now, 3 * GIB).bytes == expected
