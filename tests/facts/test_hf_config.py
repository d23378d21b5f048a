"""Configs as families publish them, read into layers; and what is said where one cannot be read."""

import copy
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.architecture import (
    Attention,
    DenseFfn,
    LatentAttention,
    LinearAttention,
    Mamba,
    MoeFfn,
    Span,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.hf_config import ConfigError
from plimsoll.facts.models import catalogue_config, catalogue_names
from plimsoll.facts.weights import weights_from_architecture
from tests.facts.known_models import known, parsed

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def arch_of(name: str) -> Any:
    return known(name).architecture


def mixers(arch: Any, kind: type) -> list[Any]:
    return [layer.mixer for layer in arch.layers if isinstance(layer.mixer, kind)]


def spans(arch):
    return Counter(str(mixer.span) for mixer in mixers(arch, Attention))


def test_a_classic_decoder_is_read_with_nothing_assumed():
    arch = parsed(LLAMA)
    assert arch.assumed == ()
    assert arch.layers[0].mixer == Attention(heads=8, kv_heads=2, head_dim=32, v_head_dim=32)
    assert arch.layers[0].ffn == DenseFfn(intermediate=512)
    assert len(arch.layers) == 4


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("num_hidden_layers", "num_hidden_layers is missing"),
        ("hidden_size", "hidden_size is missing"),
        ("num_attention_heads", "num_attention_heads is missing"),
        ("vocab_size", "vocab_size is missing"),
    ],
)
def test_a_config_without_its_sizes_names_the_key(key, told):
    with pytest.raises(ConfigError, match=told):
        parsed({name: value for name, value in LLAMA.items() if name != key})


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("num_hidden_layers", "many", "num_hidden_layers is 'many'; it must be a whole number"),
        ("num_hidden_layers", 10**9, "at most 1024"),
        ("hidden_size", -1, "hidden_size is -1"),
        ("num_key_value_heads", 3, "must divide"),
        ("hidden_size", 257, "state head_dim"),
        ("layer_types", ["full_attention"] * 3, "names 3 layers, num_hidden_layers says 4"),
        ("layer_types", ["telepathy"] * 4, "'telepathy'"),
        ("hybrid_override_pattern", "MX*-", "'X'"),
        ("quantization_config", {"quant_method": "origami"}, "'origami'"),
        ("quantization_config", {"quant_method": "fp8", "weight_block_size": [0, 1]}, "weight_block_size"),
        (
            "quantization_config",
            {"quant_method": "fp8", "modules_to_not_convert": ["re:(a*)*b"]},
            "too complex",
        ),
        ("kv_lora_rank", 512, "qk_nope_head_dim is missing"),
    ],
)
def test_a_value_that_cannot_be_names_itself_and_what_would_be_right(key, value, told):
    with pytest.raises(ConfigError, match=told):
        parsed({**LLAMA, key: value})


def test_an_unknown_family_is_read_by_the_classic_keys_and_says_so():
    arch = parsed({**LLAMA, "model_type": "brand_new"})
    assert arch.assumed == ("model_type",)
    assert arch.layers == parsed(LLAMA).layers


def test_what_the_config_leaves_out_is_filled_in_and_listed():
    bare = {
        key: LLAMA[key] for key in ("model_type", "num_hidden_layers", "hidden_size", "num_attention_heads")
    }
    arch = parsed({**bare, "vocab_size": 1000})
    assert set(arch.assumed) == {"intermediate_size", "dtype", "architectures", "max_position_embeddings"}
    assert arch.layers[0].mixer.kv_heads == 8
    assert arch.layers[0].ffn.intermediate == 1024


def test_full_precision_checkpoints_are_computed_in_half():
    assert parsed({**LLAMA, "torch_dtype": "float32"}).dtype is Dtype.BFLOAT16


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [("llama", False), ("gemma2", True), ("cohere2", True), ("opt", True), ("qwen3", False)],
)
def test_tying_defaults_by_family(model_type, tied):
    config = {key: value for key, value in LLAMA.items() if key != "tie_word_embeddings"}
    assert parsed({**config, "model_type": model_type}).tied_embeddings is tied


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("google/gemma-2-9b", {"full": 21, "sliding": 21}),
        ("google/gemma-3-27b-it", {"full": 10, "sliding": 52}),
        ("google/gemma-4-31B-it", {"full": 10, "sliding": 50}),
        ("openai/gpt-oss-120b", {"full": 18, "sliding": 18}),
        ("LGAI-EXAONE/EXAONE-4.0-32B", {"full": 16, "sliding": 48}),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", {"full": 12, "chunked": 36}),
        ("mistralai/Mistral-7B-Instruct-v0.1", {"sliding": 32}),
        ("mistralai/Mistral-7B-Instruct-v0.2", {"full": 32}),
        ("Qwen/Qwen2.5-7B-Instruct", {"full": 28}),
        ("XiaomiMiMo/MiMo-V2-Flash", {"full": 9, "sliding": 39}),
        ("CohereLabs/c4ai-command-r7b-12-2024", {"full": 8, "sliding": 24}),
        ("microsoft/Phi-3-mini-128k-instruct", {"sliding": 32}),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", {"full": 49}),
    ],
)
def test_every_pattern_of_near_and_far_layers_is_known(name, expected):
    assert spans(arch_of(name)) == expected


