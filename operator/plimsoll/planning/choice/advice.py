"""What the user could change to fit, or to serve faster or cheaper. It is told beside the plan and never done unasked.

The figures are bounds, as if a step did nothing but read the weights once. They say what a change is worth at best, not what it
will be worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Final

from plimsoll.api.quantity import format_gib
from plimsoll.facts.architecture import Quantization
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.weights import weights_from_architecture
from plimsoll.planning.ask.quantize import ONLINE
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.candidate import cache_of
from plimsoll.planning.layouts.every import USABLE
from plimsoll.planning.plan import Advice, PlanSet
from plimsoll.planning.settle.sequences import held_sequences

NEARLY: Final = 0.9
"""The cache is what limits from this share of the sequences on that it holds."""
WORTH: Final = 1.15
"""How many times smaller weights must become for a format to be worth telling."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A format of weights that may be advised, and what it takes to have it."""

    name: str
    quantization: Quantization
    takes: str


_FORMATS: Final = (
    _Format(
        "FP8 weights",
        ONLINE["fp8_per_tensor"],
        "quantization.method: fp8_per_tensor (done while loading), or an FP8 checkpoint; answers change little",
    ),
    _Format(
        "NVFP4 weights",
        Quantization(method="modelopt_fp4", weights=Dtype.NVFP4, activations=Dtype.NVFP4, group_size=16),
        "an NVFP4 checkpoint; check the answers",
    ),
    _Format(
        "4-bit weights (AWQ or GPTQ)",
        Quantization(method="awq", weights=Dtype.INT4, group_size=128),
        "an AWQ or GPTQ checkpoint of the model; check the answers",
    ),
)


def advise(task: Task, gpu: Gpu, shown: PlanSet, hints: tuple[str, ...]) -> tuple[Advice, ...]:
    """Advice about the first set, or about the nearest layout where nothing fits. `hints` come from the presets."""
    return (
        *_weights(task, gpu, shown),
        *_cache(task, gpu, shown),
        *(Advice(topic="preset", message=hint, takes="") for hint in hints),
    )


def _weights(task: Task, gpu: Gpu, shown: PlanSet) -> Iterator[Advice]:
    """Smaller formats of the weights that pay on this GPU."""
    own = task.model.architecture.quantization
    if own is not None and own.weights.bits <= Dtype.INT4.bits + 1:
        return
    now = task.model.weights.total
    for option in _FORMATS:
        if not _has_kernels(option.quantization, gpu) or (
            own is not None and option.quantization.weights.bits >= own.weights.bits
        ):
            continue
        then = quantized(task.model, option.quantization).weights.total
        if now < then * WORTH:
            continue
        device = shown.hardware.memory_bytes * USABLE
        before, after = ceil(now / device), ceil(then / device)
        gain = f"{format_gib(then)} of weights instead of {format_gib(now)}"
        if after < before:
            gain += f", at least {after} instead of {before} {shown.hardware}"
        yield Advice(
            topic="quantization",
            message=f"{option.name}: {gain}; {'decoding' if task.intent.generates else 'the engine'} reads up to {now / then:.1f} times less a step",
            takes=option.takes,
        )


def _cache(task: Task, gpu: Gpu, shown: PlanSet) -> Iterator[Advice]:
    """An 8-bit cache, where the cache limits how many requests run."""
    quantization = task.model.architecture.quantization
    capacity = cache_of(shown.ledger)
    already = shown.settings.kv_dtype is not None or (
        quantization is not None and quantization.kv_cache is not None
    )
    if already or capacity is None or Dtype.FP8 not in gpu.flops:
        return
    held = held_sequences(capacity) * shown.layout.data
    limited = shown.performance is not None and shown.performance.bound == "cache"
    if not limited and shown.max_concurrency < held * NEARLY:
        return
    yield Advice(
        topic="kv-dtype",
        message=f"the cache limits how many requests run ({shown.max_concurrency}); an FP8 cache holds about twice as many tokens",
        takes="memory.kvCacheDtype: fp8; long contexts may lose some precision, so check the answers",
    )


@lru_cache(64)
def quantized(model: ModelFacts, quantization: Quantization) -> ModelFacts:
    """The model in another format of weights. Remembered, since working out its bytes goes over every layer and each plan asks for it."""
    architecture = replace(model.architecture, quantization=quantization)
    return replace(model, architecture=architecture, weights=weights_from_architecture(architecture))


def _has_kernels(quantization: Quantization, gpu: Gpu) -> bool:
    """Whether a format pays on a GPU: it does where it is native, and 4-bit integers do on NVIDIA and AMD GPUs without native FP4."""
    if quantization.weights is Dtype.INT4:
        return gpu.vendor in (Vendor.NVIDIA, Vendor.AMD) and Dtype.NVFP4 not in gpu.flops
    return quantization.weights in gpu.flops
