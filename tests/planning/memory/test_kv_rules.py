"""What versions, flags and devices settle about the cache."""

import pytest

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import CacheKind
from plimsoll.planning.memory.kv_rules import cache_plan, prefix_caching_by_default
from plimsoll.planning.settings import Speculation
from tests.planning import architectures as known
from tests.planning.situations import GIB, settings


def plan(arch, *, gpu="H100-SXM-80GB", version="0.33.0", layout=None, **flags):
    return cache_plan(
        arch,
        gpu=gpu_named(gpu),
        layout=layout or Layout(),
        engine=engine_facts("vllm", version),
        settings=settings(**{"prefix_caching": False, **flags}),
    )


def listed(name):
    facts = lookup(name)
    assert facts is not None
    return facts.architecture


@pytest.mark.parametrize(
    ("gpu", "version", "block"),
    [
        ("H100-SXM-80GB", "0.11.0", 64),
        ("H100-SXM-80GB", "0.18.0", 16),
        ("B200-SXM", "0.11.0", 128),
        ("B200-SXM", "0.20.0", 64),
        ("MI300X", "0.18.0", 16),
        ("L40S-48GB", "0.18.0", 16),
    ],
)
def test_latent_attention_takes_the_block_of_its_kernel(gpu, version, block):
    assert plan(known.deepseek_r1(), gpu=gpu, version=version).block_tokens == block


def test_a_block_size_that_was_set_is_taken():
    assert plan(known.llama_8b(), block_size=128).block_tokens == 128


def test_sparse_latents_in_8_bits_are_packed_records_on_hopper_and_plain_on_blackwell():
    hopper = plan(known.deepseek_v32(), gpu="H200-SXM-141GB", kv_dtype=Dtype.FP8)
    blackwell = plan(known.deepseek_v32(), gpu="B200-SXM", kv_dtype=Dtype.FP8)
    assert (hopper.bytes_per_token, blackwell.bytes_per_token) == (61 * (656 + 132), 61 * (576 + 132))


def test_latents_in_4_bits_keep_their_positions_in_8():
    packed = plan(known.deepseek_v32(), gpu="B200-SXM", kv_dtype=Dtype.NVFP4)
    assert packed.bytes_per_token == 61 * (352 + 132)


def test_old_versions_kept_every_token_of_a_window():
    groups = {
        version: len(plan(known.gemma3_27b(), version=version).groups) for version in ("0.8.5", "0.11.0")
    }
    assert groups == {"0.8.5": 1, "0.11.0": 7}


@pytest.mark.parametrize(("version", "batches"), [("0.20.0", 1), ("0.25.0", 1), ("0.26.0", 2), ("0.33.0", 2)])
def test_windows_keep_blocks_for_every_batch_in_flight(version, batches):
    found = plan(known.gemma3_27b(), version=version, max_num_batched_tokens=4096)
    assert found.rules.in_flight_tokens == 4096 * batches


@pytest.mark.parametrize(
    ("arch", "version", "expected"),
    [
        (known.llama_8b(), "0.18.0", True),
        (known.qwen35_35b(), "0.18.0", False),
        (known.qwen35_35b(), "0.27.1", False),
        (known.qwen35_35b(), "0.28.0", True),
    ],
)
def test_states_are_cached_by_default_later_than_tokens(arch, version, expected):
    assert prefix_caching_by_default(arch, engine_facts("vllm", version)) is expected


@pytest.mark.parametrize(
    ("gpu", "version", "caching", "block", "held"),
    [
        ("H100-SXM-80GB", "0.30.0", False, 1056, 1),
        ("H100-SXM-80GB", "0.30.0", True, 1056, 2),
        ("H100-SXM-80GB", "0.33.0", True, 1088, 3),
        ("A100-SXM-80GB", "0.33.0", True, 1056, 2),
    ],
)
def test_cached_states_sit_at_what_the_prefill_kernel_can_store(gpu, version, caching, block, held):
    found = plan(known.qwen35_35b(), gpu=gpu, version=version, prefix_caching=caching)
    states = {group.spec.state_blocks for group in found.groups if group.spec.kind is CacheKind.STATE}
    assert (found.block_tokens, states) == (block, {held})


