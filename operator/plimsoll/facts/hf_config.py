"""Reads a model's config.json into an `Architecture`, wherever it comes from: catalogue, folder, inline text or hub.

Each question has a module under `configs/`: which kind each layer is, its mixer, its feed-forward part, the quantization, the vision
encoder. An unknown family is read by the usual keys, and `assumed` says so, as it says which sizes an inner config leaves to its class's
`defaults`. Where a value that no rule can fill in is missing (layers, widths, heads), the error names its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from plimsoll.facts.architecture import Architecture, Layer, Mixer, Quantization, VisionEncoder
from plimsoll.facts.configs.audio import audio_encoder
from plimsoll.facts.configs.families import KNOWN, ONLY_BFLOAT16, TIED, WITHOUT_ADAPTERS, WITHOUT_PIPELINE
from plimsoll.facts.configs.feed_forward import feed_forward
from plimsoll.facts.configs.fields import ConfigError, Fields, language_model
from plimsoll.facts.configs.kinds import layer_kinds
from plimsoll.facts.configs.mixers import attention_layers, is_encoder
from plimsoll.facts.configs.modules import Module, modules
from plimsoll.facts.configs.positions import (
    position_table_bytes,
    rope_by_layer,
    rope_others,
    usable_positions,
)
from plimsoll.facts.configs.quantization import quantization_named, read_quantization, with_expert_format
from plimsoll.facts.configs.states import state_mixer
from plimsoll.facts.configs.vision import vision_encoder
from plimsoll.facts.dtypes import Dtype

__all__ = ["ConfigError", "parse_config"]

_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "model_dim", "n_embed")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_VOCAB = ("vocab_size", "padded_vocab_size")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length",
              "model_max_length", "max_seq_length", "n_ctx", "max_position_embedding")  # fmt: skip

_MOST_LAYERS = 1024


def parse_config(config: Mapping[str, object], *, quantization_hint: str | None = None) -> Architecture:
    """The architecture that a config.json describes. `quantization_hint` (fp8, awq, nvfp4, ...) is used where the file says nothing."""
    if not isinstance(config, Mapping):
        raise ConfigError(f"config.json: the file holds a {type(config).__name__}; it must be one object")
    fields = language_model(config)
    if fields.flag("is_encoder_decoder"):
        raise ConfigError(
            "config.json: is_encoder_decoder is true; models with an encoder for their input and a decoder that looks at it "
            "are not sized, only decoders and encoders alone"
        )
    hidden, count = fields.required(*_HIDDEN), _layer_count(fields)
    dtype = _dtype(fields)
    layers = _layers(fields, hidden, count, dtype)
    linears = tuple(modules(layers, hidden, beside=fields.flag("enable_moe_block") or False))
    vision = _encoder(config, hidden, fields.assumed)
    if fields.model_type not in KNOWN:
        fields.assumed.append("model_type")
    name = _name(config, fields)
    return Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        vocab=fields.required(*_VOCAB),
        max_positions=usable_positions(fields, _positions(fields)),
        dtype=dtype,
        tied_embeddings=_tied(fields),
        quantization=_quantization(config, fields, linears, quantization_hint),
        vision=vision,
        mtp_layers=_mtp_layers(fields),
        attention_bias=_attention_bias(fields),
        supports_pipeline=WITHOUT_PIPELINE.isdisjoint((fields.model_type, name)),
        supports_adapters=name not in WITHOUT_ADAPTERS,
        only_bfloat16=fields.model_type in ONLY_BFLOAT16,
        encoder=is_encoder(fields),
        extra_embedding_parameters=_extra_embeddings(fields, hidden, count),
        position_table_bytes=position_table_bytes(fields, layers, dtype),
        rope_theta=_rope_theta(fields),
        rope_others=rope_others(fields),
        rope_by_layer=rope_by_layer(fields),
        distinct_attention=_distinct_attention(fields, count),
        assumed=tuple(dict.fromkeys(fields.assumed)),
    )


def _encoder(config: Mapping[str, object], hidden: int, assumed: list[str]) -> VisionEncoder | None:
    """The encoder of images, of sounds, or of both as one: the weights of both are added, and the largest image counts as the item."""
    sees, hears = vision_encoder(config, hidden, assumed), audio_encoder(config, hidden, assumed)
    if sees is None or hears is None:
        return sees or hears
    return replace(sees, parameters=sees.parameters + hears.parameters, heads=sees.heads + hears.heads)


def _layer_count(fields: Fields) -> int:
    """The number of layers; in some configs only the length of a pattern that names every layer says it."""
    listed = fields.sequence("layers_block_type", "layer_types", "block_configs")
    pattern = fields.text("hybrid_override_pattern")
    if fields.integer(*_LAYERS, least=1) is None and (listed or pattern):
        return _bounded(len(listed or pattern or ""))
    if fields.model_type == "longcat_flash":  # two attentions and two dense parts beside one set of experts
        return _bounded(2 * fields.required("num_layers"))
    return _bounded(fields.required(*_LAYERS))


def _bounded(count: int) -> int:
    if count > _MOST_LAYERS:
        raise ConfigError(f"config.json: num_hidden_layers is {count}; at most {_MOST_LAYERS} are read")
    return count


def _layers(fields: Fields, hidden: int, count: int, dtype: Dtype) -> tuple[Layer, ...]:
    kinds = layer_kinds(fields, count)
    ffns = feed_forward(fields, hidden, count)
    attention = attention_layers(fields, hidden, kinds)
    alternating = "feed" in kinds  # one part a layer: a mixer or a feed-forward part, never both
    layers: list[Layer] = []
    for i, kind in enumerate(kinds):
        mixer: Mixer | None = attention.get(i)
        if kind == "both":
            # It counts as two layers, as it has two caches: a state beside an attention, with one feed-forward part after them.
            layers.append(Layer(mixer=state_mixer(fields, hidden, "mamba", dtype), ffn=None))
        elif kind in {"mamba", "linear"}:
            mixer = state_mixer(fields, hidden, kind, dtype)
        has_ffn = (kind == "feed") if alternating else _mixes_and_feeds(fields, kind)
        layers.append(Layer(mixer=mixer, ffn=ffns[i] if has_ffn else None))
    passes = fields.integer("total_ut_steps", least=1) or 1  # the same stack again, with a cache of its own
    _bounded(passes * len(layers))
    return tuple(layers) * passes


def _mixes_and_feeds(fields: Fields, kind: str) -> bool:
    """Whether a layer with a mixer has a feed-forward part too. Zamba2 has them only beside its attention."""
    return not (kind == "mamba" and fields.model_type == "zamba2")


def _distinct_attention(fields: Fields, count: int) -> int | None:
    """How many attention layers have weights of their own, where a stack is run several times (Ouro) or a few blocks take turns (Zamba2);
    None where all have."""
    if (fields.integer("total_ut_steps", least=1) or 1) > 1:
        return count
    blocks = fields.integer("num_mem_blocks", least=1)
    if blocks is not None:  # each turn has a projection and adapters of its own, which no key states
        fields.assumed.append("num_mem_blocks")
    return blocks


def _dtype(fields: Fields) -> Dtype:
    """The format in which the engine computes: a checkpoint in full precision is loaded in bfloat16."""
    stated = fields.dtype("dtype", "torch_dtype")
    if stated is None:
        fields.assumed.append("dtype")
    return stated if stated in {Dtype.BFLOAT16, Dtype.FLOAT16} else Dtype.BFLOAT16


def _name(config: Mapping[str, object], fields: Fields) -> str:
    for source in (config, fields.raw):
        listed = source.get("architectures")
        if isinstance(listed, list) and listed and isinstance(listed[0], str):
            return listed[0]
    fields.assumed.append("architectures")
    return fields.model_type or "unknown"


def _positions(fields: Fields) -> int:
    stated = fields.integer(*_POSITIONS, least=1)
    scaling = fields.within("rope_scaling", "rope_parameters")
    original, factor = scaling.integer("original_max_position_embeddings", least=1), scaling.number("factor")
    if stated is None and original and factor and factor >= 1:
        return int(original * factor)
    return stated if stated is not None else fields.assume("max_position_embeddings", 2048)


def _rope_theta(fields: Fields) -> float | None:
    inside = fields.within("rope_parameters", "rope_scaling").number("rope_theta")
    return inside if inside is not None else fields.number("rope_theta", "rotary_emb_base")


def _tied(fields: Fields) -> bool:
    stated = fields.flag("tie_word_embeddings", "tie_embedding")
    return fields.model_type in TIED if stated is None else stated


def _quantization(
    config: Mapping[str, object], fields: Fields, linears: Sequence[Module], hint: str | None
) -> Quantization | None:
    for source in (config, fields.raw):
        for key in ("quantization_config", "compression_config"):
            raw = source.get(key)
            if isinstance(raw, Mapping) and raw:
                found = read_quantization(raw, linears)
                return with_expert_format(found, fields.text("expert_dtype"))
    return quantization_named(hint, linears) if hint else None


def _mtp_layers(fields: Fields) -> int:
    if fields.flag("use_mtp") is False:
        return 0
    return (
        fields.integer(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers"
        )
        or 0
    )


def _attention_bias(fields: Fields) -> bool:
    stated = fields.flag("attention_bias", "qkv_bias", "use_qkv_bias")
    return fields.model_type in {"qwen2", "qwen2_moe", "qwen2_vl", "qwen2_5_vl"} if stated is None else stated


def _extra_embeddings(fields: Fields, hidden: int, count: int) -> int:
    """Parameters of tables beside the vocabulary's: learned positions, token types, and a narrow embedding for each layer (Gemma-3n, -4)."""
    learned = fields.text("position_embedding_type") == "absolute" or fields.model_type in {
        "opt",
        "gpt2",
        "gpt_bigcode",
    }
    positions = (
        (fields.integer(*_POSITIONS) or 0) + (fields.integer("type_vocab_size") or 0) if learned else 0
    )
    narrow = fields.integer("hidden_size_per_layer_input") or 0
    return positions * hidden + narrow * count * (fields.integer("vocab_size_per_layer_input") or 0)
