"""Every layout worth trying on some devices.

These are all tensor sizes up to eight and some beyond, with pipeline, data, expert and context parallelism, up to a size at which
the model would be spread over far more devices than it needs. The rules and the memory ledger turn layouts down later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from plimsoll.facts.architecture import Architecture, Attention, LatentAttention
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.layouts.rules import Question, Wishes

TENSOR: Final = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 72)
PIPELINE: Final = (1, 2, 3, 4, 6, 8, 16)
DATA: Final = (1, 2, 4, 8, 16, 32, 64)
LEAST_TRIED: Final = 8
"""Layouts of up to so many devices, which is a full node, are always tried."""
SPREAD: Final = 4
"""Larger layouts are tried up to so many times the devices that the weights need: beyond that only the cost grows."""
MOST_TRIED: Final = 64
"""No larger layouts are tried unless the weights alone need more devices."""
USABLE: Final = 0.85
"""Share of a device that weights may fill if a useful cache is to remain."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A layout that was turned down, with the name of the rule and a sentence with its figures."""

    layout: Layout
    rule: str
    message: str


def largest_tried(model: ModelFacts, memory_bytes: int, wishes: Wishes) -> int:
    """Devices of the largest layout that is tried; sizes that the user fixed are tried however large they are."""
    asked = (wishes.tensor or 1) * (wishes.pipeline or 1) * (wishes.data or 1)
    need = ceil(model.weights.total / (memory_bytes * USABLE))
    return max(LEAST_TRIED, asked, need, min(MOST_TRIED, SPREAD * need))


def enumerate_layouts(architecture: Architecture, most: int, question: Question) -> tuple[Layout, ...]:
    """All combinations of up to `most` devices, the smallest first, and of the sizes that the user fixed."""
    wishes = question.wishes
    found: set[Layout] = set()
    # Expert parallelism of a dense model is tried only where the user asks for it, so that a rule refuses it by name.
    spreads = (False, True) if architecture.is_moe or wishes.expert_parallel else (False,)
    for tensor in _sizes(TENSOR, wishes.tensor):
        for pipeline in _sizes(PIPELINE, wishes.pipeline):
            for data in _sizes(DATA if architecture.is_moe else (1, 2), wishes.data):
                gpus = tensor * pipeline * data
                if gpus > most and not _all_fixed(question):
                    continue
                for spread in spreads:
                    if spread and tensor * data == 1:
                        continue
                    base = Layout(tensor=tensor, pipeline=pipeline, data=data, expert_parallel=spread)
                    found.add(base)
                    ways = cache_copies(architecture, tensor)
                    if ways > 1 and pipeline == 1 and data == 1:
                        found.add(replace(base, decode_context=ways))
    return tuple(sorted(found, key=lambda layout: (layout.gpus, layout)))


def cache_copies(architecture: Architecture, tensor: int) -> int:
    """How many tensor ranks hold the same part of the cache: all of them with latent attention, some where KV heads are fewer than ranks."""
    copies = 1
    for layer, _ in architecture.kinds:
        if isinstance(layer.mixer, LatentAttention):
            return tensor
        if isinstance(layer.mixer, Attention) and layer.mixer.kv_heads < tensor:
            copies = max(copies, tensor // layer.mixer.kv_heads)
    return copies


def _sizes(tried: tuple[int, ...], wish: int | None) -> tuple[int, ...]:
    return tried if wish is None or wish in tried else tuple(sorted({*tried, wish}))


def _all_fixed(question: Question) -> bool:
    wishes = question.wishes
    return wishes.tensor is not None and wishes.pipeline is not None and wishes.data is not None
