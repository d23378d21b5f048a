"""From a command line to what an engine gets: its pool out of the memory ledger, its step times out of the planner's constants.

Where no GPU is named, or the model is none that the catalogue knows, the pool and the times are those that were handed in, and
what only a model can refuse (ranks, a context beyond its own) is taken. Memory that is too small ends the start in the engine's own words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from plimsoll.engines.vllm import KV_WORDS
from plimsoll.facts.architecture import Attention, LatentAttention
from plimsoll.facts.engines import EngineFacts, engine_facts
from plimsoll.facts.gpus import GIB, Gpu, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import lookup
from plimsoll.facts.resolve import facts_from_folder
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.ledger import Ledger, Verdict, build_ledger
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.speed.performance import Replica
from plimsoll.simulate.steps import Limits, step_times
from standin.argv import CONFIGURATION, FlagsRefused, Words, read
from standin.told import Told

NEWEST: Final = "0.33.0"
ENGINE: Final = "engine"
"""The container's name in the pods that are rendered."""
TYPICAL_TOKENS: Final = 1024
"""Lengths at which step times are made straight lines."""
TOKEN_BYTES: Final = 128 << 10
"""Of a token in the cache of a model that nothing is known of; only the words of a refusal have it."""
CLOSING: Final = ("--middleware", "plimsoll_runtime.closing.Closing")
"""What the supervisor tells an engine that is to close connections."""
_VERSION: Final = re.compile(r"[:@]v?(\d+\.\d+\.\d+)")


def started(
    argv: Sequence[str],
    *,
    version: str = NEWEST,
    gpu: str | None = None,
    otherwise: Told,
    taken_gib: float = 0.0,
) -> Told:
    """What an engine with these words behind `vllm serve` gets, on a GPU that others have taken so much of; FlagsRefused where it
    ends instead."""
    facts = engine_facts("vllm", version)
    words = read(argv, facts)
    model = _model(words.model) if gpu is not None else None
    told = replace(
        otherwise,
        version=version,
        model=words.text("--served-model-name") or words.model or otherwise.model,
        drain_s=float(words.number("--shutdown-timeout") or 0),
        closes=CLOSING[1] in words.values.get(CLOSING[0], ()),
        cache=_cache(words),
    )
    if gpu is None or model is None:
        return replace(told, limits=_limits(words, otherwise.limits))
    _held_to(model, words)
    return _weighed(told, words, facts, model, gpu=gpu_named(gpu), taken_gib=taken_gib)


def told_of(pod: Mapping[str, Any], otherwise: Told, gpu: str | None = None) -> Told | None:
    """Of a pod as the API server has it: its engine's image and arguments, behind a supervisor's too. None where they would
    not start."""
    containers = pod["spec"]["containers"]
    engine = next((one for one in containers if one.get("name") == ENGINE), containers[0])
    words = [*(engine.get("command") or ()), *(engine.get("args") or ())]
    if "--" in words:
        own, words = words[: words.index("--")], words[words.index("--") + 1 :]
        words = [*words, *(CLOSING if "--close-connections" in own else ())]
    if "serve" in words:
        words = words[words.index("serve") + 1 :]
    found = _VERSION.search(str(engine.get("image", "")))
    try:
        version = found[1] if found else otherwise.version
        return started(words, version=version, gpu=gpu, otherwise=otherwise)
    except FlagsRefused:
        return None


def _model(name: str | None) -> ModelFacts | None:
    if name is None:
        return None
    if (Path(name) / "config.json").is_file():
        return facts_from_folder(Path(name))
    return lookup(name)


def _cache(words: Words) -> dict[str, str]:
    """Labels of cache_config_info that are flags as they were given."""
    given = {
        "cache_dtype": words.text("--kv-cache-dtype"),
        "gpu_memory_utilization": words.text("--gpu-memory-utilization"),
        "num_gpu_blocks_override": words.text("--num-gpu-blocks-override"),
        "user_specified_block_size": None if words.text("--block-size") is None else "True",
        "kv_cache_memory_bytes": words.text("--kv-cache-memory-bytes"),
    }
    return {label: value for label, value in given.items() if value is not None}


def _limits(words: Words, otherwise: Limits, token_bytes: float = TOKEN_BYTES) -> Limits:
    """The pool as it is handed in, and what the words change of the rest."""
    block = words.number("--block-size") or otherwise.block_size
    blocks = words.number("--num-gpu-blocks-override") or otherwise.kv_tokens // block
    sequences = (
        words.number("--max-num-active-seqs") or words.number("--max-num-seqs") or otherwise.max_num_seqs
    )
    longest = words.number("--max-model-len") or min(otherwise.max_model_len, blocks * block)
    if longest > blocks * block:
        raise _too_small(longest, blocks * block, token_bytes, blocks * block * token_bytes)
    return Limits(
        blocks=blocks,
        block_size=block,
        max_num_seqs=sequences,
        max_num_batched_tokens=words.number("--max-num-batched-tokens")
        or max(otherwise.max_num_batched_tokens, sequences),
        max_model_len=longest,
        watermark_blocks=int((words.share("--watermark") or 0.0) * blocks),
        max_queued=words.number("--max-num-queued-reqs"),
        prefix_caching=words.on.get("--enable-prefix-caching", otherwise.prefix_caching),
    )