def test_gemma_4_looks_far_with_fewer_and_wider_heads():
    far = next(m for m in mixers(arch_of("google/gemma-4-31B-it"), Attention) if m.span is Span.FULL)
    near = next(m for m in mixers(arch_of("google/gemma-4-31B-it"), Attention) if m.span is Span.SLIDING)
    assert (far.kv_heads, far.head_dim, far.values_are_keys) == (4, 512, True)
    assert (near.kv_heads, near.head_dim, near.window) == (16, 256, 1024)


@pytest.mark.parametrize(
    ("name", "states", "attention"),
    [
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", 23, 6),
        ("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 48, 12),
        ("ai21labs/AI21-Jamba-Mini-1.6", 28, 4),
        ("ibm-ai-platform/Bamba-9B-v2", 29, 3),
        ("ibm-granite/granite-4.0-h-small", 36, 4),
        ("tiiuae/Falcon-H1-7B-Instruct", 44, 44),
        ("LiquidAI/LFM2-1.2B", 10, 6),
    ],
)
def test_state_space_hybrids_have_their_states_and_their_attention(name, states, attention):
    arch = arch_of(name)
    assert len(mixers(arch, Mamba)) == states
    assert len(mixers(arch, Attention)) == attention
    assert arch.is_hybrid


@pytest.mark.parametrize(
    ("name", "linear", "rest", "state"),
    [
        ("Qwen/Qwen3.5-35B-A3B", 30, 10, Dtype.FLOAT32),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 36, 12, Dtype.BFLOAT16),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 20, 7, Dtype.FLOAT32),
        ("MiniMaxAI/MiniMax-Text-01", 70, 10, Dtype.BFLOAT16),
        ("zai-org/GLM-5.3-Flash", 34, 11, Dtype.FLOAT32),
    ],
)
def test_linear_hybrids_have_matrix_states_of_the_right_precision(name, linear, rest, state):
    arch = arch_of(name)
    found = mixers(arch, LinearAttention)
    assert (len(found), len(arch.layers) - len(found)) == (linear, rest)
    assert {mixer.state_dtype for mixer in found} == {state}


def test_latent_attention_has_one_small_vector_a_token():
    arch = arch_of("deepseek-ai/DeepSeek-R1")
    assert {m.kv_lora_rank + m.qk_rope_head_dim for m in mixers(arch, LatentAttention)} == {576}
    assert all(m.indexer is None for m in mixers(arch, LatentAttention))


def test_sparse_latent_attention_has_an_indexer_where_it_does_not_share_one():
    assert all(
        m.indexer.head_dim == 128 for m in mixers(arch_of("deepseek-ai/DeepSeek-V3.2"), LatentAttention)
    )
    shared = [m for m in mixers(arch_of("zai-org/GLM-5.3"), LatentAttention) if m.indexer is None]
    assert 0 < len(shared) < 78


@pytest.mark.parametrize(
    "said",
    [
        {"index_topk_pattern": "FFFSSSFS"},
        {"indexer_types": ["full"] * 3 + ["shared"] * 3 + ["full", "shared"]},
        {"index_topk_freq": 4, "index_skip_topk_offset": 3},
    ],
)
def test_a_config_says_in_three_ways_which_layers_read_what_others_picked(said):
    sparse = {**catalogue_config("deepseek-ai/DeepSeek-V3.2"), "num_hidden_layers": 8, **said}
    layers = mixers(parsed(sparse), LatentAttention)
    assert [m.indexer is None for m in layers] == [False] * 3 + [True] * 3 + [False, True]


def test_a_window_wider_than_the_context_still_makes_sliding_layers_as_the_engine_counts_them():
    """The engine keeps one block more for such a request: of 82,000 tokens of Phi-4-mini it says 81,959."""
    layers = mixers(arch_of("microsoft/Phi-4-mini-instruct"), Attention)
    assert {(m.span, m.window) for m in layers} == {(Span.SLIDING, 262_144)}


def test_compressed_layers_carry_their_ratio():
    ratios = Counter(
        m.compress_ratio for m in mixers(arch_of("deepseek-ai/DeepSeek-V4-Flash"), LatentAttention)
    )
    assert ratios == {4: 21, 128: 20, 0: 2}


