"""Which linear modules a checkpoint's patterns mean: typical names of every part, and one matcher for all dialects.

Checkpoints say what they leave alone by names (`lm_head`), prefixes (`model.layers.0.self_attn`), globs and regular
expressions. The matcher takes all four; the names are those a part goes by in the families that get quantized.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence

from plimsoll.facts.architecture import (
    Attention,
    DenseFfn,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    MoeFfn,
    Part,
)

_MLP = ("gate_proj", "up_proj", "down_proj")
_EXPERT = ("experts.0.gate_proj", "experts.0.up_proj", "experts.0.down_proj")
# Each entry is one module; the spellings in it mean the same module in different families.
_NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "softmax": tuple(
        (f"self_attn.{p}_proj", f"mixer.{p}_proj", "self_attn.qkv_proj" if p != "o" else "self_attn.out_proj")
        for p in "qkvo"
    ),
    "latent": tuple(
        (f"self_attn.{p}",)
        for p in ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
    ),
    "mamba": (("mixer.in_proj", "mamba.in_proj"), ("mixer.out_proj", "mamba.out_proj")),
    "linear": (("linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv", "self_attn.q_proj"), ("linear_attn.out_proj",)),
    "dense": tuple((f"mlp.{p}", f"feed_forward.{p}", f"mixer.{p}") for p in _MLP),
    "experts": tuple(
        (f"mlp.{p}", f"block_sparse_moe.{p}", f"mixer.{p}", f"feed_forward.{p}", f"moe.{p}",
         f"block_sparse_moe.experts.0.w{i}", f"experts.{p.removeprefix('experts.0.')}")
        for p, i in zip(_EXPERT, (1, 3, 2), strict=True)
    ),
    "shared": tuple(
        (f"mlp.shared_experts.{p}", f"mlp.shared_expert.{p}", f"mixer.shared_experts.{p}", f"shared_mlp.{p}",
         f"feed_forward.shared_expert.{p}", f"block_sparse_moe.shared_experts.{p}")
        for p in _MLP
    ),
}  # fmt: skip
_PREFIXES = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")


def modules(layers: Sequence[Layer]) -> Iterator[tuple[Part, tuple[str, ...]]]:
    """Every linear module of the decoder with the part it belongs to, as its possible names without a prefix."""
    for i, layer in enumerate(layers):
        for part, names in _of_layer(layer):
            for spellings in names:
                yield part, tuple(f"layers.{i}.{name}" for name in spellings)


def _of_layer(layer: Layer) -> Iterator[tuple[Part, tuple[tuple[str, ...], ...]]]:
    match layer.mixer:
        case Attention():
            yield Part.ATTENTION, _NAMES["softmax"]
        case LatentAttention():
            yield Part.ATTENTION, _NAMES["latent"]
        case Mamba():
            yield Part.STATE, _NAMES["mamba"]
        case LinearAttention():
            yield Part.STATE, _NAMES["linear"]
    match layer.ffn:
        case DenseFfn():
            yield Part.FFN, _NAMES["dense"]
        case MoeFfn():
            yield Part.EXPERTS, _NAMES["experts"]
            if layer.ffn.shared_intermediate:
                yield Part.SHARED_EXPERTS, _NAMES["shared"]


class Patterns:
    """A set of patterns, asked whether any means a module; names and prefixes by look-up, the rest in one expression."""

    def __init__(self, patterns: Iterable[object]) -> None:
        self._plain: set[str] = set()
        expressions: list[str] = []
        for pattern in patterns:
            if not isinstance(pattern, str) or not pattern:
                continue
            if pattern.startswith("re:"):
                expressions.append(f"(?:{pattern[3:]})")
            elif set(pattern) & set("*?["):
                expressions.append(f"(?:{fnmatch.translate(pattern)})")
            else:
                self._plain.add(_bare(pattern))
        self._pattern = _compiled(expressions)

    def __bool__(self) -> bool:
        return bool(self._plain) or self._pattern is not None

    def mean(self, names: Iterable[str]) -> bool:
        return any(self._means(name) for name in names)

    def _means(self, name: str) -> bool:
        words = name.split(".")
        spans = (".".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1))
        if self._plain and any(span in self._plain for span in spans):
            return True
        pattern = self._pattern
        return pattern is not None and any(pattern.match(prefix + name) for prefix in _PREFIXES)


def _bare(name: str) -> str:
    """The name from `layers.` on: what stands before differs between the checkpoint and the engine."""
    at = name.find("layers.")
    return name[at:] if at >= 0 else name


def _compiled(expressions: Sequence[str]) -> re.Pattern[str] | None:
    """One expression of all that compile; a pattern that is none is left out, as engines do."""
    valid = []
    for expression in expressions:
        try:
            re.compile(expression)
        except re.error:
            continue
        valid.append(expression)
    return re.compile("|".join(valid)) if valid else None
