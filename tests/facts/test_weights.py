"""Bytes of whole models against what their publishers and engines state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.architecture import Part
from plimsoll.facts.model import Certainty, WeightBytes
from plimsoll.facts.models import catalogue_names
from plimsoll.facts.weights import bits_per_weight, scaled_to, weights_from_architecture
from tests.facts.known_models import known

GIB = 1 << 30


def weights_of(name):
    return known(name).weights


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("meta-llama/Llama-3.1-8B", 8.030),
        ("meta-llama/Llama-3.1-70B", 70.554),
        ("meta-llama/Llama-3.1-405B-Instruct", 405.85),
        ("meta-llama/Llama-3.2-1B", 1.236),
        ("meta-llama/Llama-2-7b-hf", 6.738),
        ("Qwen/Qwen2.5-7B-Instruct", 7.616),
        ("Qwen/Qwen2.5-72B-Instruct", 72.706),
        ("Qwen/Qwen3-0.6B", 0.596),
        ("Qwen/Qwen3-14B", 14.768),
        ("Qwen/Qwen3-30B-A3B", 30.532),
        ("Qwen/Qwen3-235B-A22B", 235.09),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 480.15),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", 31.07),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 79.67),
        ("mistralai/Mistral-7B-Instruct-v0.2", 7.242),
        ("mistralai/Mixtral-8x7B-v0.1", 46.703),
        ("mistralai/Mixtral-8x22B-v0.1", 140.62),
        ("mistralai/Mistral-Small-24B-Instruct-2501", 23.572),
        ("google/gemma-2-9b", 9.242),
        ("google/gemma-3-27b-it", 27.432),
        ("microsoft/phi-4", 14.660),
        ("deepseek-ai/DeepSeek-V2-Lite", 15.706),
        ("allenai/OLMoE-1B-7B-0125-Instruct", 6.919),
        ("allenai/OLMo-2-1124-7B-Instruct", 7.299),
        ("HuggingFaceTB/SmolLM3-3B", 3.075),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 0.1345),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1.100),
        ("bigcode/starcoder2-15b", 15.958),
        ("CohereLabs/c4ai-command-a-03-2025", 111.06),
        ("ai21labs/AI21-Jamba-Mini-1.6", 51.57),
        ("ibm-granite/granite-4.0-h-small", 32.21),
        ("ibm-ai-platform/Bamba-9B-v2", 9.78),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.58),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", 8.889),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 49.12),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 401.6),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49.87),
        ("tiiuae/Falcon-H1-34B-Instruct", 33.6),
        ("LiquidAI/LFM2-1.2B", 1.170),
        ("facebook/opt-125m", 0.1252),
        ("BAAI/bge-m3", 0.568),
        ("codellama/CodeLlama-34b-Instruct-hf", 33.74),
        ("deepseek-ai/deepseek-llm-7b-chat", 6.91),
        ("01-ai/Yi-34B-Chat", 34.39),
        ("google/gemma-2b-it", 2.506),
        ("google/gemma-3-270m-it", 0.268),
        ("google/gemma-3-4b-it", 4.3),
        ("Qwen/Qwen1.5-MoE-A2.7B-Chat", 14.32),
        ("Qwen/Qwen2-57B-A14B-Instruct", 57.41),
        ("Qwen/Qwen2-VL-7B-Instruct", 8.29),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 73.4),
        ("internlm/internlm2_5-7b-chat", 7.74),
        ("zai-org/glm-4-9b-chat", 9.4),
        ("microsoft/phi-2", 2.78),
        ("microsoft/Phi-3.5-MoE-instruct", 41.87),
        ("EleutherAI/gpt-neox-20b", 20.6),
        ("tencent/Hunyuan-A13B-Instruct", 80.4),
        ("baidu/ERNIE-4.5-21B-A3B-PT", 21.9),
        ("rednote-hilab/dots.llm1.inst", 142.8),
        ("moonshotai/Moonlight-16B-A3B-Instruct", 15.96),
        ("ai21labs/AI21-Jamba-Large-1.6", 398.6),
        ("tiiuae/falcon-mamba-7b-instruct", 7.27),
        ("tiiuae/falcon-7b", 6.92),
        ("answerdotai/ModernBERT-base", 0.149),
        ("MiniMaxAI/MiniMax-Text-01", 456.0),
        ("LGAI-EXAONE/EXAONE-4.0-32B", 32.0),
        ("deepseek-ai/DeepSeek-V2-Chat", 235.7),
        ("openai-community/gpt2", 0.124),
        ("meta-llama/Llama-3.2-11B-Vision", 10.67),
    ],
)
def test_parameters_of_16_bit_models_are_what_their_cards_say(name, billions):
    assert weights_of(name).total / 2e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 67.69),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", 220.3),
        ("openai/gpt-oss-120b", 60.77),
        ("openai/gpt-oss-20b", 12.82),
    ],
)
def test_quantized_checkpoints_keep_what_they_leave_alone_at_full_width(name, gib):
    assert weights_of(name).total / GIB == pytest.approx(gib, rel=0.005)


@pytest.mark.parametrize(
    ("hint", "bits"),
    [("awq", 4 + 20 / 128), ("w4a16", 4 + 16 / 128), ("fp8-block", 8 + 32 / 128**2), ("nvfp4", 4.5)],
)
def test_scales_and_zero_points_are_part_of_a_weight(hint, bits):
    arch = known(f"meta-llama/Llama-3.1-8B-Instruct-{hint}").architecture
    assert bits_per_weight(arch.quantization, Part.FFN, arch.dtype) == pytest.approx(bits)
    assert bits_per_weight(arch.quantization, Part.EMBEDDING, arch.dtype) == 16


def test_tied_heads_and_encoders_have_no_second_table():
    assert weights_of("Qwen/Qwen3-0.6B").lm_head == 0
    assert weights_of("BAAI/bge-m3").lm_head == 0
    assert weights_of("Qwen/Qwen3-8B").lm_head == weights_of("Qwen/Qwen3-8B").embedding


def test_draft_layers_are_counted_apart():
    weights = weights_of("deepseek-ai/DeepSeek-R1")
    assert 10 < weights.mtp / GIB < 13
    assert (weights.total - weights.mtp) / GIB == pytest.approx(626.9, rel=0.005)


@pytest.mark.parametrize("name", catalogue_names())
def test_every_part_of_every_model_is_at_least_nothing(name):
    weights = weights_of(name)
    parts = (weights.embedding, weights.attention_sharded, weights.ffn + weights.experts)
    assert min(weights.lm_head, weights.attention_replicated, weights.router_and_norms, *parts) >= 0
    assert weights.total > 10_000_000


@given(st.sampled_from(catalogue_names()), st.integers(min_value=1, max_value=1 << 42))
def test_a_stated_size_is_kept_to_the_byte(name, total):
    scaled = scaled_to(weights_from_architecture(known(name).architecture), total)
    assert (scaled.total, scaled.certainty) == (total, Certainty.CALIBRATED)


def test_what_lies_on_storage_is_the_sum_unless_it_is_stated():
    plain = WeightBytes(
        embedding=1,
        lm_head=0,
        attention_sharded=1,
        attention_replicated=0,
        ffn=1,
        experts=0,
        router_and_norms=0,
    )
    assert plain.on_storage == plain.total == 3
