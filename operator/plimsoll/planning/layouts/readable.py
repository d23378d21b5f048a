"""GPUs for which the engine has no kernels, and formats of weights and of the cache that none of its kernels can read on a given GPU."""

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
FIRST_NATIVE_FP8: Final = (8, 9)
"""Compute capability of Ada, the first GPUs that compute in FP8. Before it only FlashInfer's kernels read a cache of FP8."""
FLASHINFER_HEADS: Final = frozenset([64, 128, 256, 512])
"""Widths of heads for which FlashInfer has kernels. Only those read a cache of NVFP4."""
FP8_KERNELS_KNOWN: Final = Version(0, 32)
"""From here it is known which kernels read a cache of FP8 before Ada; older versions had others too."""
SCALED_FP8: Final = "fp8_per_token_head"
"""The engine's word for a cache of FP8 with a scale for each token and head. It is as large as one of INT8, which always has these scales;
plain FP8 has one scale for all."""
GAUDI_FP8: Final = "fp8_inc"
SEARCHED_NVFP4: Final = "nvfp4_4over6"
"""A cache of NVFP4 whose scales are searched for, which the writer for older GPUs cannot do."""
_LEAST_CAPABILITY: Final = {
    Dtype.FP8: (8, 0),
    Dtype.NVFP4: (8, 0),
    Dtype.MXFP4: (8, 0),
    Dtype.INT4: (7, 0),
    Dtype.INT8: (7, 5),
}
_WITHOUT_VOLTA: Final = Version(0, 20)
"""From here the engine's images are built with CUDA 13, which makes no code for GPUs before Turing."""
_FIRST_TURING: Final = (7, 5)
_TURING_KNOWN: Final = Version(0, 32)
"""From here it is known which weights in 4 and 8 bits Turing runs; some older versions ran them too."""


def unrun(release: Version | None, gpu: Gpu) -> str | None:
    """Why nothing of the engine's own image runs on the GPU, or None."""
    level = _compute_capability(gpu)
    if level is None or level >= _FIRST_TURING or (release is not None and release < _WITHOUT_VOLTA):
        return None
    return (
        f"the engine's image has kernels from compute capability 7.5 on; {gpu.name} has {gpu.compute} (take an engine.version before "
        f"{_WITHOUT_VOLTA}, or an engine.image that is built for it)"
    )


def unread_weights(quantization: Quantization | None, release: Version | None, gpu: Gpu) -> str | None:
    """Why the GPU cannot run weights of this format, or None."""
    if quantization is None:
        return None
    if gpu.vendor is not Vendor.NVIDIA:
        if quantization.weights is Dtype.NVFP4:
            return f"NVFP4 weights need an NVIDIA GPU; this is {gpu.name}"
        return None
    level = _compute_capability(gpu)
    needed = _LEAST_CAPABILITY.get(quantization.weights)
    if quantization.method in ("awq", "awq_marlin") or _runs_on_turing(quantization, release):
        needed = _FIRST_TURING
    if level is not None and needed is not None and level < needed:
        return f"{quantization.method} weights need compute capability {needed[0]}.{needed[1]}; {gpu.name} has {gpu.compute}"
    return None


def _runs_on_turing(quantization: Quantization, release: Version | None) -> bool:
    """Whether the kernels that widen weights as they read them, which are there for Turing too, are used for this format."""
    if release is not None and release < _TURING_KNOWN:
        return False
    widened = quantization.weights is Dtype.FP8 and quantization.method in ("fp8", "compressed-tensors")
    return widened or quantization.weights is Dtype.NVFP4


def widened(architecture: Architecture, gpu: Gpu) -> str | None:
    """Why the engine would hold all that is not quantized, and the cache, at twice their size on this GPU, which no ledger counts; or None."""
    level = _compute_capability(gpu)
    if not architecture.only_bfloat16 or level is None or level >= LEAST_AMPERE:
        return None
    return (
        f"{architecture.name} is not stable in float16, and {gpu.name} has no bfloat16: the engine falls back on float32, twice as "
        "large and many times slower"
    )


def unread_cache(
    architecture: Architecture, asked: str | None, release: Version | None, gpu: Gpu
) -> str | None:
    """Why the GPU cannot read a cache of the format that is asked for in the engine's words, or None."""
    if asked is None:
        return None
    if asked.startswith("nvfp4"):
        return _unread_nvfp4(architecture, asked, release, gpu)
    if asked == GAUDI_FP8 and gpu.vendor in (Vendor.NVIDIA, Vendor.AMD):
        return f"a cache of {asked} is for Gaudi; {gpu.name} reads fp8"
    return _unread_fp8(architecture, asked, release, gpu) if asked.startswith("fp8") else None


def _unread_fp8(architecture: Architecture, asked: str, release: Version | None, gpu: Gpu) -> str | None:
    """Why no kernel of the GPU reads a cache of FP8 (as of vLLM 0.32), or None. Before Ada none does that is compiled on the spot: those for
    latents, for scales by head and for odd widths."""
    level = _compute_capability(gpu)
    if level is None or level >= FIRST_NATIVE_FP8:
        return None
    here = f"{gpu.name} has {gpu.compute}"
    if asked == SCALED_FP8:
        return f"a cache of {asked} needs compute capability 8.9; {here}"
    known = release is None or release >= FP8_KERNELS_KNOWN
    for layer, _ in architecture.kinds:
        match layer.mixer:
            case LatentAttention():
                return f"latents in FP8 need compute capability 8.9; {here}"
            case Attention(head_dim=size, shares_cache=False) if known:
                if size not in FLASHINFER_HEADS:
                    return (
                        f"heads of {size} are read from a cache of FP8 from compute capability 8.9 on; {here}"
                    )
                if level < LEAST_AMPERE:
                    return f"a cache of FP8 needs compute capability 8.0; {here}"
    return None


def _unread_nvfp4(architecture: Architecture, asked: str, release: Version | None, gpu: Gpu) -> str | None:
    level = _compute_capability(gpu)
    first = level is not None and level[0] == FIRST_BLACKWELL
    early = release is not None and release < NVFP4_CACHE_EVERYWHERE
    if not first and (early or level is None or level < LEAST_AMPERE):
        needed = f"{FIRST_BLACKWELL} before version {NVFP4_CACHE_EVERYWHERE}" if early else "8.0"
        return f"a cache of NVFP4 needs an NVIDIA GPU of compute capability {needed}; {gpu.name} has {gpu.compute}"
    if asked == SEARCHED_NVFP4 and not first:
        return f"a cache of {asked} is written on compute capability {FIRST_BLACKWELL} only; {gpu.name} has {gpu.compute}"
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
        case Attention(head_dim=size, shares_cache=False) if size not in FLASHINFER_HEADS:
            return f"no kernel reads heads of {size} from a cache of NVFP4"
        case Attention(head_dim=64) if not first:
            return f"heads of 64 are read from a cache of NVFP4 {only}"
    return None


def _compute_capability(gpu: Gpu) -> tuple[int, int] | None:
    """The compute capability as numbers that compare; None for GPUs of other vendors, which have none."""
    major, dot, minor = gpu.compute.partition(".")
    return (int(major), int(minor)) if dot and major.isdigit() and minor.isdigit() else None
