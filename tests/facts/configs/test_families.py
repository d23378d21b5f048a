"""Families of every shape, as their publishers describe them: parameters, bytes of cache and kinds of layers."""

import copy
from contextlib import suppress
from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.architecture import Attention, LatentAttention, LinearAttention, Mamba, MoeFfn, Span
from plimsoll.facts.hf_config import ConfigError
from plimsoll.facts.models import catalogue_config
from plimsoll.facts.weights import weights_from_architecture
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import kv_bytes_per_token
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from tests.facts.known_models import as_facts, parsed
from tests.facts.test_hf_config import VALUES, paths

FAMILIES: dict[str, Any] = yaml.safe_load(
    resources.files("tests.facts.configs").joinpath("families.yaml").read_text("utf-8")
)


def config_of(name: str) -> dict[str, Any]:
    stated = FAMILIES[name].get("config") or catalogue_config(name)
    return copy.deepcopy(dict(stated))


def arch_of(name: str, **changes: object) -> Any:
    return parsed(config_of(name) | changes)


def mixers(name: str, kind: type) -> list[Any]:
    return [layer.mixer for layer in arch_of(name).layers if isinstance(layer.mixer, kind)]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_the_parameters_its_publisher_counts(name):
    arch = arch_of(name)
    weights = weights_from_architecture(arch)
    counted = (weights.total - weights.mtp) / arch.dtype.bytes / 1e9
    assert counted == pytest.approx(FAMILIES[name]["billions"], rel=FAMILIES[name].get("within", 0.01))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_keeps_the_right_bytes_of_cache(name):
    assert kv_bytes_per_token(arch_of(name), Layout()) == FAMILIES[name]["kv"]


@pytest.mark.parametrize("name", FAMILIES)
def test_ranks_hold_together_what_the_model_weighs_and_what_each_holds_whole(name):
    facts = as_facts(arch_of(name))
    tables = facts.architecture.position_table_bytes
    whole = rank_weight_bytes(facts, Layout()).largest - tables
    assert whole == pytest.approx(facts.weights.total - facts.weights.mtp, rel=0.01)
    assert whole / 2 <= rank_weight_bytes(facts, Layout(tensor=2)).largest - tables < whole


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("pfnet/plamo-2-8b", {Mamba: 16, Attention: 16}),
        ("ring-2.5-1t", {LinearAttention: 70, LatentAttention: 10}),
        ("Zyphra/Zamba2-7B-Instruct", {Mamba: 81, Attention: 13}),
        ("meituan-longcat/LongCat-Flash-Chat", {LatentAttention: 56}),
        ("ByteDance/Ouro-1.4B", {Attention: 4 * 24}),
        ("MiniMaxAI/MiniMax-M1-80k", {LinearAttention: 70, Attention: 10}),
        ("deepseek-ai/DeepSeek-OCR", {Attention: 12}),
    ],
)
def test_every_cache_is_found_whatever_the_pattern_is_called(name, kinds):
    assert {kind: len(mixers(name, kind)) for kind in kinds} == kinds
    assert sum(kinds.values()) == sum(layer.mixer is not None for layer in arch_of(name).layers)


def test_plamo_keeps_every_token_though_it_states_a_window():
    assert {(m.span, m.window) for m in mixers("pfnet/plamo-2-8b", Attention)} == {(Span.FULL, None)}
    assert arch_of("pfnet/plamo-2-8b").position_table_bytes == 0


def test_a_stack_that_is_run_again_weighs_once_and_is_cached_each_time():
    once, again = arch_of("ByteDance/Ouro-1.4B", total_ut_steps=1), arch_of("ByteDance/Ouro-1.4B")
    assert weights_from_architecture(once) == weights_from_architecture(again)
    assert kv_bytes_per_token(again, Layout()) == 4 * kv_bytes_per_token(once, Layout())
    assert not again.supports_pipeline


def test_keys_that_are_cached_expanded_count_at_their_full_width():
    [mixer] = {*mixers("openbmb/MiniCPM3-4B", Attention)}
    assert (mixer.kv_heads, mixer.head_dim, mixer.v_head_dim) == (40, 96, 96)


def test_a_second_mamba_alone_is_no_first_one():
    [mixer] = {*mixers("mistralai/Mamba-Codestral-7B-v0.1", Mamba)}
    assert (mixer.heads, mixer.head_dim, mixer.groups, mixer.dt_rank) == (128, 64, 8, None)
    assert all(layer.ffn is None for layer in arch_of("mistralai/Mamba-Codestral-7B-v0.1").layers)


def test_a_dense_part_beside_the_experts_counts_as_shared_by_all_tokens():
    assert {
        layer.ffn.shared_intermediate for layer in arch_of("grok-2").layers if isinstance(layer.ffn, MoeFfn)
    } == {32768}
    assert [
        isinstance(layer.ffn, MoeFfn) for layer in arch_of("meituan-longcat/LongCat-Flash-Chat").layers[:4]
    ] == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("name", "key", "told"),
    [
        ("Qwen/Qwen2-Audio-7B-Instruct", "d_model", "audio_config"),
        ("OpenGVLab/InternVL3-8B", "num_hidden_layers", "vision_config"),
    ],
)
def test_an_encoder_whose_size_is_not_stated_is_told(name, key, told):
    config = config_of(name)
    group = "audio_config" if told == "audio_config" else "vision_config"
    config[group] = {name: value for name, value in config[group].items() if name != key}
    arch = parsed(config)
    assert told in arch.assumed
    assert arch.vision is None


def test_a_model_that_looks_at_an_encoded_input_is_refused_by_its_key():
    with pytest.raises(ConfigError, match="is_encoder_decoder is true"):
        parsed(
            {"model_type": "whisper", "d_model": 1280, "num_hidden_layers": 32, "is_encoder_decoder": True}
        )


@given(st.data())
def test_a_damaged_config_of_any_family_is_read_or_refused_with_a_sentence(data):
    config: Any = config_of(data.draw(st.sampled_from(sorted(FAMILIES))))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(paths(config))))
        inner = config
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = copy.deepcopy(data.draw(VALUES))
    with suppress(ConfigError):
        arch = parsed(config)
        assert weights_from_architecture(arch).total > 0
        assert kv_bytes_per_token(arch, Layout()) >= 0