@pytest.mark.parametrize(
    ("name", "dense", "sparse", "router"),
    [
        ("deepseek-ai/DeepSeek-R1", 3, 58, (256, 8, 2048)),
        ("moonshotai/Kimi-K2-Instruct", 1, 60, (384, 8, 2048)),
        ("Qwen/Qwen3-30B-A3B", 0, 48, (128, 8, 0)),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 24, 24, (128, 1, 8192)),
        ("mistralai/Mixtral-8x7B-v0.1", 0, 32, (8, 2, 0)),
        ("google/gemma-4-26B-A4B", 0, 30, (128, 8, 2112)),
        ("ai21labs/AI21-Jamba-Mini-1.6", 16, 16, (16, 2, 0)),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 0, 40, (512, 22, 5376)),
        ("stepfun-ai/Step-3.7-Flash", 3, 42, (288, 8, 1280)),
        ("zai-org/GLM-4.5", 3, 89, (160, 8, 1536)),
        ("ibm-granite/granite-4.0-h-small", 0, 40, (72, 10, 1536)),
    ],
)
def test_every_spelling_of_experts_is_known(name, dense, sparse, router):
    ffns = [layer.ffn for layer in arch_of(name).layers]
    moe = [ffn for ffn in ffns if isinstance(ffn, MoeFfn)]
    assert (sum(isinstance(ffn, DenseFfn) for ffn in ffns), len(moe)) == (dense, sparse)
    assert {(ffn.experts, ffn.top_k, ffn.shared_intermediate) for ffn in moe} == {router}


@pytest.mark.parametrize(
    ("name", "layers"), [("deepseek-ai/DeepSeek-R1", 1), ("Qwen/Qwen3.5-27B", 1), ("Qwen/Qwen3-32B", 0)]
)
def test_draft_layers_are_counted(name, layers):
    assert arch_of(name).mtp_layers == layers


def test_layers_that_share_a_cache_own_none():
    arch = parsed({**LLAMA, "num_kv_shared_layers": 2})
    assert [layer.mixer.shares_cache for layer in arch.layers] == [False, False, True, True]


@pytest.mark.parametrize(
    "name", ["BAAI/bge-m3", "BAAI/bge-reranker-v2-m3", "sentence-transformers/all-MiniLM-L6-v2"]
)
def test_encoders_keep_no_cache(name):
    arch = arch_of(name)
    assert arch.encoder
    assert all(mixer.shares_cache for mixer in mixers(arch, Attention))


def test_embedders_made_from_decoders_are_decoders():
    assert not arch_of("Qwen/Qwen3-Embedding-0.6B").encoder


def test_the_language_model_inside_a_multimodal_one_inherits_what_only_the_outside_says():
    text = {key: value for key, value in LLAMA.items() if key not in {"torch_dtype", "tie_word_embeddings"}}
    arch = parsed(
        {
            "architectures": ["SomethingForConditionalGeneration"],
            "model_type": "llava",
            "dtype": "float16",
            "tie_word_embeddings": True,
            "text_config": text,
            "vision_config": {"hidden_size": 64, "num_hidden_layers": 2, "patch_size": 14, "image_size": 336},
        }
    )
    assert (arch.dtype, arch.tied_embeddings) == (Dtype.FLOAT16, True)
    assert arch.name == "SomethingForConditionalGeneration"
    assert arch.vision is not None
    assert arch.vision.max_item_tokens == (336 // 14) ** 2


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-2, max_value=10**31),
    st.floats(),
    st.text(max_size=8),
    st.lists(
        st.one_of(st.none(), st.integers(-1, 9), st.sampled_from(["full_attention", "M", "lm_head"])),
        max_size=4,
    ),
    st.just({}),
    st.just({"quant_method": ["fp8"]}),
    st.just([{}]),
)


def paths(config, prefix=()):
    for key, value in sorted(config.items()):
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


@given(st.data())
def test_a_damaged_config_is_read_or_refused_with_a_sentence_and_never_breaks(data):
    config: Any = copy.deepcopy(dict(catalogue_config(data.draw(st.sampled_from(catalogue_names())))))
    path = data.draw(st.sampled_from(list(paths(config))))
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = data.draw(VALUES)
    with suppress(ConfigError):
        assert weights_from_architecture(parsed(config)).total > 0


@pytest.mark.parametrize(
    "said",
    [
        {"rope_theta": 1000000.0},
        {"rope_parameters": {"rope_theta": 1000000}},
        {"rope_theta": 5, "rope_parameters": {"rope_theta": 1000000}},
    ],
)
def test_the_base_of_rotary_positions_is_read_where_newer_and_older_configs_keep_it(said):
    assert parsed(LLAMA | said).rope_theta == 1_000_000
    assert parsed(LLAMA).rope_theta is None


@pytest.mark.parametrize(
    ("said", "others"),
    [
        ({}, None),
        ({"partial_rotary_factor": 1.0, "rope_parameters": {"rope_type": "default", "rope_theta": 5}}, None),
        ({"rope_parameters": {"mrope_section": [16, 24, 24], "type": "mrope"}}, '{"mrope_section":[16,24,24]}'),
        ({"rope_scaling": {"rope_type": "longrope", "short_factor": [1.0] * 48, "mscale": 1.5}}, '{"mscale":1.5}'),
        ({"rotary_dim": 64, "head_dim": 128}, '{"partial_rotary_factor":0.5}'),
        ({"model_type": "glm4"}, '{"partial_rotary_factor":0.5}'),
        ({"model_type": "glm4", "rope_parameters": {"partial_rotary_factor": 0.25}}, '{"partial_rotary_factor":0.25}'),
    ],
)  # fmt: skip
def test_what_else_positions_need_is_kept_but_for_long_tables(said, others):
    assert parsed(LLAMA | said).rope_others == others
