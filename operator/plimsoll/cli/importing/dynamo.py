"""NVIDIA Dynamo's graphs (both API versions) and its requests for a deployment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plimsoll.cli.importing.command import write_command
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.metadata import opened, write_metadata
from plimsoll.cli.importing.pods import (
    OWN,
    REASONS,
    read_container,
    read_env,
    write_devices,
    write_placement,
    write_pod,
)
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.sources import model_source
from plimsoll.cli.importing.values import BadValueError, decimal, digits

_PARTS = "Dynamo's frontend, planner and router have no counterpart; networking and scaling take their place"
_PREFILL = "prefill and decode are one deployment here: the decode worker is read"


def write_graph(draft: Draft, document: dict[str, Any]) -> None:
    """The worker of a DynamoGraphDeployment; of several the one that decodes."""
    metadata, spec = opened(draft, document)
    write_metadata(draft, metadata)
    framework = spec.text("backendFramework") or "vllm"
    if framework != "vllm":
        raise ImportProblem(f"spec.backendFramework: {framework} is another engine; only vllm is imported")
    components = _components(spec)
    workers = [(name, part) for name, part in components if _is_worker(name, part)]
    if not workers:
        raise ImportProblem("the graph has no worker that runs vLLM (dynamo.vllm)")
    decoding = [
        pair for pair in workers if "prefill" not in pair[0].lower() and pair[1].peek("type") != "prefill"
    ]
    chosen = (decoding or workers)[0]
    for name, part in components:
        if (name, part) != chosen:
            draft.lose(f"{part.path} {name}".strip(), _PREFILL if (name, part) in workers else _PARTS)
    _worker(draft, *chosen)
    spec.leave(
        "Plimsoll writes the pods by itself", {"restart": "rollout says how changes reach the replicas"}
    )


def _components(spec: Reader) -> list[tuple[str, Reader]]:
    if "components" in spec:
        return [(str(part.peek("name") or ""), part) for part in spec.each("components")]
    services = spec.below("services")
    return [(name, services.below(name)) for name in services.names()]


def _is_worker(name: str, part: Reader) -> bool:
    kind = str(part.peek("type") or part.peek("componentType") or "")
    if kind in ("frontend", "planner", "epp"):
        return False
    return (
        kind in ("worker", "decode", "prefill")
        or "worker" in name.lower()
        or "dynamo.vllm" in repr(part.peek("extraPodSpec"))
    )


def _worker(draft: Draft, name: str, part: Reader) -> None:
    for key in ("name", "type", "componentType", "subComponentType"):
        part.take(key)
    part.lose("dynamoNamespace", "it is Dynamo's own, which Plimsoll does without")
    part.put("replicas", "replicas")
    part.lose("sharedMemorySize", "Plimsoll sizes shared memory by the layout")
    part.lose("sharedMemory", "Plimsoll sizes shared memory by the layout")
    part.lose("multinode", "the layout says over how many nodes a replica spans")
    part.lose("envFromSecret", "name its keys one by one: model.tokenSecret, engine.env")
    _amounts(draft, part.below("resources"))
    if "podTemplate" in part:
        template = part.below("podTemplate")
        write_pod(draft, template.below("spec"), dialect="dynamo")
        template.leave(OWN)
    else:
        extra = part.below("extraPodSpec")
        container = extra.below("mainContainer")
        environment = read_env(part, "envs")
        command = read_container(container, (), dialect="dynamo")
        write_command(draft, replace(command, environment={**environment, **command.environment}))
        container.leave(OWN, REASONS)
        write_placement(draft, extra)
        extra.leave(OWN, REASONS)
    if draft.get("model.source") is None:
        raise ImportProblem(f"the worker {name} names no model; --model says it")
    part.leave(OWN, REASONS)


def _amounts(draft: Draft, resources: Reader) -> None:
    for key in ("limits", "requests"):
        amounts = resources.below(key)
        if "gpu" in amounts:
            write_devices(draft, "gpu", amounts.take("gpu"), amounts.at("gpu"))
        amounts.leave("Plimsoll computes it from the model and the layout")
    resources.leave("Plimsoll computes it from the model and the layout")


def write_request(draft: Draft, document: dict[str, Any]) -> None:
    """A DynamoGraphDeploymentRequest: a model, its load and its latency, which is what an LLMDeployment says too."""
    metadata, spec = opened(draft, document)
    write_metadata(draft, metadata)
    backend = spec.text("backend") or "auto"
    if backend not in ("auto", "vllm"):
        raise ImportProblem(f"spec.backend: {backend} is another engine; only vllm is imported")
    model = spec.text("model")
    if model is None:
        raise ImportProblem("spec.model: is missing; it says which model is served")
    draft.put("model.source", model_source(model), f"spec.model: {model}")
    config = spec.below("profilingConfig").below("config")
    _load(draft, spec.below("workload"))
    _load(draft, config.below("sla"))
    _load(draft, spec.below("sla"))
    for hardware in (spec.below("hardware"), config.below("hardware")):
        sku = hardware.text("gpuSku") or hardware.text("gpu_type")
        if sku:
            draft.put("topology.gpuProducts", [sku], f"{hardware.at('gpuSku')}: {sku}")
        hardware.leave("the inventory says what GPUs there are")
    cache = spec.below("modelCache")
    claim = cache.text("pvcName")
    if claim:
        draft.put("storage.weights", {"claim": {"name": claim}}, f"{cache.at('pvcName')}: {claim}")
    cache.leave("spec.storage says where weights live")
    config.leave("Plimsoll plans without profiling")
    spec.leave(
        "Plimsoll plans without profiling",
        {
            "image": "the image of the admin's default version",
            "autoApply": "the resource itself is the deployment",
        },
    )


def _load(draft: Draft, load: Reader) -> None:
    """Lengths, rate and latency; what Dynamo means as a mean is the median here."""
    for key, path in (("isl", "inputTokens"), ("osl", "outputTokens")):
        value = load.take(key)
        if value is not None:
            draft.translate(
                f"workload.{path}.p50",
                _whole(value, load.at(key)),
                load.what(key, value),
                "the typical length is the median",
            )
    load.put("concurrency", "workload.concurrency")
    rate = load.take("requestRate")
    if rate is not None:
        draft.put("workload.requestsPerSecond", digits(decimal(str(rate))), load.what("requestRate", rate))
    for key, path in (("ttft", "ttftP99Ms"), ("itl", "itlP99Ms")):
        value = load.take(key)
        if value is not None:
            draft.put(f"slo.{path}", _whole(value, load.at(key)), load.what(key, value))
    load.leave("workload and slo have no field for it")


def _whole(value: Any, path: str) -> int:
    try:
        return int(decimal(str(value).removesuffix("ms")).to_integral_value(rounding="ROUND_CEILING"))
    except BadValueError as error:
        raise ImportProblem(f"{path}: {error}") from None
