"""The profile run's peak against what logs printed, and how it moves with flags and versions."""

import pytest

from plimsoll.facts.architecture import Quantization, VisionEncoder
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.model import Certainty
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory import profile_run
from tests.planning import architectures as known
from tests.planning.situations import GIB, situation

SERVER = {"max_num_seqs": 1024, "max_num_batched_tokens": 8192}


def peak(arch=None, **others):
    return profile_run.activation(situation(arch, **{**SERVER, **others})).bytes / GIB


@pytest.mark.parametrize(
    ("arch", "version", "layout", "gib", "within"),
    [
        (known.llama_8b(), "0.11.0", Layout(), 4.76, 0.05),
        (known.llama_70b(), "0.11.0", Layout(tensor=2), 4.84, 0.05),
        (
            known.architecture([known.attention()] * 28, hidden=1024, vocab=151_936),
            "0.11.0",
            Layout(),
            5.56,
            0.05,
        ),
    ],
)
def test_the_vocabulary_makes_the_peak_where_many_sequences_are_sampled(arch, version, layout, gib, within):
    assert peak(arch, version=version, layout=layout) == pytest.approx(gib, abs=within)


def test_few_sequences_leave_the_peak_to_the_forward_pass():
    few, fewer = peak(max_num_seqs=8), peak(max_num_seqs=4)
    assert few == fewer
    assert peak(max_num_seqs=8, max_num_batched_tokens=16_384) == pytest.approx(2 * few)


def test_sampling_without_a_sort_halved_the_peak():
    assert peak(version="0.18.0") < 0.6 * peak(version="0.16.0")


def test_the_peak_does_not_shrink_with_ranks_where_the_sampler_makes_it():
    one, eight = peak(known.llama_70b()), peak(known.llama_70b(), layout=Layout(tensor=8))
    assert one == pytest.approx(eight)


def test_only_the_last_stage_samples():
    now = situation(layout=Layout(pipeline=2), **SERVER)
    assert profile_run.activation(now, last_stage=False).bytes < profile_run.activation(now).bytes


@pytest.mark.parametrize(("version", "kept"), [("0.13.0", False), ("0.14.0", True), ("0.20.0", True)])
def test_experts_keep_their_workspace_from_a_version_on(version, kept):
    """8,192 tokens x 8 experts x 2,048 channels in two buffers of 16 bits: 0.5 GiB, the step seen at 0.14."""
    dense = known.architecture([known.attention(kv_heads=4)] * 48, hidden=2048, vocab=151_936)
    more = peak(known.qwen3_30b(), version=version) - peak(dense, version=version)
    assert more == pytest.approx(0.5 if kept else 0.0, abs=0.01)


def test_kernels_that_fuse_all_experts_need_no_workspace():
    plain = situation(known.qwen3_30b(), **SERVER)
    quantization = Quantization(method="modelopt", weights=Dtype.FP8)
    arch = known.architecture(
        [known.attention(kv_heads=4)] * 48,
        ffn=known.qwen3_30b().layers[0].ffn,
        hidden=2048,
        quantization=quantization,
    )
    assert profile_run.expert_workspace(plain) > 0
    assert profile_run.expert_workspace(situation(arch, **SERVER)) == 0


def test_sparse_attention_gathers_forty_contexts():
    """At a context of 163,840 the engine's own note says 825 MiB."""
    now = situation(known.deepseek_v32(), max_model_len=163_840)
    assert profile_run.scorer_workspace(now) == 865_075_200


def test_expanding_latents_is_shared_by_ranks():
    one, eight = (
        profile_run.latent_prefill(
            situation(known.deepseek_r1(), layout=Layout(tensor=ranks), max_model_len=65_536)
        )
        for ranks in (1, 8)
    )
    assert one == 8 * eight == 65_536 * 128 * 256 * 2


def test_images_are_held_while_the_passes_run_unless_none_are_allowed():
    vision = VisionEncoder(parameters=10**8, hidden=1024, layers=24, max_item_tokens=16_384)
    arch = known.architecture([known.attention()] * 32, vision=vision)
    assert profile_run.encoder(situation(arch, multimodal_items=0)).bytes == 0
    assert profile_run.encoder(situation()).bytes == 0
    assert profile_run.encoder(situation(arch)).bytes == 16_384 * 4096 * 2


def test_data_parallel_experts_see_the_tokens_of_all_ranks():
    alone = situation(known.deepseek_r1(), layout=Layout(expert_parallel=True))
    eight = situation(known.deepseek_r1(), layout=Layout(data=8, expert_parallel=True))
    assert profile_run.gathered_tokens(alone) == 0
    assert profile_run.gathered_tokens(eight) == 2 * 8 * 8192 * 7168 * 2


def test_the_hard_to_know_has_the_wider_interval():
    plain = situation(**SERVER)
    experts = situation(known.deepseek_r1(), layout=Layout(tensor=8), **SERVER)
    other_vendor = situation(known.qwen3_30b(), gpu="MI300X", **SERVER)
    spreads = [profile_run.activation(now).spread for now in (plain, experts, other_vendor)]
    assert spreads == sorted(spreads)


def test_a_constant_that_no_start_has_shown_widens_the_peak_and_says_so():
    now = situation(version="0.33.0", **SERVER)
    assert profile_run.sampler_copies(now).rows == 0
    guessed = profile_run.activation(now)
    measured = profile_run.activation(situation(version="0.18.0", **SERVER))
    assert guessed.spread > measured.spread
    assert (guessed.certainty, measured.certainty) == (Certainty.ASSUMED, Certainty.CALIBRATED)
