"""What a config says of positions, and the bytes of their tables, which every rank holds beside its weights: cosines and sines of each.

They are no part of the checkpoint, yet the engine counts them as weights: 0.03 GiB for a Llama, 0.25 for a model with
multimodal positions over 262,144 tokens, whose table is four times as long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from plimsoll.facts.architecture import Attention, LatentAttention, Layer, Span
from plimsoll.facts.configs.fields import Fields
from plimsoll.facts.dtypes import Dtype

_WITHOUT = frozenset(
    [
        "opt",
        "gpt2",
        "gpt_bigcode",
        "bloom",
        "mpt",
        "nemotron_h",
        "jamba",
        "plamo2",  # its table is as long as the requests the engine is told to take
        "bert",
        "roberta",
        "xlm-roberta",
        "camembert",
        "distilbert",
        "electra",
        "mpnet",
    ]
)
_MULTIMODAL_POSITIONS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen2_5_omni", "qwen3_omni")
_BY_SPAN = ("gemma3", "gemma4", "modernbert", "olmo3", "mimo_v2", "gemma3n")
"""Families with a table each for near and far layers."""


_FROM_PADDING = frozenset(["roberta", "xlm-roberta", "camembert"])
"""Families whose positions begin after that of the padding token, so that no request can use the rows up to there."""


_PARTLY: Final[Mapping[str, float]] = {
    "bamba": 0.5, "glm": 0.5, "glm4": 0.5, "glm4_moe": 0.5, "gpt_neox": 0.25, "nemotron": 0.5, "persimmon": 0.5, "phi": 0.5,
    "qwen3_next": 0.25, "stablelm": 0.25,
}  # fmt: skip
"""The part of each head that is rotated in families whose classes take less than the whole where the config is silent."""
_STRETCHING: Final = frozenset(
    ["type", "rope_type", "factor", "original_max_position_embeddings", "rope_theta"]
)
"""Keys that whoever stretches a context says anew, and the base, which is read by itself."""


_LONGEST_LIST: Final = 8


def rope_others(fields: Fields) -> str | None:
    """What the engine must be told again of the model's own mapping when another takes its place."""
    own = fields.within("rope_parameters", "rope_scaling")
    others = {key: value for key, value in own.raw.items() if key not in _STRETCHING and _is_short(value)}
    share = _stated_share(fields, own)
    if share is None and (rotated := fields.integer("rotary_dim", least=1)) is not None:
        share = rotated / (fields.integer("head_dim", least=1) or rotated)
    share = _PARTLY.get(fields.model_type) if share is None else share
    if share is not None and share < 1:
        others["partial_rotary_factor"] = share
    return json.dumps(others, sort_keys=True, separators=(",", ":")) if others else None


def _is_short(value: object) -> bool:
    """Whether it may be kept: tables of a factor for each channel would not fit into a pod's answer."""
    return isinstance(value, str | int | float) or (isinstance(value, list) and len(value) <= _LONGEST_LIST)


def rope_by_layer(fields: Fields) -> bool:
    own = fields.within("rope_parameters", "rope_scaling").raw
    return fields.model_type.startswith(_BY_SPAN) or any(isinstance(each, Mapping) for each in own.values())


def usable_positions(fields: Fields, stated: int) -> int:
    """How many tokens a request may have: fewer than the table has rows, where its first rows are never used, and no more than a sentence
    model states. The engine refuses to start with more.
    """
    if fields.model_type in _FROM_PADDING:
        padding = fields.integer("pad_token_id", least=0)
        stated -= (1 if padding is None else padding) + 1
    bound = fields.integer("max_seq_length", least=1)
    return max(1, stated if bound is None else min(stated, bound))


def position_table_bytes(fields: Fields, layers: Sequence[Layer], dtype: Dtype) -> int:
    if fields.model_type in _WITHOUT or fields.text("position_embedding_type") in {"absolute", "nope"}:
        return 0
    if fields.flag("mla_use_nope"):
        return 0
    scaling = fields.within("rope_scaling", "rope_parameters")
    kind = scaling.text("rope_type", "type") or ""
    width = dtype.bytes
    positions = _positions(fields, scaling, kind)
    if kind.endswith("yarn") and any(isinstance(layer.mixer, LatentAttention) for layer in layers):
        width = Dtype.FLOAT32.bytes
    if scaling.value("mrope_section") is not None or fields.model_type.startswith(_MULTIMODAL_POSITIONS):
        positions *= 4
    return int(_rotated_channels(fields, scaling, layers) * positions * width)


def _rotated_channels(fields: Fields, scaling: Fields, layers: Sequence[Layer]) -> int:
    """Channels of one position over all distinct tables."""
    widths: dict[Span | None, int] = {}
    by_span = fields.model_type.startswith(_BY_SPAN)
    share = _rotated_share(fields, scaling)
    for layer in layers:
        match layer.mixer:
            case LatentAttention(qk_rope_head_dim=width):
                widths[None] = width
            case Attention(head_dim=width, span=span):
                stated = fields.integer("rotary_dim", least=1)
                widths[span if by_span else None] = stated or int(width * share)
    return sum(widths.values())


def _rotated_share(fields: Fields, scaling: Fields) -> float:
    """The part of each head that is rotated; tables of Gemma-4 have the rest as well."""
    if fields.model_type.startswith("gemma4"):
        return 1.0
    stated = _stated_share(fields, scaling)
    return 1.0 if stated is None else min(stated, 1.0)


def _stated_share(fields: Fields, scaling: Fields) -> float | None:
    stated = scaling.number("partial_rotary_factor")
    if stated is not None:
        return stated
    return fields.number("partial_rotary_factor", "rotary_pct", "rotary_percent", "rotary_emb_fraction")


def _positions(fields: Fields, scaling: Fields, kind: str) -> int:
    """Yarn lays its table out for the stretched context; a long-context pair holds the short table too."""
    stated = (
        fields.integer("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length") or 0
    )
    original, factor = scaling.integer("original_max_position_embeddings"), scaling.number("factor")
    if kind.endswith("yarn") and original and factor:
        return int(original * factor)
    if kind in {"longrope", "su"}:
        return stated + (fields.integer("original_max_position_embeddings") or 0)
    return stated
