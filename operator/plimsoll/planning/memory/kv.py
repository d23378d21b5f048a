"""What one layer keeps in the cache: bytes of a page, tokens of a block, and for how long blocks are kept.

There are few kinds of layers, whatever the model: those that keep every token, those that keep a window or a chunk, and those that
keep a state of fixed size. This module turns an architecture and a layout into one tuple of such layers for the whole model, each
with its pipeline stage. `kv_groups` says how layers share blocks, and so how many tokens fit; `kv_compressed` has the pages of latent
attention that compresses its past.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    Indexer,
    LatentAttention,
    Layer,
    LinearAttention,
    Mamba,
    Mixer,
    Span,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory import kv_compressed


class CacheKind(StrEnum):
    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec:
    """The cache of one layer on one rank. Layers with equal specs can share a block table."""

    kind: CacheKind
    block_tokens: int
    page_bytes: int
    """Bytes of one block of this layer, with padding."""
    window: int = 0
    """Tokens that a sliding layer looks back on, or the length of a chunk."""
    state_blocks: int = 0
    """Blocks that a request holds of a state, however long the request is."""
    stretchable: bool = True
    """Whether a page can be padded to any size; False where the kernel reads whole rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayer:
    """One cache of the model, and the pipeline stage that holds it."""

    spec: CacheSpec
    stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """What an engine version, its flags and the device decide about the cache; `kv_rules` makes it."""

    block_tokens: int = 16
    """Tokens of a block that the attention kernel asks for. A hybrid model raises them."""
    state_cached: bool = False
    """Whether prefix caching keeps states: blocks are then aligned with them, and a request holds one more."""
    state_stride: int = 1
    """Where states are cached, they can be kept only at multiples of so many tokens."""
    state_checkpoints: int = 0
    """Further blocks that a request holds for states stored in the middle of a prefill."""
    speculative_tokens: int = 0
    in_flight_tokens: int = 2048
    """Tokens of steps that are not done yet, for which windows keep their blocks."""
    sparse_records: bool = False
    """True where sparse latents in 8 bits are packed together with their scales, as Hopper's kernels want them."""
    request_line: bool = True
    """True where the engine's log counts cache tokens as concurrency x length, False where it counts those of the whole pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLayers:
    """Layers that speculative decoding adds to the cache."""

    count: int
    bytes_per_token: int = 0
    """Bytes of all of them together, in 16 bits and before they are cut over ranks; 0 where they are like the model's own."""


NO_DRAFT = DraftLayers(count=0)
LATENT_HYBRID_ALIGNMENT = 128
"""In hybrid models, decode kernels of latent attention want blocks of a multiple of so many tokens."""
CACHE_SCALE_BYTES = 4
"""Bytes of the scale (float32) that a cache quantized by token and head keeps for each vector."""
SPARSE_RECORD_BYTES = 656
"""Bytes of an 8-bit record of sparse latent attention: 512 of latent, 16 of scales, 128 of rope in 16 bits."""


def cache_dtype(arch: Architecture, asked: Dtype | None) -> Dtype:
    """The format of the cache: the one that is asked for, else that of the cache scales in the checkpoint, else the model's own."""
    if asked is not None:
        return asked
    if arch.quantization is not None and arch.quantization.kv_cache is not None:
        return arch.quantization.kv_cache
    return arch.dtype


