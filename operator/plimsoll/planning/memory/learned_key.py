"""Under which keys a start or a ramp teaches and a plan learns: the model, the GPU, the engine, and the flags that matter.

What one start shows holds for the next of the same words. Parts of it hold further, as starts of one model side by side
show: how its weights swell in memory whatever version and layout loads them, and what is neither weights nor cache whatever
the precision and the length, as long as the layout is the same. What an image of its owner's shows holds
for nobody else.
"""

from __future__ import annotations

from typing import Final

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.learned_rows import OWN, LearnedKey
from plimsoll.facts.model import ModelFacts
from plimsoll.planning import codec
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.settings import EngineSettings

WHOLE: Final = "whole"
"""In place of flags: bytes of the whole model, all ranks together."""
LONGEST_NAME: Final = 64
"""Letters of an image's last part."""


def learned_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """What must be equal for one start to say everything about another: this very model under these flags."""
    flags = [
        str(layout),
        f"t{settings.max_num_batched_tokens}",
        f"s{settings.max_num_seqs}",
        *_extras(settings),
    ]
    return LearnedKey(model=model.digest, gpu=gpu.name, engine=_release(engine), flags="-".join(flags))


def shape_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """For any checkpoint of this shape, in whatever precision and with however many tokens and sequences a step."""
    arch = model.architecture
    return LearnedKey(
        model=f"shape:{codec.digest([arch.name, arch.hidden, len(arch.layers), arch.vocab])}",
        gpu=gpu.name,
        engine=_release(engine),
        flags="-".join([str(layout), *_extras(settings)]),
    )


def whole_key(model: ModelFacts, gpu: Gpu, engine: EngineFacts) -> LearnedKey:
    """For the bytes of this checkpoint on this GPU, whatever layout and version loads it."""
    return LearnedKey(model=model.digest, gpu=gpu.name, engine=engine.name + _own(engine), flags=WHOLE)


def speed_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """For how fast this model answers on this layout: batch and cache are reckoned with, what cannot be is part of the key."""
    return LearnedKey(
        model=model.digest,
        gpu=gpu.name,
        engine=_release(engine),
        flags="-".join([str(layout), *_extras(settings)]),
    )


def _release(engine: EngineFacts) -> str:
    return f"{engine.name}-{engine.version}{_own(engine)}"


def _own(engine: EngineFacts) -> str:
    """Of an owner's image what a person knows it by, and what tells it from any other."""
    if not engine.image:
        return ""
    name = engine.image.rpartition("/")[2].partition("@")[0][:LONGEST_NAME]
    return f"{OWN}{name}#{codec.digest(engine.image)}"


def _extras(settings: EngineSettings) -> list[str]:
    return [
        *(["eager"] if settings.eager else []),
        *([f"lora{settings.lora.max_loras}x{settings.lora.max_rank}"] if settings.lora else []),
        *([f"{settings.speculation.method}{settings.speculation.tokens}"] if settings.speculation else []),
        *([f"mm{settings.multimodal_items}"] if settings.multimodal_items is not None else []),
    ]
