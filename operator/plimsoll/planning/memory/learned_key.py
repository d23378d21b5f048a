"""The keys under which starts and ramps teach and plans learn: the model, the GPU, the engine, and the flags that matter.

What one start shows is true of the next with the same key. Some of it is true of more, as a comparison of starts shows: how much the
weights of a model grow in memory, whatever version and layout loads them; and how much is neither weights nor cache, whatever the
precision and the length, as long as the layout is the same. What an image that its owner brings shows is true of that image alone.
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
"""In place of flags, in the key of bytes of the whole model on all ranks together."""
LONGEST_NAME: Final = 64
"""The most letters of an image's name that a key has."""


def learned_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """The key for starts of this very model with these very flags, which say everything about one another."""
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
    """The key for all checkpoints of this shape, in any precision, and with any number of tokens and sequences in a step."""
    arch = model.architecture
    return LearnedKey(
        model=f"shape:{codec.digest([arch.name, arch.hidden, len(arch.layers), arch.vocab])}",
        gpu=gpu.name,
        engine=_release(engine),
        flags="-".join([str(layout), *_extras(settings)]),
    )


def whole_key(model: ModelFacts, gpu: Gpu, engine: EngineFacts) -> LearnedKey:
    """The key for the bytes of this checkpoint on this GPU, whatever layout and version loads it."""
    return LearnedKey(model=model.digest, gpu=gpu.name, engine=engine.name + _own(engine), flags=WHOLE)


def speed_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """The key for the speed of this model on this layout. Batch and cache are left out, as the prediction takes them into account."""
    return LearnedKey(
        model=model.digest,
        gpu=gpu.name,
        engine=_release(engine),
        flags="-".join([str(layout), *_extras(settings)]),
    )


def _release(engine: EngineFacts) -> str:
    return f"{engine.name}-{engine.version}{_own(engine)}"


def _own(engine: EngineFacts) -> str:
    """For an image that its owner brings: its name, for people, and a digest that tells it from any other. Else empty."""
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
