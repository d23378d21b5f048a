"""Tensor names as checkpoints write them, classed and added up."""

import pytest

from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.model import Certainty
from plimsoll.facts.tensors import weights_from_tensors
from plimsoll.facts.weights import weights_from_architecture

DENSE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
ARCH = parse_config(DENSE)


def dense_tensors(dtype="BF16", prefix="model."):
    tensors = {f"{prefix}embed_tokens.weight": (dtype, [100, 64]), "lm_head.weight": (dtype, [100, 64])}
    for i in range(2):
        layer = f"{prefix}layers.{i}"
        for name, rows, columns in (
            ("self_attn.q_proj", 64, 64), ("self_attn.k_proj", 32, 64), ("self_attn.v_proj", 32, 64),
            ("self_attn.o_proj", 64, 64), ("mlp.gate_proj", 128, 64), ("mlp.up_proj", 128, 64), ("mlp.down_proj", 64, 128),
        ):  # fmt: skip
            tensors[f"{layer}.{name}.weight"] = (dtype, [rows, columns])
        tensors[f"{layer}.input_layernorm.weight"] = (dtype, [64])
        tensors[f"{layer}.post_attention_layernorm.weight"] = (dtype, [64])
    tensors[f"{prefix}norm.weight"] = (dtype, [64])
    return tensors


@pytest.mark.parametrize("prefix", ["model.", "model.language_model.", "language_model.model."])
def test_headers_and_architecture_agree_on_a_classic_decoder(prefix):
    exact, computed = (
        weights_from_tensors(dense_tensors(prefix=prefix), ARCH),
        weights_from_architecture(ARCH),
    )
    for part in (
        "embedding",
        "lm_head",
        "attention_sharded",
        "attention_replicated",
        "ffn",
        "experts",
        "vision",
        "mtp",
    ):
        assert getattr(exact, part) == getattr(computed, part), part
    assert exact.certainty is Certainty.EXACT
    assert exact.stored is None


def test_full_precision_takes_twice_the_storage_of_what_is_loaded():
    exact = weights_from_tensors(dense_tensors("F32"), ARCH)
    half = weights_from_tensors(dense_tensors("BF16"), ARCH)
    assert exact.ffn == half.ffn
    assert exact.on_storage == 2 * half.total


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model.layers.0.mlp.experts.7.down_proj.weight", "experts"),
        ("model.layers.0.block_sparse_moe.experts.3.w1.weight", "experts"),
        ("model.layers.1.mlp.experts.gate_up_proj_blocks", "experts"),
        ("backbone.layers.1.mixer.experts.0.up_proj.weight", "experts"),
        ("model.layers.0.mlp.shared_experts.up_proj.weight", "ffn"),
        ("model.layers.0.mlp.shared_expert.up_proj.weight", "ffn"),
        ("model.layers.0.mlp.shared_expert_gate.weight", "router_and_norms"),
        ("model.layers.0.mlp.gate.weight", "router_and_norms"),
        ("model.layers.0.mlp.gate.e_score_correction_bias", "router_and_norms"),
        ("model.layers.0.mlp.router.weight", "router_and_norms"),
        ("model.layers.0.mlp.gate_proj.weight_scale_inv", "ffn"),
        ("model.layers.0.self_attn.q_norm.weight", "router_and_norms"),
        ("model.layers.0.self_attn.kv_a_proj_with_mqa.weight", "attention_replicated"),
        ("model.layers.0.self_attn.q_a_proj.weight", "attention_replicated"),
        ("model.layers.0.self_attn.indexer.wk.weight", "attention_replicated"),
        ("model.layers.0.self_attn.kv_b_proj.weight", "attention_sharded"),
        ("model.layers.0.linear_attn.in_proj_qkvz.weight", "attention_sharded"),
        ("backbone.layers.0.mixer.in_proj.weight", "attention_sharded"),
        ("backbone.layers.1.mixer.down_proj.weight", "ffn"),
        ("model.layers.0.mamba.x_proj.weight", "attention_sharded"),
        ("model.visual.blocks.31.attn.qkv.weight", "vision"),
        ("vision_tower.vision_model.encoder.layers.9.mlp.fc1.weight", "vision"),
        ("multi_modal_projector.linear_1.weight", "vision"),
        ("model.layers.2.mlp.experts.0.up_proj.weight", "mtp"),
        ("mtp.layers.0.mlp.up_proj.weight", "mtp"),
        ("transformer.wte.weight", "embedding"),
        ("model.decoder.embed_positions.weight", "embedding"),
        ("embeddings.word_embeddings.weight", "embedding"),
        ("encoder.layer.3.attention.self.query.weight", "attention_sharded"),
        ("encoder.layer.3.attention.output.dense.weight", "attention_sharded"),
        ("encoder.layer.3.intermediate.dense.weight", "ffn"),
        ("encoder.layer.3.output.dense.weight", "ffn"),
        ("something.nobody.knows", "router_and_norms"),
    ],
)
def test_a_name_says_which_part_a_tensor_belongs_to(name, part):
    weights = weights_from_tensors({name: ("U8", [10, 10])}, ARCH)
    assert getattr(weights, part) == 100


def test_a_head_that_is_tied_is_not_loaded_even_where_it_is_stored():
    tied = parse_config({**DENSE, "tie_word_embeddings": True})
    weights = weights_from_tensors(dense_tensors(), tied)
    assert weights.lm_head == 0
    assert weights.on_storage - weights.total == 100 * 64 * 2


def test_narrow_formats_are_counted_in_bits():
    assert weights_from_tensors({"a.mlp.up_proj.weight": ("F4", [3, 3])}, ARCH).ffn == 5


def test_an_unknown_dtype_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="tensor w has dtype 'Q4_K'; known are BF16"):
        weights_from_tensors({"w": ("Q4_K", [1])}, ARCH)
