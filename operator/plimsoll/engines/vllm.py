"""vLLM's command line: every decided setting and every field of the resource, as flags of the version at hand.

Each concern is a function that yields flags in the order in which a person would write them. Flags that the version does not know are
left out and reported. What the plan decided is written even where it equals the engine's default, so that a later release with another
default does not change a running fleet. `vllm_groups` has the further flags of pods in a group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from plimsoll.api.v1alpha1.model import ModelSpec, SecretKey
from plimsoll.api.v1alpha1.source import HUBS
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines import vllm_groups
from plimsoll.engines.adapters import adapter_token, come_and_go
from plimsoll.engines.command import (
    PORT,
    TEMPLATE_FILE,
    TLS_FOLDER,
    EngineCommand,
    Member,
    Unsaid,
)
from plimsoll.engines.sources import (
    DRAFT_FOLDER,
    MODEL_FOLDER,
    TOKENIZER_FOLDER,
    TOKENS,
    adapter_folder,
    word_of,
)
from plimsoll.engines.timing import drain_seconds
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import GIB
from plimsoll.planning.ask.features import SPECULATION_METHODS
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import PlanSet
from plimsoll.planning.settings import EngineSettings

KV_WORDS: Final = {
    Dtype.FP8: "fp8",
    Dtype.BFLOAT16: "bfloat16",
    Dtype.FLOAT16: "float16",
    Dtype.NVFP4: "nvfp4",
    Dtype.INT8: "int8_per_token_head",
    Dtype.INT4: "int4_per_token_head",
}
TASKS: Final = {
    "generate": ("generate", "none"),
    "embed": ("pooling", "embed"),
    "rerank": ("pooling", "classify"),
    "classify": ("pooling", "classify"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """All that the flags of a pod are made from."""

    spec: LLMDeploymentSpec
    settings: EngineSettings
    layout: Layout
    on_cpu: bool
    grouped: bool
    """Whether the replica has several pods."""
    answers: bool
    """Whether the pod answers requests."""
    drain: int
    """Seconds for running answers to finish."""


Flag = tuple[str, ...]
"""A flag and the words that follow it."""


def command(
    spec: LLMDeploymentSpec, chosen: PlanSet, facts: EngineFacts, member: Member | None = None
) -> EngineCommand:
    """The command of a set's pod. `member` is None where a replica is one pod."""
    told = _Told(
        spec=spec,
        settings=chosen.settings,
        layout=chosen.layout,
        on_cpu=chosen.hardware.vendor == "cpu",
        grouped=member is not None,
        answers=member is None or member.leads,
        drain=drain_seconds(spec, chosen),
    )
    environment, secrets = _environment(told), _secrets(spec)
    worker = vllm_groups.ray_worker(spec, member)
    if worker is not None:
        return replace(worker, env=environment, secret_env=secrets)
    unsaid: list[Unsaid] = []
    words = _known(facts, (flag for concern in CONCERNS for flag in concern(told)), unsaid)
    placed: list[str] = []
    if member is not None:
        mode = vllm_groups.data_mode(spec, chosen.layout, member.pods, mixture=member.mixture)
        placed = _known(facts, vllm_groups.words(spec, mode, member), unsaid)
    return EngineCommand(
        argv=("vllm", "serve", model_word(spec), *words, *spec.engine.extra_args),
        placed=tuple(placed),
        before=vllm_groups.before(spec, member),
        member=vllm_groups.unsaid_member(spec, member),
        env=environment,
        secret_env=secrets,
        port=PORT,
        unsaid=tuple(unsaid),
        takes_middleware=told.answers and _knows(facts, "--middleware"),
    )


def _known(facts: EngineFacts, flags: Iterable[Flag | Unsaid], unsaid: list[Unsaid]) -> list[str]:
    """The words of the flags that the version knows; the others are added to `unsaid`."""
    words: list[str] = []
    for flag in flags:
        if isinstance(flag, Unsaid):
            unsaid.append(flag)
        elif _knows(facts, flag[0]):
            words += flag
        else:
            unsaid.append(Unsaid(flag=" ".join(flag), why=f"{facts.name} {facts.version} has no such flag"))
    return words


def _knows(facts: EngineFacts, spelling: str) -> bool:
    match = facts.flags.find(spelling)
    return match is not None and not match.abbreviated


def model_word(spec: LLMDeploymentSpec) -> str:
    """The word by which the engine finds the model."""
    weights = spec.storage.weights
    if weights is not None and weights.image is not None and spec.model.scheme in HUBS:
        return MODEL_FOLDER
    return word_of(spec.model.source, MODEL_FOLDER)


def served_names(model: ModelSpec) -> tuple[str, ...]:
    """The names by which requests may ask for the model."""
    return model.served_names or (model.location.rstrip("/"),)


