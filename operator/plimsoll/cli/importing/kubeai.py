"""KubeAI's Model."""

from __future__ import annotations

from typing import Any

from plimsoll.cli.importing.command import Command, write_command
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.environment import EnvValue
from plimsoll.cli.importing.metadata import opened, write_metadata
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.sources import model_source

_FEATURES = {"TextGeneration": "generate", "TextEmbedding": "embed", "Reranking": "rerank"}


def write_model(draft: Draft, document: dict[str, Any]) -> None:
    """A Model whose engine is vLLM."""
    metadata, spec = opened(draft, document)
    name = metadata.peek("name")
    engine = spec.text("engine") or "VLLM"
    if engine.upper() != "VLLM":
        raise ImportProblem(f"spec.engine: {engine} is another engine; only VLLM is imported")
    url = spec.text("url")
    if url is None:
        raise ImportProblem("spec.url: is missing; it says which model is served")
    where, _, query = url.partition("?")
    draft.put("model.source", model_source(where), f"spec.url: {where}")
    if query:
        draft.lose(f"spec.url: ?{query}", "only the place of the model is read")
    if name:
        draft.put("model.servedNames", [str(name)], f"metadata.name: {name}")
    write_metadata(draft, metadata)
    _features(draft, spec)
    _scaling(draft, spec)
    _adapters(draft, spec)
    env = spec.below("env")
    environment = {name: EnvValue(value=env.text(name)) for name in env.names()}
    write_command(
        draft,
        Command(
            argv=tuple(str(word) for word in spec.items("args")),
            environment=environment,
            image=spec.text("image"),
            model=None,
        ),
    )
    spec.put("priorityClassName", "scheduling.priorityClass")
    profile = spec.text("resourceProfile")
    if profile:
        kind, _, count = profile.partition(":")
        if count.isdigit():
            draft.gpus = int(count)
        draft.lose(
            f"spec.resourceProfile: {profile}",
            f"what {kind} means is in KubeAI's configuration: say the GPU in topology.gpuProducts",
        )
    spec.leave(
        "spec has no field for it",
        {
            "owner": "it says who made the model, which nothing reads",
            "cacheProfile": "spec.storage says where weights live",
            "files": "mount files by podPatches",
            "loadBalancing": "networking says how requests reach the replicas",
            "targetRequests": "Plimsoll scales by queue, KV and latency",
            "envFrom": "name the variables one by one in engine.env",
        },
    )


def _features(draft: Draft, spec: Reader) -> None:
    for feature in spec.items("features"):
        task = _FEATURES.get(str(feature))
        if task and draft.get("model.task") is None:
            draft.put("model.task", task, f"spec.features: {feature}")
        elif task is None or draft.get("model.task") != task:
            draft.lose(f"spec.features: {feature}", "a deployment serves one task")


def _scaling(draft: Draft, spec: Reader) -> None:
    spec.put("replicas", "replicas")
    disabled = spec.take("autoscalingDisabled")
    if disabled:
        draft.drop(spec.what("autoscalingDisabled", disabled), "spec.replicas, which is obeyed exactly")
        for key in ("minReplicas", "maxReplicas", "scaleDownDelaySeconds"):
            spec.lose(key, "autoscaling is off")
        return
    if disabled is not None:
        draft.drop(spec.what("autoscalingDisabled", disabled), "nothing: Plimsoll scales by default")
    spec.put("maxReplicas", "scaling.max")
    spec.put_least_replicas()
    spec.put("scaleDownDelaySeconds", "scaling.downWindowSeconds")
    draft.leave_replicas_to("KubeAI")


def _adapters(draft: Draft, spec: Reader) -> None:
    items = []
    for adapter in spec.each("adapters"):
        items.append({"name": adapter.text("name"), "source": model_source(adapter.text("url") or "")})
        adapter.leave("spec.adapters has no field for it")
    if items:
        draft.put("adapters.items", items, f"spec.adapters ({len(items)})")
