"""Bytes of weights on one rank: what a layout cuts, what every rank holds whole, and which pipeline stage has what.

The bytes of a checkpoint are known by part. Each part is shared out among layers by the parameters that it has in them, and among
ranks by how the engine shards it. Key and value projections stop shrinking where there are more ranks than key-value heads,
vocabularies are padded, and experts are either cut or spread whole. `overheads` has what the engine adds when it loads.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import ceil

from plimsoll.facts.architecture import Architecture, Attention, Layer, Mamba, MoeFfn
from plimsoll.facts.model import ModelFacts, WeightBytes
from plimsoll.facts.weights import ffn_parameters, mixer_parameters
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import stage_sizes

VOCABULARY_MULTIPLE = 64
"""The vocabulary is padded to a multiple of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """Bytes of weights on one rank."""

    stages: tuple[int, ...]
    """Bytes on a rank of each pipeline stage, without draft layers."""
    experts: tuple[int, ...]
    """How many of these are routed experts."""
    draft: int
    """Bytes of the checkpoint's draft layers, which are on the last stage where they are used."""

    @property
    def largest(self) -> int:
        return max(self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Parameters of one layer, by part."""

    attention: int
    replicated: int
    ffn: int
    experts: int
    small: int
    attention_on_rank: float
    """The share of the attention's parameters that one rank holds."""


@lru_cache(maxsize=4096)
def rank_weight_bytes(model: ModelFacts, layout: Layout) -> RankWeights:
    """The bytes of a model's weights on one rank under a layout."""
    arch, weights = model.architecture, model.weights
    stages = [Counter(layers) for layers in _stages(arch.layers, layout.pipeline)]
    alike = {layer: _measured(layer, arch, layout) for layer in sum(stages, Counter())}
    expert_share = _expert_share(arch, layout)
    totals = _Parts()
    for stage in stages:
        totals.count(stage, alike)
    held = [_Parts() for _ in stages]
    for parts, stage in zip(held, stages, strict=True):
        for layer, count in stage.items():
            parts.hold(
                alike[layer], count, totals=totals, weights=weights, layout=layout, expert_share=expert_share
            )
    vocabulary = _vocabulary_share(arch.vocab, layout.tensor)
    encoder_share = 1 / layout.tensor if arch.vision is not None and arch.vision.sharded else 1
    held[0].others += weights.embedding * vocabulary + weights.vision * encoder_share
    if layout.pipeline > 1 and not weights.lm_head and arch.tied_embeddings:
        held[-1].others += weights.embedding * vocabulary
    held[-1].others += weights.lm_head * vocabulary
    return RankWeights(
        stages=tuple(ceil(parts.others + parts.experts) + arch.position_table_bytes for parts in held),
        experts=tuple(ceil(parts.experts) for parts in held),
        draft=ceil(weights.mtp * (expert_share if arch.is_moe else 1 / layout.tensor)),
    )


class _Parts:
    """Sums over layers, by part: of parameters, or of the bytes on one stage."""

    __slots__ = ("attention", "experts", "ffn", "others", "replicated", "small")

    def __init__(self) -> None:
        self.attention = self.replicated = self.ffn = self.small = 0
        self.experts = self.others = 0.0

    def count(self, layers: Counter[Layer], alike: dict[Layer, _Layer]) -> None:
        """Adds the parameters of layers."""
        for layer, times in layers.items():
            one = alike[layer]
            self.attention += times * one.attention
            self.replicated += times * one.replicated
            self.ffn += times * one.ffn
            self.experts += times * one.experts
            self.small += times * one.small

    def hold(
        self,
        one: _Layer,
        times: int,
        *,
        totals: _Parts,
        weights: WeightBytes,
        layout: Layout,
        expert_share: float,
    ) -> None:
        """Adds the bytes that so many layers of a kind have on one rank."""
        cut = _part(weights.attention_sharded, one.attention, totals.attention) * one.attention_on_rank
        cut += _part(weights.attention_replicated, one.replicated, totals.replicated)
        cut += _part(weights.ffn, one.ffn, totals.ffn) / layout.tensor
        cut += _part(weights.router_and_norms, one.small, totals.small)
        self.others += times * cut
        self.experts += times * _part(weights.experts, one.experts, totals.experts) * expert_share


def _stages(layers: tuple[Layer, ...], pipeline: int) -> list[tuple[Layer, ...]]:
    ends = list(accumulate(stage_sizes(len(layers), pipeline)))
    return [layers[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _part(size: int, own: float, total: float) -> float:
    return size * own / total if total else 0.0


def _measured(layer: Layer, arch: Architecture, layout: Layout) -> _Layer:
    cut, whole, small = mixer_parameters(layer.mixer, arch.hidden)
    dense, shared, routed, router = ffn_parameters(layer.ffn, arch.hidden)
    return _Layer(
        attention=cut,
        replicated=whole,
        ffn=dense + shared,
        experts=routed,
        small=small + router + 2 * arch.hidden,
        attention_on_rank=_attention_share(layer, arch.hidden, cut, layout.tensor),
    )


def _attention_share(layer: Layer, hidden: int, cut: int, ranks: int) -> float:
    """The share of a mixer's parameters on one rank: 1/ranks, but a rank holds at least one whole key-value head, or one whole group of a
    state-space mixer."""
    match layer.mixer:
        case Attention(shares_cache=False) as mixer:
            vectors = mixer.head_dim + (0 if mixer.values_are_keys else mixer.v_head_dim)
            alike, each = mixer.kv_heads, hidden * vectors
        case Mamba(dt_rank=None) as mixer:
            alike, each = mixer.groups, hidden * 2 * mixer.state_size
        case _:
            return 1 / ranks
    if alike >= ranks or not cut:
        return 1 / ranks
    repeated = alike * each / cut
    return (1 - repeated) / ranks + (repeated / alike if alike else 0.0)


def _vocabulary_share(vocab: int, ranks: int) -> float:
    padded = VOCABULARY_MULTIPLE * ceil(vocab / VOCABULARY_MULTIPLE)
    return ceil(padded / ranks) / vocab if vocab else 0.0


def _expert_share(arch: Architecture, layout: Layout) -> float:
    """The share of the routed experts on one rank. Where whole experts are spread, the fullest rank may have one more than others."""
    experts = max((layer.ffn.experts for layer in arch.layers if isinstance(layer.ffn, MoeFfn)), default=0)
    if not experts or not layout.expert_parallel:
        return 1 / layout.expert_ranks
    return ceil(experts / layout.expert_ranks) / experts