def _model(told: _Told) -> Iterator[Flag]:
    model = told.spec.model
    yield ("--served-model-name", *served_names(model))
    yield "--port", str(PORT)
    if model.revision is not None and model.scheme in HUBS:
        yield "--revision", model.revision
    if model.task is not None:
        runner, convert = TASKS[model.task]
        yield "--runner", runner
        if convert != "none":
            yield "--convert", convert
    if model.tokenizer is not None:
        yield "--tokenizer", word_of(model.tokenizer, TOKENIZER_FOLDER)
    if model.trust_remote_code:
        yield ("--trust-remote-code",)
    if model.load_format is not None:
        yield "--load-format", model.load_format
    if told.spec.quantization.method is not None:
        yield "--quantization", told.spec.quantization.method


def _parallel(told: _Told) -> Iterator[Flag]:
    layout, topology = told.layout, told.spec.topology
    if layout.tensor > 1:
        yield "--tensor-parallel-size", str(layout.tensor)
    if layout.pipeline > 1:
        yield "--pipeline-parallel-size", str(layout.pipeline)
    if layout.data > 1:
        yield "--data-parallel-size", str(layout.data)
    if layout.decode_context > 1:
        yield "--decode-context-parallel-size", str(layout.decode_context)
    if layout.expert_parallel:
        yield ("--enable-expert-parallel",)
        if topology.expert_balancing:
            yield ("--enable-eplb",)
    if topology.executor is not None and layout.gpus > 1 and not told.grouped:
        yield "--distributed-executor-backend", topology.executor


def _memory(told: _Told) -> Iterator[Flag]:
    settings = told.settings
    if not told.on_cpu:
        if settings.kv_cache_bytes is not None:
            yield "--kv-cache-memory-bytes", str(settings.kv_cache_bytes)
        # Written with a fixed cache too, as the engine refuses to start where less than this share of the device is free.
        yield "--gpu-memory-utilization", _decimal(Fraction(str(settings.utilization)))
    asked = told.spec.memory.kv_cache_dtype
    word = asked if asked is not None else KV_WORDS.get(settings.kv_dtype) if settings.kv_dtype else None
    if word is not None and word != "auto":
        yield "--kv-cache-dtype", word
    if settings.block_size is not None:
        yield "--block-size", str(settings.block_size)
    if settings.kv_offload_bytes:
        yield "--kv-offloading-size", _decimal(Fraction(settings.kv_offload_bytes, GIB))
        backend = told.spec.memory.kv_offload.backend if told.spec.memory.kv_offload else None
        yield "--kv-offloading-backend", backend or "native"
    if settings.weight_offload_bytes:
        yield "--cpu-offload-gb", _decimal(Fraction(settings.weight_offload_bytes, GIB))


def _batching(told: _Told) -> Iterator[Flag]:
    settings, engine = told.settings, told.spec.engine
    yield "--max-model-len", str(settings.max_model_len)
    yield "--max-num-seqs", str(settings.max_num_seqs)
    yield "--max-num-batched-tokens", str(settings.max_num_batched_tokens)
    yield ("--enable-prefix-caching" if settings.prefix_caching else "--no-enable-prefix-caching",)
    if settings.watermark_permille:
        yield "--watermark", _decimal(Fraction(settings.watermark_permille, 1000))
    if settings.max_queued_requests is not None:
        yield "--max-num-queued-reqs", str(settings.max_queued_requests)
    if engine.scheduling_policy is not None:
        yield "--scheduling-policy", engine.scheduling_policy


def _compute(told: _Told) -> Iterator[Flag]:
    settings, engine = told.settings, told.spec.engine
    if engine.attention_backend is not None:
        yield "--attention-backend", engine.attention_backend
    if settings.eager:
        yield ("--enforce-eager",)
    elif settings.max_graph_batch is not None:
        yield "--max-cudagraph-capture-size", str(settings.max_graph_batch)
    if engine.sleep_mode:
        yield ("--enable-sleep-mode",)


def _context(told: _Told) -> Iterator[Flag | Unsaid]:
    rope = told.settings.rope
    if rope is None:
        return
    if rope.theta is None and not rope.nested:
        # With a wrong base answers would be wrong silently; without the override the engine refuses so long a context.
        why = "the model's rope_theta is not known; model.architecture.config or the hub's config.json would say it"
        yield Unsaid(flag="--hf-overrides", why=why)
        return
    # At the top level the engine replaces the model's whole mapping, so all of it must be repeated; inside text_config it merges.
    own: dict[str, Any] = json.loads(rope.others or "{}")
    scaling = own | {"rope_type": rope.kind, "factor": float(rope.factor)}
    if rope.original is not None:
        scaling["original_max_position_embeddings"] = rope.original
    if rope.theta is not None:
        scaling["rope_theta"] = rope.theta
    overrides: dict[str, Any] = {"rope_parameters": scaling}
    if rope.positions is not None:
        overrides["max_position_embeddings"] = rope.positions
    if rope.nested:
        overrides = {"text_config": overrides}
    yield "--hf-overrides", _json(overrides)


