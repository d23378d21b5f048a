"""What the user could change to fit, or to serve faster or cheaper: told beside the plan, never done unasked.

Figures are bounds of the same kind as those that spare ledgers: weights read once a step. They say what a change is worth at
best, not what it will be.
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
WORTH: Final = 1.15
"""A change that promises less is not worth a word."""


@dataclass(frozen=True, slots=True)
class _Format:
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
    """About the leading set, or the nearest layout where nothing fits; `hints` are the presets' own words."""
    return (
        *_weights(task, gpu, shown),
        *_cache(task, gpu, shown),
        *(Advice(topic="preset", message=hint, takes="") for hint in hints),
    )


def _weights(task: Task, gpu: Gpu, shown: PlanSet) -> Iterator[Advice]:
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
    """An 8-bit cache where the cache is what limits."""
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
    """The bytes of a model follow from its architecture alone, layer by layer; each plan asks what other formats would take."""
    architecture = replace(model.architecture, quantization=quantization)
    return replace(model, architecture=architecture, weights=weights_from_architecture(architecture))


def _has_kernels(quantization: Quantization, gpu: Gpu) -> bool:
    """Formats that pay on a GPU: native ones, and 4-bit integers where they are unpacked on the way."""
    if quantization.weights is Dtype.INT4:
        return gpu.vendor in (Vendor.NVIDIA, Vendor.AMD) and Dtype.NVFP4 not in gpu.flops
    return quantization.weights in gpu.flops
