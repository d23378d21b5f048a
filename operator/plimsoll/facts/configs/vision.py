"""The vision encoder beside a language model: its weights and the tokens of the largest single item it makes.

The engine profiles as many largest items as its encoder budget holds, so both figures move the ledger. Processor limits
are not in config.json; where a family's usual limit is taken instead, `vision.max_item_tokens` is listed as assumed.
"""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.facts.architecture import VisionEncoder
from plimsoll.facts.configs.fields import Fields

_WHERE = ("vision_config", "vision_tower_config", "visual", "visual_tokenizer_config")
_HIDDEN = ("hidden_size", "vt_hidden_size", "embed_dim", "width")
_LAYERS = ("num_hidden_layers", "depth", "vt_num_hidden_layers", "layers", "num_layers")
_WIDTH = ("intermediate_size", "vt_intermediate_size", "mlp_dim")
# Most pixels a family's processor lets through, by default; tokens follow from patch and merge sizes.
_MOST_PIXELS = {
    "qwen2_vl": 12_845_056,
    "qwen2_5_vl": 12_845_056,
    "qwen3_vl": 16_777_216,
    "qwen3_5": 16_777_216,
}


def vision_encoder(
    config: Mapping[str, object], text_hidden: int, assumed: list[str]
) -> VisionEncoder | None:
    outer = Fields(config, assumed)
    inner = outer.within(*_WHERE)
    if not inner.raw:
        thinker = outer.mapping("thinker_config")
        if thinker:
            return vision_encoder(thinker, text_hidden, assumed)
        return _unstated(outer, text_hidden, assumed)
    towers = inner.mapping("width")
    if towers is not None:
        return _towers(inner.within("width"), outer, text_hidden, assumed)
    tokenizer = inner
    if inner.mapping("backbone_config") is not None:
        inner = inner.within("backbone_config")
    hidden, layers = inner.integer(*_HIDDEN, least=1), inner.integer(*_LAYERS, least=1)
    if hidden is None or layers is None:
        assumed.append("vision_config")
        return None
    if outer.model_type.startswith(("qwen2_5_vl", "qwen2_vl")) and inner.integer("embed_dim"):
        hidden = inner.required("embed_dim")
    width = inner.integer(*_WIDTH, least=1) or int(hidden * (inner.number("mlp_ratio") or 4))
    gated = (
        outer.model_type.startswith(("qwen2_5_vl", "qwen2_5_omni", "dots_ocr"))
        or inner.model_type in _GATED
        or inner.text("hidden_act") == "silu"
    )
    if outer.model_type.startswith("glm4v"):  # the stated width is the merger's
        width, gated = inner.required("out_hidden_size"), True
    attention = inner.integer("qkv_hidden_size", least=1) or hidden
    block = 4 * hidden * attention + (3 if gated else 2) * hidden * width
    patch = inner.integer("patch_size", "spatial_patch_size", least=1) or 14
    time = inner.integer("temporal_patch_size", least=1) or 1
    embedding = (
        3 * patch * patch * time * hidden
        + (inner.integer("num_position_embeddings", "position_embedding_size") or 0) * hidden
    )
    merge = _merge(outer, inner)
    sharded = outer.model_type.startswith(_SHARDED)
    heads = inner.integer("num_heads", "num_attention_heads", least=1) if sharded else None
    return VisionEncoder(
        parameters=layers * block
        + embedding
        + _projector(outer, inner, hidden, text_hidden, merge)
        + _words_for_pictures(tokenizer, hidden, text_hidden),
        hidden=hidden,
        layers=layers,
        max_item_tokens=_largest_item(outer, inner, patch, merge, assumed),
        sharded=sharded,
        heads=() if heads is None or outer.model_type.startswith(_WHOLE_IF_UNEVEN) else (heads,),
    )


_GATED = frozenset({"gemma4_vision", "pixtral", "aimv2"})
# Families whose config names an encoder without its sizes: width, layers, inner width.
_NAMED = {"phi3_v": (1024, 24, 4096), "phi4mm": (1152, 27, 4304), "molmo": (1024, 23, 4096)}
# Encoders whose matrices the engine cuts over ranks in every version known here; of others each rank holds a copy.
_SHARDED = ("qwen", "llava", "llama4", "kimi_k25", "gemma3", "glm4v", "intern", "smolvlm", "idefics3")

# Of these each rank holds a copy where it could not have as many heads as the others.
_WHOLE_IF_UNEVEN = ("kimi_k25", "intern")


