"""Which linear modules a checkpoint's patterns mean: typical names of every part, and one matcher for all dialects.

Checkpoints say what they leave alone by names (`lm_head`), prefixes (`model.layers.0.self_attn`), globs and regular
expressions. The matcher takes all four; the names are those a part goes by in the families that get quantized.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
from plimsoll.facts.configs.fields import ConfigError

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
        (f"mlp.{p}", f"block_sparse_moe.{p}", f"mixer.{p}", f"feed_forward.{p}", f"moe.{p}", f"ffn.{p}",
         f"block_sparse_moe.experts.0.w{i}", f"experts.{p.removeprefix('experts.0.')}")
        for p, i in zip(_EXPERT, (1, 3, 2), strict=True)
    ),
    "experts beside": tuple((p, f"moe.{p}") for p in _EXPERT),
    "shared beside": tuple((f"mlp.{p}",) for p in _MLP),
    "shared": tuple(
        (f"mlp.shared_experts.{p}", f"ffn.shared_experts.{p}", f"mlp.shared_expert.{p}", f"mixer.shared_experts.{p}", f"shared_mlp.{p}",
         f"feed_forward.shared_expert.{p}", f"block_sparse_moe.shared_experts.{p}")
        for p in _MLP
    ),
}  # fmt: skip
_DECODERS = frozenset({
    "", "*", "*.", "model.", "model.language_model.", "language_model.model.", "language_model.", "backbone.",
    "model.decoder.", "transformer.",
})  # fmt: skip
"""What stands before `layers.` where the decoder is meant; draft layers and encoders have other words there."""
_PREFIXES = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")


@dataclass(frozen=True, slots=True)
class Module:
    part: Part
    names: tuple[str, ...]
    """Its possible names, from `layers.` on."""
    parameters: int
    """Its size, in proportion to the other modules of its part."""


def modules(layers: Sequence[Layer], hidden: int, *, beside: bool = False) -> Iterator[Module]:
    """All linear modules of the decoder, of like experts only the first. With `beside`, experts are next to an ordinary `mlp` and not in it
    (Gemma-4)."""
    for i, layer in enumerate(layers):
        for part, kind, sizes in (*_mixer_modules(layer, hidden), *_ffn_modules(layer, beside)):
            names = _NAMES[kind][-len(sizes) :]  # two matrices where there is no gate, which is named first
            for spellings, size in zip(names, sizes, strict=True):
                yield Module(part, tuple(f"layers.{i}.{name}" for name in spellings), size)


def _mixer_modules(layer: Layer, hidden: int) -> Iterator[tuple[Part, str, tuple[int, ...]]]:
    sizes: tuple[int, ...]
    match layer.mixer:
        case Attention() as m:
            sizes = (
                m.heads * m.head_dim,
                m.kv_heads * m.head_dim,
                m.kv_heads * m.v_head_dim,
                m.heads * m.v_head_dim,
            )
            yield Part.ATTENTION, "softmax", sizes
        case LatentAttention() as m:
            rank, head = m.q_lora_rank or 0, m.qk_nope_head_dim + m.qk_rope_head_dim
            sizes = (
                hidden * rank,
                (rank or hidden) * m.heads * head,
                hidden * (m.kv_lora_rank + m.qk_rope_head_dim),
                m.kv_lora_rank * m.heads * (m.qk_nope_head_dim + m.v_head_dim),
                hidden * m.heads * m.v_head_dim,
            )
            yield Part.ATTENTION, "latent", sizes
        case Mamba() as m:
            inner = m.heads * m.head_dim
            yield Part.STATE, "mamba", (2 * inner + 2 * m.groups * m.state_size, inner)
        case LinearAttention() as m:
            yield (
                Part.STATE,
                "linear",
                (2 * m.key_heads * m.key_dim + 2 * m.value_heads * m.value_dim, m.value_heads * m.value_dim),
            )


def _ffn_modules(layer: Layer, beside: bool) -> Iterator[tuple[Part, str, tuple[int, ...]]]:
    match layer.ffn:
        case DenseFfn() as f:
            yield Part.FFN, "dense", (f.intermediate,) * (3 if f.gated else 2)
        case MoeFfn() as f:
            matrices = 3 if f.gated else 2
            yield Part.EXPERTS, "experts beside" if beside else "experts", (f.intermediate,) * matrices
            if f.shared_intermediate:
                yield (
                    Part.SHARED_EXPERTS,
                    "shared beside" if beside else "shared",
                    (f.shared_intermediate,) * matrices,
                )


class Patterns:
    """A set of patterns, asked whether any means a module.

    Names and prefixes are looked up. Expressions come from outside, so only such are taken as cannot run away: no repeated
    group, few repetitions, not too many of them.
    """

    def __init__(self, patterns: Iterable[object]) -> None:
        self._plain: set[str] = set()
        self._starts: set[str] = set()
        expressions: list[str] = []
        for pattern in patterns:
            if not isinstance(pattern, str) or not pattern:
                continue
            if pattern.startswith("re:"):
                expressions.append(_checked(pattern[3:]))
            elif pattern.endswith("*") and not set(pattern[:-1]) & set("*?["):
                self._starts.add(_bare(pattern[:-1]))
            elif set(pattern) & set("*?["):
                expressions.append(fnmatch.translate(_bare(pattern)))
            else:
                self._plain.add(_bare(pattern))
        if len(expressions) > _MOST_EXPRESSIONS:
            raise ConfigError(
                f"quantization_config holds {len(expressions)} expressions over module names; at most {_MOST_EXPRESSIONS}"
            )
        self._pattern = re.compile("|".join(f"(?:{one})" for one in expressions)) if expressions else None

    def mean(self, names: Iterable[str]) -> bool:
        return any(self._means(name) for name in names)

    def _means(self, name: str) -> bool:
        if self._starts and any(name[:end] in self._starts for end in range(1, len(name) + 1)):
            return True
        if self._plain:
            words = name.split(".")
            spans = (".".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, len(words) + 1))
            if any(span in self._plain for span in spans):
                return True
        pattern = self._pattern
        return pattern is not None and any(pattern.match(prefix + name) for prefix in _PREFIXES)


_MOST_EXPRESSIONS = 1000
_MOST_REPEATS = 4
_REPEATED_GROUP = re.compile(r"\)\s*[*+{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")


def _checked(expression: str) -> str:
    try:
        re.compile(expression)
    except (re.error, RecursionError) as error:
        raise ConfigError(
            f"quantization_config: {expression[:200]!r} is no regular expression: {error}"
        ) from error
    if (
        len(expression) > 1000
        or _REPEATED_GROUP.search(expression)
        or len(_REPEAT.findall(expression)) > _MOST_REPEATS
    ):
        raise ConfigError(
            f"quantization_config: the expression {expression[:200]!r} is too complex; "
            f"at most {_MOST_REPEATS} repetitions, none of a group"
        )
    return expression


def _bare(name: str) -> str:
    """The name from `layers.` on, as what is before that differs between the checkpoint and the engine."""
    before, found, after = name.partition("layers.")
    return found + after if found and before in _DECODERS else name
