"""Exact bytes of a checkpoint's parts, from the headers of its tensors.

The name of a tensor says which part it is of, in every family of models that is served. A tensor whose name says nothing counts as held
whole by every rank, which is too much memory rather than too little.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from plimsoll.facts.architecture import Architecture
from plimsoll.facts.model import Certainty, WeightBytes

_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I8": 8, "U8": 8, "BOOL": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4, "I4": 4, "U4": 4,
}  # fmt: skip

# The first pattern that is found in a name decides.
_PARTS = tuple(
    (part, re.compile(pattern, re.VERBOSE))
    for part, pattern in (
        (
            "vision",
            r"""(^|\.)(visual|vision_\w+|multi_modal_projector|mm_projector|embed_vision|embed_audio|audio_tower
            |patch_merge_mlp|connector|aligner|image_newline|mlp1)(\.|$)""",
        ),
        ("mtp", r"(^|\.)(mtp|mtp_\w+|nextn_predict_layers)(\.|$)"),
        (
            "embedding",
            r"""(^|\.)(embed_tokens\w*|wte|wpe|word_embeddings|tok_embeddings|position_embeddings|embed_positions
            |token_type_embeddings|embed)\.weight$""",
        ),
        (
            "lm_head",
            r"(^|\.)(lm_head|embed_out|output|head)\.(weight\w*|bias|qweight|qzeros|scales|g_idx|input_scale)$",
        ),
        ("ffn", r"shared_experts?\.|shared_mlp\.|share_expert\."),
        ("experts", r"\.experts(\.|_)"),
        (
            "router_and_norms",
            r"\.(gate|router|wg|shared_expert_gate|expert_bias)(\.|$)|e_score_correction_bias|norm|(^|\.)ln_",
        ),
        (
            "attention_replicated",
            r"\.(q_a_proj|kv_a_proj\w*|indexer|compressor|wq_a|wkv|f_a_proj|g_a_proj)(\.|$)",
        ),
        (
            "ffn",
            r"""\.(mlp|feed_forward|ffn|fc1|fc2|intermediate)(\.|$)|\.mixer\.(up|down|gate)_proj\.
            |layer\.\d+\.output\.dense""",
        ),
        (
            "attention_sharded",
            r"\.(self_attn|self_attention|attention|attn|linear_attn|mixer|mamba|cross_attn|conv)(\.|$)",
        ),
    )
)


def weights_from_tensors(tensors: Mapping[str, tuple[str, Sequence[int]]], arch: Architecture) -> WeightBytes:
    """Bytes by part. Matrices that are stored in full precision count in the format in which the engine loads them."""
    parts: Counter[str] = Counter()
    stored = 0
    for name, (dtype, shape) in tensors.items():
        bits = _BITS.get(dtype.upper())
        if bits is None:
            raise ValueError(f"tensor {name} has dtype {dtype!r}; known are {', '.join(sorted(_BITS))}")
        count = math.prod(shape)
        stored += -(-count * bits // 8)
        loaded = (
            min(bits, int(arch.dtype.bits))
            if dtype.upper() in {"F32", "F64"} and _is_weight(name, shape)
            else bits
        )
        parts[_part(name, len(arch.layers))] += -(-count * loaded // 8)
    if arch.tied_embeddings:
        parts.pop("lm_head", None)
    total = sum(parts.values())
    return WeightBytes(
        embedding=parts["embedding"],
        lm_head=parts["lm_head"],
        attention_sharded=parts["attention_sharded"],
        attention_replicated=parts["attention_replicated"],
        ffn=parts["ffn"],
        experts=parts["experts"],
        router_and_norms=parts["router_and_norms"],
        vision=parts["vision"],
        mtp=parts["mtp"],
        stored=None if stored == total else stored,
        certainty=Certainty.EXACT,
    )


def _is_weight(name: str, shape: Sequence[int]) -> bool:
    """Whether a tensor is a matrix, which is loaded in the model's dtype. Scales, states and biases of routers keep their own."""
    return len(shape) >= 2 and name.endswith("weight")


_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")


def _part(name: str, layers: int) -> str:
    """The part that a tensor is of. Layers with numbers beyond the model's own are draft layers (DeepSeek, GLM)."""
    found = next((part for part, pattern in _PARTS if pattern.search(name)), "router_and_norms")
    number = _LAYER.search(name)
    if found != "vision" and number is not None and int(number[1]) >= layers:
        return "mtp"
    return found
