"""Inner configs that leave out what equals their class's defaults, as transformers wrote them for years."""

from typing import Any

import pytest

from plimsoll.facts.architecture import Attention, Span
from plimsoll.facts.configs.defaults import DEFAULTS
from plimsoll.facts.hf_config import ConfigError
from plimsoll.facts.models import catalogue_config, catalogue_names
from tests.facts.known_models import parsed

GEMMA = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
}
LLAVA = {
    "architectures": ["LlavaForConditionalGeneration"],
    "model_type": "llava",
    "torch_dtype": "float16",
    "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32_064},
}
INNER = [
    name
    for name in catalogue_names()
    if catalogue_config(name).get("text_config", {}).get("model_type") in DEFAULTS  # type: ignore[attr-defined]
]


def spans(arch: Any) -> set[Span]:
    return {layer.mixer.span for layer in arch.layers if isinstance(layer.mixer, Attention)}


def test_gemma_s_own_config_is_read_with_the_heads_and_the_words_of_its_class():
    arch = parsed(GEMMA)
    assert (arch.vocab, arch.max_positions) == (262_208, 131_072)
    assert arch.layers[0].mixer == Attention(
        heads=8, kv_heads=4, head_dim=256, v_head_dim=256, span=Span.SLIDING, window=1024
    )
    assert set(arch.assumed) == {
        "vocab_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "max_position_embeddings",
    }


def test_a_config_that_leaves_out_every_width_has_those_of_its_class():
    arch = parsed(LLAVA)
    assert (len(arch.layers), arch.hidden, arch.vocab, arch.max_positions) == (32, 4096, 32_064, 4096)
    assert arch.layers[0].mixer == Attention(heads=32, kv_heads=32, head_dim=128, v_head_dim=128)


@pytest.mark.parametrize("name", INNER)
def test_what_equals_a_default_may_be_left_out(name):
    stated: Any = catalogue_config(name)
    inner = stated["text_config"]
    defaults = DEFAULTS[inner["model_type"]]
    left = {key: value for key, value in inner.items() if defaults.get(key) != value}
    short, whole = parsed({**stated, "text_config": left}), parsed(stated)
    assert (short.layers, short.vocab, short.hidden) == (whole.layers, whole.vocab, whole.hidden)
    assert (short.max_positions, short.tied_embeddings) == (whole.max_positions, whole.tied_embeddings)
    assert set(short.assumed) <= {*whole.assumed, *defaults}


def test_a_null_is_a_statement_and_no_silence():
    assert spans(parsed(GEMMA)) == {Span.SLIDING, Span.FULL}
    text = {**GEMMA["text_config"], "sliding_window": None}  # type: ignore[dict-item]
    assert spans(parsed({**GEMMA, "text_config": text})) == {Span.FULL}


@pytest.mark.parametrize("config", [{"model_type": "llama"}, {**LLAVA, "text_config": {"model_type": "odd"}}])
def test_a_config_alone_or_of_no_known_class_states_its_sizes(config):
    with pytest.raises(ConfigError, match="hidden_size is missing"):
        parsed(config)
