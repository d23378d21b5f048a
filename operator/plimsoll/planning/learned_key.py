"""The word under which one start teaches another: what moves memory, and nothing that does not."""

from __future__ import annotations

from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.learned import LearnedKey
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.layout import Layout
from plimsoll.planning.settings import EngineSettings


def learned_key(
    model: ModelFacts, gpu: Gpu, engine: EngineFacts, layout: Layout, settings: EngineSettings
) -> LearnedKey:
    """Exact: this model, this GPU, this engine version, these flags."""
    return LearnedKey(
        model=model.digest,
        gpu=gpu.name,
        engine=f"{engine.name}-{engine.version}",
        flags=memory_flags(layout, settings),
    )


def memory_flags(layout: Layout, settings: EngineSettings) -> str:
    """Layout and settings that move a ledger term; length and utilization do not (they only share out what is left)."""
    words = [str(layout), f"t{settings.max_num_batched_tokens}", f"s{settings.max_num_seqs}"]
    if settings.kv_dtype is not None:
        words.append(f"kv-{settings.kv_dtype}")
    if settings.eager:
        words.append("eager")
    if settings.lora is not None:
        words.append(f"lora{settings.lora.max_loras}x{settings.lora.max_rank}")
    if settings.speculation is not None:
        words.append(f"{settings.speculation.method}{settings.speculation.tokens}")
    if settings.multimodal_items is not None:
        words.append(f"mm{settings.multimodal_items}")
    return " ".join(words)