def _unstated(outer: Fields, text: int, assumed: list[str]) -> VisionEncoder | None:
    sizes = _NAMED.get(outer.model_type)
    if sizes is None:
        return None
    assumed += ["vision_config", "vision.max_item_tokens"]
    hidden, layers, width = sizes
    return VisionEncoder(
        parameters=layers * (4 * hidden * hidden + 2 * hidden * width) + 4 * hidden * text + text * text,
        hidden=hidden,
        layers=layers,
        max_item_tokens=2500,
    )


def _towers(towers: Fields, outer: Fields, text: int, assumed: list[str]) -> VisionEncoder | None:
    """Several encoders one after another, each under its name (DeepSeek-OCR)."""
    found = []
    for name in sorted(towers.raw):
        tower = towers.within(name)
        hidden, layers = tower.integer("width", least=1), tower.integer("layers", least=1)
        if hidden is not None and layers is not None:
            found.append((hidden, layers))
    assumed.append("vision.max_item_tokens" if found else "vision_config")
    if not found:
        return None
    hidden, layers = max(found)
    return VisionEncoder(
        parameters=sum(12 * each * each * count for each, count in found) + 2 * hidden * text,
        hidden=hidden,
        layers=layers,
        max_item_tokens=(outer.within("vision_config").integer("image_size") or 1024) ** 2 // 16**2,
    )


def _words_for_pictures(tokenizer: Fields, hidden: int, text: int) -> int:
    """Ovis has a vocabulary of pictures: a head that chooses from it, and its table."""
    words = tokenizer.integer("vocab_size", least=1) if tokenizer.mapping("backbone_config") else None
    if words is None:
        return 0
    stride = tokenizer.integer("hidden_stride", least=1) or 1
    return words * (hidden * stride * stride + text)


def _merge(outer: Fields, inner: Fields) -> int:
    """Patches along one side that become one token."""
    kernel = inner.sequence("merge_kernel_size")
    if kernel and isinstance(kernel[0], int) and kernel[0] > 0:
        return kernel[0]
    return (
        inner.integer("spatial_merge_size", "pooling_kernel_size") or outer.integer("spatial_merge_size") or 1
    )


def _projector(outer: Fields, inner: Fields, hidden: int, text: int, merge: int) -> int:
    """What turns patches into tokens. Deep stacks (Qwen3-VL) have one more of the same for each level."""
    if outer.model_type.startswith(("idefics3", "smolvlm")):  # one matrix from squares of patches
        return hidden * (outer.integer("scale_factor", least=1) or 2) ** 2 * text
    if outer.model_type.startswith(("gemma3", "gemma4", "paligemma")):
        return hidden * text
    if outer.model_type in {"mistral3", "pixtral"}:
        return hidden * hidden * merge * merge + hidden * text + text * text
    if outer.model_type.startswith("llava"):
        return hidden * text + text * text
    if outer.model_type == "llama4":  # four patches become one before two adapters and a projection
        out = inner.integer("vision_output_dim", least=1) or 4096
        return 4 * hidden * out + out * out + out * text
    if outer.model_type == "mllama":
        return (inner.integer("vision_output_dim") or hidden) * text
    glm = outer.model_type.startswith("glm4v")
    wide = inner.integer("projection_intermediate_size", *(_WIDTH if glm else ()), least=1)
    if wide is not None:  # GLM: a convolution that merges, then a gated projection
        out = inner.required("out_hidden_size")
        return hidden * out * merge * merge + out * out + 3 * out * wide
    merged = hidden * merge * merge
    levels = 1 + len(inner.sequence("deepstack_visual_indexes") or ())
    return levels * (merged * merged + merged * text)


def _largest_item(outer: Fields, inner: Fields, patch: int, merge: int, assumed: list[str]) -> int:
    stated = outer.integer("mm_tokens_per_image", "vision_soft_tokens_per_image", "image_seq_length", least=1)
    if stated is not None and not outer.model_type.startswith(("llava_next", "minimax")):
        return stated
    if outer.model_type == "llama4":  # 16 tiles and the whole picture, a quarter of the patches each
        side = (inner.integer("image_size", least=1) or 336) // patch
        return 17 * side * side // 4
    assumed.append("vision.max_item_tokens")
    pixels = next((most for name, most in _MOST_PIXELS.items() if outer.model_type.startswith(name)), None)
    if pixels is not None:
        return pixels // (patch * merge) ** 2
    if inner.integer("vt_hidden_size"):  # Kimi's processor stops at 16,384 patches
        return 16_384 // merge**2
    side = (inner.integer("image_size", least=1) or 448) // (patch * merge)
    tiles = (
        5 if outer.model_type.startswith("llava_next") else 13 if outer.model_type.startswith("intern") else 1
    )
    return tiles * side * side
