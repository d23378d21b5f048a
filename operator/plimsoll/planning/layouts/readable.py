"""Formats of weights and of the cache that no kernel of the engine can read on a given GPU."""

from __future__ import annotations

from typing import Final

from plimsoll.facts.architecture import Architecture, Attention, LatentAttention, Mixer, Quantization
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_versions import Version
from plimsoll.facts.gpus import Gpu, Vendor

NVFP4_CACHE_EVERYWHERE: Final = Version(0, 30)
"""From here GPUs from Ampere on read a cache of NVFP4. Version 0.29 ends at its start on all but the first Blackwells; 0.32 was seen to
read it."""
FIRST_BLACKWELL: Final = 10
"""Major compute capability of B200 and its like, which have kernels of their own for a cache of NVFP4."""
LEAST_AMPERE: Final = (8, 0)
"""Compute capability of the first Ampere GPUs."""
_LEAST_CAPABILITY: Final = {
    Dtype.FP8: (8, 0),
    Dtype.NVFP4: (8, 0),
    Dtype.MXFP4: (8, 0),
    Dtype.INT4: (7, 0),
    Dtype.INT8: (7, 5),
}


def unread_weights(quantization: Quantization | None, gpu: Gpu) -> str | None:
    """Why the GPU cannot run weights of this format, or None."""
    if quantization is None:
        return None
    if gpu.vendor is not Vendor.NVIDIA:
        if quantization.weights is Dtype.NVFP4:
            return f"NVFP4 weights need an NVIDIA GPU; this is {gpu.name}"
        return None
    level = _compute_capability(gpu)
    needed = _LEAST_CAPABILITY.get(quantization.weights)
    if quantization.method in ("awq", "awq_marlin"):
        needed = (7, 5)
    if level is not None and needed is not None and level < needed:
        return f"{quantization.method} weights need compute capability {needed[0]}.{needed[1]}; {gpu.name} has {gpu.compute}"
    return None


def unread_cache(
    architecture: Architecture, asked: Dtype | None, release: Version | None, gpu: Gpu
) -> str | None:
    """Why the GPU cannot read a cache of the format that is asked for, or None."""
    if asked is not Dtype.NVFP4:
        return None
    level = _compute_capability(gpu)
    first = level is not None and level[0] == FIRST_BLACKWELL
    early = release is not None and release < NVFP4_CACHE_EVERYWHERE
    if not first and (early or level is None or level < LEAST_AMPERE):
        needed = f"{FIRST_BLACKWELL} before version {NVFP4_CACHE_EVERYWHERE}" if early else "8.0"
        return f"a cache of NVFP4 needs an NVIDIA GPU of compute capability {needed}; {gpu.name} has {gpu.compute}"
    return next(
        filter(None, (_unread_layer(layer.mixer, gpu, first=first) for layer, _ in architecture.kinds)), None
    )


def _unread_layer(mixer: Mixer | None, gpu: Gpu, *, first: bool) -> str | None:
    """Why no kernel reads a cache of NVFP4 of this layer (as of vLLM 0.32), or None."""
    only = f"on compute capability {FIRST_BLACKWELL} only; {gpu.name} has {gpu.compute}"
    match mixer:
        case LatentAttention(indexer=None):
            return "no kernel of latent attention reads a cache of NVFP4 unless a scorer picks its tokens"
        case LatentAttention() if not first:
            return f"latent attention reads a cache of NVFP4 {only}"
        case Attention(head_dim=keys, v_head_dim=values) if keys != values:
            return f"a cache of NVFP4 holds keys and values of one width; these have {keys} and {values}"
        case Attention(head_dim=64) if not first:
            return f"heads of 64 are read from a cache of NVFP4 {only}"
    return None


def _compute_capability(gpu: Gpu) -> tuple[int, int] | None:
    """The compute capability as numbers that compare; None for GPUs of other vendors, which have none."""
    major, dot, minor = gpu.compute.partition(".")
    return (int(major), int(minor)) if dot and major.isdigit() and minor.isdigit() else None