def _adapters(told: _Told) -> Iterator[Flag]:
    slots, adapters = told.settings.lora, told.spec.adapters
    if slots is None or adapters is None:
        return
    yield ("--enable-lora",)
    yield "--max-loras", str(slots.max_loras)
    yield "--max-lora-rank", str(slots.max_rank)
    yield "--max-cpu-loras", str(slots.max_cpu_loras)
    if come_and_go(told.spec):
        # Each of several API servers would know only the adapters that it loaded itself, so the engine refuses to start with several.
        if told.layout.data > 1 and told.answers:
            yield "--api-server-count", "1"
    elif adapters.items:
        paths = (
            {"name": item.name, "path": word_of(item.source, adapter_folder(number))}
            for number, item in enumerate(adapters.items)
        )
        yield ("--lora-modules", *map(_json, paths))


def _speculative(told: _Told) -> Iterator[Flag]:
    wish, decided = told.spec.speculative, told.settings.speculation
    if wish is None or decided is None:
        return
    config: dict[str, Any] = {
        "method": SPECULATION_METHODS.get(wish.method, wish.method),
        "num_speculative_tokens": decided.tokens,
    }
    optional = {
        "model": None if wish.model is None else word_of(wish.model, DRAFT_FOLDER),
        "revision": wish.revision,
        "draft_tensor_parallel_size": wish.tensor,
        "prompt_lookup_min": wish.lookup_min,
        "prompt_lookup_max": wish.lookup_max,
    }
    config |= {key: value for key, value in optional.items() if value is not None}
    yield "--speculative-config", _json(config)


def _media(told: _Told) -> Iterator[Flag]:
    media = told.spec.multimodal
    if media.text_only:
        yield ("--language-model-only",)
        return
    counts = {"image": media.images, "video": media.videos, "audio": media.audios}
    limits = {kind: count for kind, count in counts.items() if count is not None}
    if limits:
        yield "--limit-mm-per-prompt", _json(limits)
    if media.allowed_domains:
        yield ("--allowed-media-domains", *media.allowed_domains)


def _answers(told: _Told) -> Iterator[Flag]:
    spec = told.spec
    if spec.tool_calling is not None:
        yield "--tool-call-parser", spec.tool_calling.parser
        if spec.tool_calling.auto_choice is not False:
            yield ("--enable-auto-tool-choice",)
    if spec.reasoning is not None:
        yield "--reasoning-parser", spec.reasoning.parser
    if spec.structured_output is not None and spec.structured_output.backend is not None:
        yield "--structured-outputs-config", _json({"backend": spec.structured_output.backend})
    if spec.chat_template is not None:
        yield "--chat-template", TEMPLATE_FILE


def _network(told: _Told) -> Iterator[Flag]:
    networking = told.spec.networking
    if networking.tls_secret is not None:
        yield "--ssl-certfile", f"{TLS_FOLDER}/tls.crt"
        yield "--ssl-keyfile", f"{TLS_FOLDER}/tls.key"
        yield ("--enable-ssl-refresh",)
    if networking.cors_origins:
        yield "--allowed-origins", _json(list(networking.cors_origins))


def _shutdown(told: _Told) -> Iterator[Flag]:
    # Without this flag the engine aborts running requests at once.
    yield "--shutdown-timeout", str(told.drain)


CONCERNS: Final[tuple[Callable[[_Told], Iterator[Flag | Unsaid]], ...]] = (
    _model,
    _parallel,
    _memory,
    _batching,
    _compute,
    _context,
    _adapters,
    _speculative,
    _media,
    _answers,
    _network,
    _shutdown,
)


def _environment(told: _Told) -> dict[str, str]:
    spec = told.spec
    env = {"VLLM_NO_USAGE_STATS": "1"}
    if told.on_cpu and told.settings.kv_cache_bytes is not None:
        # The engine reads whole GiB here, so the rest stays unused.
        env["VLLM_CPU_KVCACHE_SPACE"] = str(told.settings.kv_cache_bytes // GIB)
    if spec.model.scheme == "modelscope":
        env["VLLM_USE_MODELSCOPE"] = "True"
    if come_and_go(spec):
        env["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "True"
    return env | {item.name: item.value for item in spec.engine.env if item.value is not None}


def _secrets(spec: LLMDeploymentSpec) -> Mapping[str, SecretKey]:
    asked = {
        # The engine has only one token for all that it fetches: the model's, else the adapters'.
        TOKENS["hf"]: spec.model.token_secret or (spec.adapters.token_secret if spec.adapters else None),
        TOKENS["modelscope"]: spec.model.token_secret if spec.model.scheme == "modelscope" else None,
        "VLLM_API_KEY": spec.networking.api_key_secret,
    } | {item.name: item.secret for item in spec.engine.env}
    return adapter_token(spec) | {name: secret for name, secret in asked.items() if secret is not None}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _decimal(value: Fraction) -> str:
    """The value as a short decimal without an exponent: 0.92, 24, 0.005."""
    return f"{float(value):.6f}".rstrip("0").rstrip(".")