def _held_to(model: ModelFacts, words: Words) -> None:
    """What the configuration is held to before anything is loaded."""
    heads = max(
        (
            one.mixer.heads
            for one in model.architecture.layers
            if isinstance(one.mixer, Attention | LatentAttention)
        ),
        default=0,
    )
    ranks = words.number("--tensor-parallel-size") or 1
    if heads % ranks:
        raise _refused(
            f"Total number of attention heads ({heads}) must be divisible by tensor parallel size ({ranks})."
        )
    asked, own = words.number("--max-model-len") or 0, model.architecture.max_positions
    if asked > own and not words.has("--hf-overrides"):
        raise _refused(
            f"User-specified max_model_len ({asked}) is greater than the derived max_model_len (max_position_embeddings={own} "
            "or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var "
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1."
        )


def _weighed(
    told: Told, words: Words, facts: EngineFacts, model: ModelFacts, *, gpu: Gpu, taken_gib: float
) -> Told:
    layout = Layout(
        tensor=words.number("--tensor-parallel-size") or 1,
        pipeline=words.number("--pipeline-parallel-size") or 1,
        data=words.number("--data-parallel-size") or 1,
        expert_parallel=words.on.get("--enable-expert-parallel", False),
    )
    settings = _settings(words, facts, model, gpu)
    ledger = build_ledger(model=model, gpu=gpu, layout=layout, engine=facts, settings=settings)
    capacity = ledger.capacity
    total, share = ledger.device_bytes / GIB, settings.utilization
    free = total - taken_gib
    if free < total * share:
        raise _refused(
            f"Free memory on device cuda:0 ({free:.2f}/{total:.2f} GiB) on startup is less than desired GPU memory utilization "
            f"({share:g}, {total * share:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
        )
    if capacity is None or ledger.verdict is Verdict.DOES_NOT_FIT:
        raise _no_room(ledger, settings)
    base = Limits(
        blocks=max(1, round(capacity.blocks.mid)) * layout.data,
        block_size=capacity.block_size,
        max_num_seqs=settings.max_num_seqs * layout.data,
        max_num_batched_tokens=settings.max_num_batched_tokens * layout.data,
        max_model_len=settings.max_model_len,
        prefix_caching=settings.prefix_caching,
    )
    limits = _limits(words, base, capacity.bytes_per_token)
    replica = Replica.of(
        model=model,
        gpu=gpu,
        layout=layout,
        engine=facts,
        settings=settings,
        kv_tokens=float(limits.kv_tokens),
    )
    typical = min(TYPICAL_TOKENS, settings.max_model_len)
    times = step_times(replica, prompt_tokens=typical, context=float(typical))
    return replace(told, limits=limits, times=times)


def _settings(words: Words, facts: EngineFacts, model: ModelFacts, gpu: Gpu) -> EngineSettings:
    longest = words.number("--max-model-len") or model.architecture.max_positions
    tokens, sequences = facts.batch_defaults(gpu.memory_bytes, gpu.architecture, max_model_len=longest)
    kinds = {word: dtype for dtype, word in KV_WORDS.items()}
    asked = words.text("--kv-cache-dtype")
    sequences = words.number("--max-num-seqs") or sequences
    return EngineSettings(
        max_model_len=longest,
        max_num_seqs=sequences,
        max_num_batched_tokens=words.number("--max-num-batched-tokens") or max(tokens, sequences),
        utilization=words.share("--gpu-memory-utilization") or facts.utilization_default,
        kv_cache_bytes=words.number("--kv-cache-memory-bytes"),
        kv_dtype=kinds.get(asked) if asked else None,
        block_size=words.number("--block-size"),
        prefix_caching=words.on.get("--enable-prefix-caching", facts.prefix_caching_default),
        eager=words.on.get("--enforce-eager", False),
    )


def _no_room(ledger: Ledger, settings: EngineSettings) -> FlagsRefused:
    if ledger.left.mid <= 0 or ledger.capacity is None:
        return _refused(
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
        )
    held = ledger.capacity
    return _too_small(settings.max_model_len, int(held.tokens.mid), held.bytes_per_token, ledger.left.mid)


def _too_small(longest: int, tokens: int, token_bytes: float, there: float) -> FlagsRefused:
    return _refused(
        f"To serve at least one request with the model's max seq len ({longest}), ({longest * token_bytes / GIB:.2f} GiB KV cache "
        f"is needed, which is larger than the available KV cache memory ({there / GIB:.2f} GiB). Based on the available memory, "
        f"the estimated maximum model length is {tokens}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` "
        "when initializing the engine."
    )


def _refused(said: str) -> FlagsRefused:
    return FlagsRefused(f"ValueError: {said}\n", CONFIGURATION)