def token_bytes(mixer: Mixer, layout: Layout, dtype: Dtype, *, sparse_records: bool = False) -> int:
    """Bytes that one token adds to the cache of one layer on one rank; 0 for a state."""
    if isinstance(mixer, Attention):
        if mixer.shares_cache:
            return 0
        heads = max(1, mixer.kv_heads // layout.tensor)
        return heads * (_vector(mixer.head_dim, dtype) + _vector(mixer.v_head_dim, dtype))
    if isinstance(mixer, LatentAttention):
        if sparse_records and mixer.indexer is not None and dtype is Dtype.FP8:
            return SPARSE_RECORD_BYTES
        if dtype is Dtype.NVFP4:  # positions stay in 8 bits
            return ceil(mixer.kv_lora_rank * dtype.bytes) + mixer.qk_rope_head_dim
        return ceil((mixer.kv_lora_rank + mixer.qk_rope_head_dim) * dtype.bytes)
    return 0


def _vector(size: int, dtype: Dtype) -> int:
    scale = CACHE_SCALE_BYTES if dtype in (Dtype.INT8, Dtype.INT4) else 0
    return ceil(size * dtype.bytes) + scale


def state_bytes(mixer: Mamba | LinearAttention, layout: Layout, conv_dtype: Dtype, speculative: int) -> int:
    """The fixed state of one layer on one rank: the convolution's last inputs and the recurrent matrix."""
    ranks = layout.tensor
    rows = mixer.conv_kernel - 1 + speculative
    if isinstance(mixer, Mamba):
        # Where groups do not divide by the ranks, some are repeated until every rank has those that its heads need.
        groups = mixer.groups if mixer.groups % ranks == 0 else mixer.groups + ranks - mixer.groups
        conv = mixer.heads * mixer.head_dim + 2 * groups * mixer.state_size
        matrix = ceil(mixer.heads / ranks) * mixer.head_dim * mixer.state_size
    else:
        conv = 2 * mixer.key_heads * mixer.key_dim + mixer.value_heads * mixer.value_dim
        matrix = ceil(mixer.value_heads / ranks) * mixer.value_dim * mixer.key_dim
    return ceil(ceil(conv / ranks) * rows * conv_dtype.bytes) + ceil(matrix * mixer.state_dtype.bytes)


def stage_sizes(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage: an even split, whose rest goes to later stages, but not to the last one."""
    size, rest = divmod(layers, stages)
    sizes = [size] * stages
    for index in range(rest):
        # The last stage also computes the head, so the rest goes to the stages before it, the last of them first.
        sizes[(-index - 2) % stages] += 1
    return tuple(sizes)


def stage_of_layers(layers: int, stages: int) -> tuple[int, ...]:
    return tuple(stage for stage, size in enumerate(stage_sizes(layers, stages)) for _ in range(size))


@lru_cache(maxsize=2048)
def cache_layers(
    arch: Architecture, layout: Layout, rules: CacheRules, *, dtype: Dtype, draft: DraftLayers = NO_DRAFT
) -> tuple[CacheLayer, ...]:
    """All caches of the model in the order of its layers; those of draft layers come last and are on the last stage."""
    stages = stage_of_layers(len(arch.layers), layout.pipeline)
    placed = [
        (layer.mixer, stage)
        for layer, stage in zip(arch.layers, stages, strict=True)
        if layer.mixer is not None
    ]
    attending = [mixer for mixer, _ in placed if isinstance(mixer, Attention | LatentAttention)]
    if attending and not draft.bytes_per_token:
        placed += [(_drafting(attending[-1]), layout.pipeline - 1)] * draft.count
    if any(isinstance(mixer, LatentAttention) and kv_compressed.is_compressed(mixer) for mixer, _ in placed):
        return tuple(
            CacheLayer(spec=_from_page(page), stage=stage)
            for mixer, stage in placed
            if isinstance(mixer, LatentAttention)
            for page in kv_compressed.pages(mixer, dtype)
        )
    block = attention_block(arch, layout, rules, dtype)
    state_page = block * _largest_page_token(arch.layers, layout, dtype) if arch.is_hybrid else 0

    def specs(mixer: Mixer) -> list[CacheSpec]:
        if isinstance(mixer, Mamba | LinearAttention):
            size = state_bytes(mixer, layout, arch.dtype, rules.speculative_tokens)
            return [_state_spec(rules, block, max(size, state_page))]
        return _attention_specs(mixer, layout, rules, dtype, block)

    # A model has many layers and few kinds of mixers, and a plan weighs many layouts, so each kind is worked out once.
    alike = {mixer: specs(mixer) for mixer in {mixer for mixer, _ in placed}}
    own = [CacheLayer(spec=spec, stage=stage) for mixer, stage in placed for spec in alike[mixer]]
    return (*own, *_draft_layers(draft, layout, dtype, block))


def _draft_layers(draft: DraftLayers, layout: Layout, dtype: Dtype, block: int) -> list[CacheLayer]:
    """The caches of a draft model, which keeps every token and is cut over the same ranks."""
    if not draft.bytes_per_token:
        return []
    each = ceil(draft.bytes_per_token * dtype.bytes / 2 / draft.count / layout.tensor)
    spec = CacheSpec(kind=CacheKind.FULL, block_tokens=block, page_bytes=block * each)
    return [CacheLayer(spec=spec, stage=layout.pipeline - 1)] * draft.count


def attention_block(arch: Architecture, layout: Layout, rules: CacheRules, dtype: Dtype) -> int:
    """Tokens of a block: what the kernel asks for, raised in hybrid models until a page is as large as the largest state."""
    mixers = {layer.mixer for layer in arch.layers}
    states = [
        state_bytes(mixer, layout, arch.dtype, rules.speculative_tokens)
        for mixer in mixers
        if isinstance(mixer, Mamba | LinearAttention)
    ]
    if not states:
        return rules.block_tokens
    per_token = _largest_page_token(arch.layers, layout, dtype)
    if not per_token:
        return rules.block_tokens
    latent = any(isinstance(mixer, LatentAttention) for mixer in mixers)
    align = max(rules.block_tokens, LATENT_HYBRID_ALIGNMENT) if latent else rules.block_tokens
    if rules.state_cached:
        align = lcm(align, rules.state_stride)
    return max(rules.block_tokens, align * ceil(Fraction(max(states), align * per_token)))


def _largest_page_token(layers: tuple[Layer, ...], layout: Layout, dtype: Dtype) -> int:
    """The most bytes that one token takes in any layer that attends."""
    sizes = [
        token_bytes(mixer, layout, dtype)
        for mixer in {layer.mixer for layer in layers}
        if isinstance(mixer, Attention | LatentAttention)
    ]
    return max(sizes, default=0)


def _state_spec(rules: CacheRules, block: int, page: int) -> CacheSpec:
    held = (2 + rules.state_checkpoints if rules.state_cached else 1) + rules.speculative_tokens
    return CacheSpec(kind=CacheKind.STATE, block_tokens=block, page_bytes=page, state_blocks=held)


def _attention_specs(
    mixer: Attention | LatentAttention, layout: Layout, rules: CacheRules, dtype: Dtype, block: int
) -> list[CacheSpec]:
    if isinstance(mixer, LatentAttention):
        size = token_bytes(mixer, layout, dtype, sparse_records=rules.sparse_records)
        return [_latent_spec(block, block * size), *_scorer_specs(mixer.indexer, block, rules)]
    size = token_bytes(mixer, layout, dtype)
    if not size:
        return []
    kind = {Span.FULL: CacheKind.FULL, Span.SLIDING: CacheKind.SLIDING, Span.CHUNKED: CacheKind.CHUNKED}[
        mixer.span
    ]
    own = CacheSpec(kind=kind, block_tokens=block, page_bytes=block * size, window=mixer.window or 0)
    return [own, *_scorer_specs(mixer.indexer, block, rules)]


def _latent_spec(block: int, page: int) -> CacheSpec:
    return CacheSpec(kind=CacheKind.FULL, block_tokens=block, page_bytes=page, stretchable=False)


def _scorer_specs(indexer: Indexer | None, block: int, rules: CacheRules) -> list[CacheSpec]:
    """The cache of the scorer's keys. Where one key stands for a pool of tokens, the pool that is being filled has a ring of its own."""
    if indexer is None:
        return []
    keys = _latent_spec(block, block // indexer.pool * kv_compressed.scorer_key_bytes(indexer))
    if indexer.pool == 1:
        return [keys]
    pools = ceil(Fraction(indexer.pool + rules.speculative_tokens, indexer.pool))
    ring = indexer.pool * 2 ** (pools - 1).bit_length()
    tail = CacheSpec(
        kind=CacheKind.STATE,
        block_tokens=block,
        page_bytes=ring * 2 * indexer.head_dim * 2,
        window=ring,
        state_blocks=1,
        stretchable=False,
    )
    return [keys, tail]


def _drafting(mixer: Attention | LatentAttention) -> Attention | LatentAttention:
    """The mixer of a draft layer: like the model's own, but it keeps every token and has a cache of its own."""
    if isinstance(mixer, Attention):
        return replace(mixer, span=Span.FULL, window=None, shares_cache=False)
    return replace(mixer, compress_ratio=0) if kv_compressed.is_compressed(mixer) else mixer


def _from_page(page: kv_compressed.Page) -> CacheSpec:
    return CacheSpec(
        kind=CacheKind.SLIDING if page.window else CacheKind.FULL,
        block_tokens=page.block_tokens,
        page_bytes=page.bytes,
        window=page.window,
        stretchable=False,
    )


@lru_cache(maxsize=4096)
def kv_bytes_per_token(arch: Architecture, layout: Layout, kv_dtype: Dtype | None = None) -> float:
    """Bytes that one more token adds to all layers on one rank, on the pipeline stage where they are most.

    Layers with a window stop growing, so they do not count, except in a model that has no others.
    """
    rules = CacheRules()
    layers = cache_layers(arch, layout, rules, dtype=cache_dtype(arch, kv_dtype))
    growing = [layer for layer in layers if layer.spec.kind is CacheKind.FULL]
    if not growing:
        growing = [layer for layer in layers if layer.spec.kind is not CacheKind.STATE]
    totals = [0.0] * layout.pipeline
    for layer in growing:
        totals[layer.stage] += layer.spec.page_bytes / layer.spec.block_tokens
    return max(totals) / layout.decode_context
