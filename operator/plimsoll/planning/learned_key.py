"""Under which key a start teaches and a plan learns: the model, the GPU, the engine, and the flags that move memory."""

from __future__ import annotations

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.learned import LearnedKey
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.layout import Layout
from plimsoll.planning.settings import EngineSettings


def learned_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """What must be equal for one start to say something about another: this very model under these flags."""
    return _key(model.digest, gpu, layout, engine, settings)


def class_key(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> LearnedKey:
    """The same for any model of this architecture's kind: weaker, and asked second."""
    return _key(f"class:{model.architecture.name}", gpu, layout, engine, settings)


def _key(model: str, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings) -> LearnedKey:
    words = [
        str(layout),
        f"t{settings.max_num_batched_tokens}",
        f"s{settings.max_num_seqs}",
        *(["eager"] if settings.eager else []),
        *([f"lora{settings.lora.max_loras}x{settings.lora.max_rank}"] if settings.lora else []),
        *([f"{settings.speculation.method}{settings.speculation.tokens}"] if settings.speculation else []),
        *([f"mm{settings.multimodal_items}"] if settings.multimodal_items is not None else []),
    ]
    return LearnedKey(
        model=model, gpu=gpu.name, engine=f"{engine.name}-{engine.version}", flags="-".join(words)
    )