@pytest.mark.parametrize(
    ("gpu", "version", "caching", "held"),
    [
        ("H100-SXM-80GB", "0.33.0", False, 1),
        ("H100-SXM-80GB", "0.30.0", True, 2),
        ("H100-SXM-80GB", "0.33.0", True, 3),
        ("A100-SXM-80GB", "0.32.0", True, 3),
    ],
)
def test_a_scan_stores_a_state_more_on_every_gpu_and_at_any_token(gpu, version, caching, held):
    found = plan(known.nemotron3_nano(), gpu=gpu, version=version, prefix_caching=caching)
    plain = plan(known.nemotron3_nano(), gpu=gpu, version=version)
    states = {group.spec.state_blocks for group in found.groups if group.spec.kind is CacheKind.STATE}
    assert (found.block_tokens, states) == (plain.block_tokens, {held})


@pytest.mark.parametrize(
    ("name", "blocks", "size", "tokens"),
    [
        ("ibm-granite/granite-4.0-h-tiny", 3280, 400, 986_046),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 500, 1312, 356_173),
    ],
)
def test_the_engines_own_arithmetic_of_a_scan_beside_attention_is_ours(name, blocks, size, tokens):
    """On 10 GiB, as vLLM 0.33 counts them at 32,768 tokens a request; the second one's config does not say what its states are in."""
    found = plan(listed(name), prefix_caching=True, max_num_batched_tokens=8192)
    held = found.blocks([10 * GIB + 12_345_678])
    assert (held, found.block_tokens, found.tokens_line(held, 32_768)) == (blocks, size, tokens)


@pytest.mark.parametrize(
    ("name", "blocks", "size", "tokens"),
    [
        ("nvidia/DeepSeek-V3.1-NVFP4", 4780, 64, 305_920),
        ("nvidia/Gemma-4-26B-A4B-NVFP4", 8201, 64, 165_780),
        ("nvidia/Gemma-4-31B-IT-NVFP4", 2050, 64, 41_440),
    ],
)
def test_caches_in_8_bits_have_blocks_of_their_own_on_hopper_by_the_engines_own_arithmetic(
    name, blocks, size, tokens
):
    """The engine chooses and counts them without a GPU, at 10 GiB and 32,768 tokens a request."""
    found = plan(listed(name), prefix_caching=True, max_num_batched_tokens=8192)
    held = found.blocks([10 * GIB + 12_345_678])
    assert (held, found.block_tokens, found.tokens_line(held, 32_768)) == (blocks, size, tokens)


def test_models_of_nothing_but_states_have_no_prefix_caching_by_default():
    engine = engine_facts("vllm", "0.33.0")
    assert not prefix_caching_by_default(listed("tiiuae/falcon-mamba-7b-instruct"), engine)
    assert prefix_caching_by_default(known.nemotron3_nano(), engine)


@pytest.mark.parametrize(
    ("speculation", "more"),
    [
        (None, 0),
        (Speculation(method="ngram", tokens=3), 0),
        (Speculation(method="draft_model", tokens=3), 0),
        (
            Speculation(method="draft_model", tokens=3, draft_layers=28, draft_kv_bytes_per_token=114_688),
            114_688,
        ),
        (Speculation(method="eagle", tokens=3), 4096),
        (Speculation(method="eagle3", tokens=3, draft_layers=1, draft_kv_bytes_per_token=8192), 8192),
        (Speculation(method="mtp", tokens=1, draft_layers=2), 8192),
    ],
)
def test_speculation_adds_what_its_layers_keep_of_a_token(speculation, more):
    assert plan(known.llama_8b(), speculation=speculation).bytes_per_token == 32 * 4096 + more


def test_a_draft_is_cut_over_the_ranks_and_follows_the_caches_dtype():
    speculation = Speculation(
        method="draft_model", tokens=3, draft_layers=28, draft_kv_bytes_per_token=114_688
    )
    found = plan(known.llama_70b(), layout=Layout(tensor=4), kv_dtype=Dtype.FP8, speculation=speculation)
    assert found.bytes_per_token == 40_960 + 114_688 / 8


def test_the_catalogue_and_the_rules_together_give_the_blocks_a_pooled_scorer_was_logged_with():
    """8 H200 of GLM-5.3-Flash: blocks of 640 tokens, 81.79 GiB, 55.15 requests of 131,072 tokens."""
    facts = lookup("zai-org/GLM-5.3-Flash")
    assert facts is not None
    found = plan(
        facts.architecture,
        gpu="H200-SXM-141GB",
        version="0.29.0",
        layout=Layout(tensor=8),
        prefix_caching=True,
        max_model_len=131_072,
    )
    assert found.block_tokens == 640
    assert float(found.concurrency(found.blocks([81.79 * GIB]), 131_072)) == pytest.approx(55.15, abs=0.01)
