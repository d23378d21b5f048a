"""What an engine version, its flags and the device decide about the cache: block sizes, windows, and how the log counts tokens.

These rules changed from version to version in ways that change the number of tokens by tens of percent, so each has its version here,
as read in the engine's releases. They go by attention class and GPU class, and never by a model's name.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from plimsoll.facts.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    LinearAttention,
    Mamba,
    Mixer,
    Span,
)
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import Version, release
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import NO_DRAFT, CacheRules, DraftLayers, cache_dtype, cache_layers
from plimsoll.planning.memory.kv_groups import CachePlan, plan_cache
from plimsoll.planning.settings import EngineSettings, Speculation

WINDOWS_FREED: Final = Version(0, 9, 2)
"""Before this version layers with a window kept every token, as if they had none."""
STATES_CACHED_BY_DEFAULT: Final = Version(0, 28)
"""Before this version, as in 0.27.1, models with states had prefix caching only where it was asked for."""
SETTLED_LATE: Final = Version(0, 26)
"""From this version on windows keep blocks for every batch in flight, of which there are two with asynchronous scheduling."""
PREFILL_CHECKPOINTS: Final = Version(0, 33)
"""From this version on the kernels of newer GPUs store states in the middle of a prefill, at multiples of their chunk, which takes one more
block."""
SCAN_CHECKPOINTS: Final = Version(0, 32)
"""From this version on, if not earlier, the scan of Mamba 2 does so too, on every GPU and at any token."""
FLASH_LATENT: Final = Version(0, 14)
"""From this version on the kernel that Hopper takes first for latent attention has blocks of any multiple of 16 tokens; it reads no cache of
8 bits."""
FLASHINFER_LATENT: Final = Version(0, 16)
"""From this version on the first Blackwells have blocks of 64 tokens for latent attention, before of 128."""
WIDE_HEADS_IN_TILES: Final = Version(0, 32)
"""From this version on, if not earlier, Hopper reads heads of 512 from a cache of 8 bits in tiles of 64 tokens."""
WIDEST: Final = 512
"""Width of those heads."""
TILE: Final = 64
"""Tokens of such a tile."""


def version_of(engine: EngineFacts) -> Version:
    """The release whose rules hold; where the version's text names none, that of the engine's facts."""
    return engine.release or _known(engine.facts_version)


_known: Final = cache(release)


def prefix_caching_by_default(arch: Architecture, engine: EngineFacts) -> bool:
    """Whether prefix caching is on by default. Models with states got it later than others, and those that have only states never did."""
    if arch.is_hybrid:
        attends = any(isinstance(layer.mixer, Attention | LatentAttention) for layer, _ in arch.kinds)
        return attends and version_of(engine) >= STATES_CACHED_BY_DEFAULT
    return engine.prefix_caching_default


def cache_rules(
    arch: Architecture, *, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> CacheRules:
    """The rules of this engine version for a model on a device."""
    version = version_of(engine)
    batches = 1
    if version >= SETTLED_LATE:
        batches = 2 if layout.pipeline == 1 else layout.pipeline + 1
    stride = _checkpoint_stride(arch, gpu, version) if settings.prefix_caching else 0
    return CacheRules(
        block_tokens=settings.block_size
        or _kernel_block(arch, gpu, version, engine, cache_dtype(arch, settings.kv_dtype)),
        state_cached=settings.prefix_caching and arch.is_hybrid,
        state_stride=max(1, stride),
        state_checkpoints=1 if stride else 0,
        speculative_tokens=settings.speculation.tokens if settings.speculation else 0,
        in_flight_tokens=batches * settings.max_num_batched_tokens,
        request_line=engine.kv_tokens_line == "request",
        sparse_records=not (gpu.architecture == "blackwell" and gpu.compute.startswith("10")),
    )


def _checkpoint_stride(arch: Architecture, gpu: Gpu, version: Version) -> int:
    """Tokens between the states that a prefill can store: 1 with a scan, 64 with a gate for each head, 16 with a gate for each channel; 0
    where it stores none."""
    if version >= SCAN_CHECKPOINTS and any(_is_scan(layer.mixer) for layer in arch.layers):
        return 1
    mixers = [layer.mixer for layer in arch.layers if isinstance(layer.mixer, LinearAttention)]
    if not mixers or version < PREFILL_CHECKPOINTS or gpu.architecture not in {"hopper", "blackwell"}:
        return 0
    return 16 if mixers[0].split_conv else 64


def _has_widest(arch: Architecture) -> bool:
    return any(
        isinstance(layer.mixer, Attention) and layer.mixer.head_dim == WIDEST for layer, _ in arch.kinds
    )


def _is_scan(mixer: Mixer | None) -> bool:
    """Whether a mixer is Mamba 2; Mamba 1 and short convolutions have other kernels."""
    return isinstance(mixer, Mamba) and mixer.dt_rank is None and mixer.state_size > 0


def _kernel_block(arch: Architecture, gpu: Gpu, version: Version, engine: EngineFacts, dtype: Dtype) -> int:
    """Tokens of a block that the attention kernel asks for. Kernels of latent attention have block sizes of their own, as have those for the
    widest heads with a cache of 8 bits on Hopper."""
    mixers = [layer.mixer for layer in arch.layers if isinstance(layer.mixer, LatentAttention)]
    if gpu.vendor is not Vendor.NVIDIA:
        return engine.default_block_size
    if not mixers:
        in_tiles = (
            version >= WIDE_HEADS_IN_TILES
            and gpu.architecture == "hopper"
            and dtype is Dtype.FP8
            and _has_widest(arch)
        )
        return max(engine.default_block_size, TILE if in_tiles else 0)
    if any(mixer.indexer is not None for mixer in mixers):
        return 64
    if gpu.architecture == "hopper":
        return 64 if version < FLASH_LATENT or dtype is Dtype.FP8 else 16
    if gpu.architecture == "blackwell" and gpu.compute.startswith("10"):
        return 128 if version < FLASHINFER_LATENT else 64
    return engine.default_block_size


def cache_plan(
    arch: Architecture, *, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> CachePlan:
    """The groups and blocks that this engine would make of the model under this layout."""
    rules = cache_rules(arch, gpu=gpu, layout=layout, engine=engine, settings=settings)
    dtype = cache_dtype(arch, settings.kv_dtype)
    if version_of(engine) < WINDOWS_FREED:
        arch = _without_windows(arch)
    layers = cache_layers(arch, layout, rules, dtype=dtype, draft=draft_layers(arch, settings.speculation))
    return plan_cache(layers, rules, stages=layout.pipeline, decode_context=layout.decode_context)


def draft_layers(arch: Architecture, speculation: Speculation | None) -> DraftLayers:
    """Layers that speculative decoding adds to the cache: those of the draft model where it is known, else one EAGLE layer, or the draft
    layers of the checkpoint."""
    if speculation is None or speculation.method == "ngram":
        return NO_DRAFT
    if speculation.method == "mtp":
        return DraftLayers(count=speculation.draft_layers or max(1, arch.mtp_layers))
    if speculation.draft_kv_bytes_per_token:
        return DraftLayers(
            count=max(1, speculation.draft_layers), bytes_per_token=speculation.draft_kv_bytes_per_token
        )
    return DraftLayers(count=1) if speculation.method.startswith("eagle") else NO_DRAFT


def _without_windows(arch: Architecture) -> Architecture:
    layers = tuple(
        replace(layer, mixer=replace(layer.mixer, span=Span.FULL, window=None))
        if isinstance(layer.mixer, Attention)
        else layer
        for layer in arch.layers
    )
    return replace(arch, layers=layers)
