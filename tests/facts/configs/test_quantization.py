"""Each dialect of quantization_config: what it stores how, and what it leaves alone."""

import pytest

from plimsoll.facts.architecture import Deviation, Part
from plimsoll.facts.configs.fields import ConfigError
from plimsoll.facts.configs.quantization import quantization_named
from plimsoll.facts.dtypes import Dtype
from tests.facts.known_models import known, parsed

MOE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "shared_expert_intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
INT4 = {"type": "int", "num_bits": 4, "group_size": 32, "symmetric": True}
FLOAT8 = {"type": "float", "num_bits": 8}


def read(config, **rest):
    return parsed({**MOE, "quantization_config": config, **rest}).quantization


def kept(quantization):
    return {d.part.value: d.share for d in quantization.deviations if d.dtype is None}


@pytest.mark.parametrize(
    ("config", "weights", "left_alone"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, Dtype.FP8, {}),
        ({"quant_method": "fp8", "modules_to_not_convert": ["self_attn"]}, Dtype.FP8, {"attention": 1.0}),
        (
            {
                "quant_method": "fp8",
                "modules_to_not_convert": [f"model.layers.{i}.mlp.experts" for i in (0, 1)],
            },
            Dtype.FP8,
            {"experts": 0.5},
        ),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, Dtype.INT4, {}),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1, "dynamic": {"-:.*attn.*": {}}},
            Dtype.INT8,
            {"attention": 1.0},
        ),
        (
            {
                "quant_method": "auto-round",
                "bits": 4,
                "extra_config": {f"model.layers.{i}.self_attn": {"bits": 16} for i in range(4)},
            },
            Dtype.INT4,
            {"attention": 1.0},
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"targets": ["Linear"], "weights": INT4}},
                "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
            },
            Dtype.INT4,
            {"attention": 1.0, "shared_experts": 1.0},
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": ["*.self_attn*"]},
            Dtype.NVFP4,
            {"attention": 1.0},
        ),
        ({"quant_method": "mxfp4"}, Dtype.MXFP4, {"attention": 1.0, "shared_experts": 1.0}),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, Dtype.INT4, {}),
        ({"quant_method": "experts_int8"}, Dtype.INT8, {"attention": 1.0, "shared_experts": 1.0}),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, Dtype.MXFP4, {}),
    ],
)
def test_every_dialect_says_its_format_and_what_it_leaves_alone(config, weights, left_alone):
    found = read(config)
    assert found.weights is weights
    assert kept(found) == left_alone


def test_modules_weigh_as_much_as_they_are_large():
    found = read({"quant_method": "fp8", "modules_to_not_convert": ["o_proj"]})
    assert kept(found) == {"attention": pytest.approx(8 / (8 + 2 + 2 + 8))}


def test_groups_with_formats_of_their_own_are_kept_apart():
    found = read(
        {
            "quant_method": "compressed-tensors",
            "config_groups": {
                "group_0": {"targets": ["re:.*self_attn.*"], "weights": FLOAT8, "input_activations": FLOAT8},
                "group_1": {"targets": ["re:.*experts.*"], "weights": {**INT4, "group_size": 128}},
            },
        }
    )
    assert found.weights is Dtype.INT4
    assert Deviation(part=Part.ATTENTION, dtype=Dtype.FP8) in found.deviations


def test_an_output_head_counts_only_where_it_is_named():
    listed = {
        "model.layers.*.mlp.experts*": {"quant_algo": "NVFP4"},
        "model.layers.*.self_attn*": {"quant_algo": "FP8"},
        "lm_head": {"quant_algo": "FP8"},
    }
    found = read({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed})
    assert Deviation(part=Part.LM_HEAD, dtype=Dtype.FP8) in found.deviations
    assert not any(d.part is Part.LM_HEAD for d in read({"quant_method": "fp8"}).deviations)


def test_patterns_about_draft_layers_do_not_touch_the_decoder():
    found = read({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["mtp.layers.0*", "mtp*"]})
    assert kept(found) == {}


@pytest.mark.parametrize(
    ("config", "cache"),
    [
        ({"quant_method": "fp8"}, None),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, Dtype.FP8),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": "FP8"}, Dtype.FP8),
        ({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, Dtype.FP8),
        (
            {
                "quantization": {
                    "quant_algo": "FP8",
                    "kv_cache_quant_algo": None,
                    "exclude_modules": ["lm_head"],
                }
            },
            None,
        ),
    ],
)
def test_the_cache_takes_the_checkpoints_own_scheme_and_no_other(config, cache):
    assert read(config).kv_cache is cache


def test_experts_beside_fp8_may_have_a_format_of_their_own():
    found = read({"quant_method": "fp8"}, expert_dtype="fp4")
    assert found.weights is Dtype.MXFP4
    assert {(d.part, d.dtype) for d in found.deviations} == {
        (Part.ATTENTION, Dtype.FP8),
        (Part.SHARED_EXPERTS, Dtype.FP8),
    }


def test_what_says_it_quantizes_nothing_quantizes_nothing():
    assert read({"quant_method": "modelopt", "quant_algo": None}) is None
    assert read({"quant_method": "compressed-tensors", "config_groups": {}}) is None
    assert read({"quant_method": "fp8", "modules_to_not_convert": ["layers"]}) is None


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("FP8-dynamic", Dtype.FP8),
        ("AWQ", Dtype.INT4),
        ("w8a8", Dtype.INT8),
        ("NVFP4", Dtype.NVFP4),
        ("gptq_int4", Dtype.INT4),
    ],
)
def test_a_bare_name_means_what_it_usually_means(name, weights):
    assert parsed(MOE, quantization_hint=name).quantization.weights is weights


def test_a_hint_never_overrules_the_checkpoint():
    config = {**MOE, "quantization_config": {"quant_method": "fp8"}}
    assert parsed(config, quantization_hint="awq").quantization.weights is Dtype.FP8


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="'q5_k_m' is unknown; known are autoround, awq"):
        quantization_named("q5_k_m", ())


def test_experts_beside_an_ordinary_part_are_not_mistaken_for_it():
    found = known("nvidia/Gemma-4-26B-A4B-NVFP4").architecture.quantization
    assert (found.weights, kept(found)) == (Dtype.NVFP4, {"attention": 1.0, "shared_experts": 1.0})


def test_published_conventions_hold_for_bare_names():
    assert kept(parsed(MOE, quantization_hint="nvfp4").quantization) == {"attention": 1.0}
    variant = known("RedHatAI/Qwen3-Coder-Next-FP8-dynamic").architecture.quantization
    assert kept(variant) == {"state": 1.0}


@pytest.mark.parametrize(
    ("name", "experts_only", "skips_attention"),
    [
        ("openai/gpt-oss-120b", True, True),
        ("moonshotai/Kimi-K2.5", True, True),
        ("nvidia/Gemma-4-31B-IT-NVFP4", False, True),
        ("deepseek-ai/DeepSeek-R1", False, False),
        ("nvidia/DeepSeek-V3.2-NVFP4", False, False),
    ],
)
def test_published_checkpoints_say_whether_attention_is_quantized(name, experts_only, skips_attention):
    found = known(name).architecture.quantization
    assert (found.experts_only, found.skips_attention) == (experts_only, skips_attention)
