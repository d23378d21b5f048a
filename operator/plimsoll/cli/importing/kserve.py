"""KServe's InferenceService and LLMInferenceService, as far as they describe a vLLM deployment."""

from __future__ import annotations

from typing import Any

from plimsoll.cli.importing.command import write_command
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.features import write_speculation
from plimsoll.cli.importing.metadata import opened, write_metadata
from plimsoll.cli.importing.pods import (
    OWN,
    REASONS,
    read_container,
    write_placement,
    write_pod,
    write_resources,
)
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.sources import model_source
from plimsoll.cli.importing.volumes import (
    asked_of_kserve,
    kserve_place,
    kserve_places,
    leave_places,
    read_volumes,
)

_FORMATS = ("huggingface", "vllm", "llm", "")
_ROUTER = "networking says how requests reach the replicas"


def write_inference_service(draft: Draft, document: dict[str, Any]) -> None:
    """An InferenceService whose predictor runs vLLM or KServe's Hugging Face server."""
    metadata, spec = opened(draft, document)
    write_metadata(draft, metadata)
    predictor = spec.below("predictor")
    _replica_bounds(draft, predictor)
    if "model" in predictor:
        _predictor_model(draft, predictor)
    elif "containers" in predictor:
        uri = asked_of_kserve(predictor.peek("containers"))
        places = kserve_places(predictor)
        write_pod(draft, predictor, model=uri, downloaded=(*places.values(), *kserve_place(uri)))
        leave_places(draft, places)
    else:
        raise ImportProblem("spec.predictor: has neither model nor containers; there is no engine in it")
    predictor.leave(OWN, REASONS)
    spec.leave("only the predictor is read")


def _predictor_model(draft: Draft, predictor: Reader) -> None:
    model = predictor.below("model")
    format_of = model.below("modelFormat")
    form = format_of.text("name") or ""
    if form.lower() not in _FORMATS:
        draft.lose(f"{format_of.at('name')}: {form}", "the runtime is vLLM's, whatever it calls the format")
    format_of.leave("engine.version says which release of vLLM")
    runtime = model.text("runtime")
    if form.lower() not in _FORMATS and "vllm" not in (runtime or "").lower():
        raise ImportProblem(
            f"spec.predictor.model.modelFormat.name: {form!r} is not served by vLLM; huggingface and vLLM are"
        )
    if runtime:
        draft.lose(f"{model.at('runtime')}: {runtime}", "its settings are not here; the engine is vLLM")
    uri = model.text("storageUri")
    volumes = read_volumes(draft, predictor, model)
    places = kserve_places(model) | kserve_places(predictor)
    mounts = (*volumes.mounts, *places.values(), *kserve_place(uri))
    command = read_container(model, mounts, dialect="kserve", model=None)
    if uri:
        draft.put("model.source", model_source(uri), f"{model.at('storageUri')}: {uri}")
    write_resources(draft, model)
    write_command(draft, command)
    if len(places) == 1 and draft.get("model.source") is None:
        # KServe's own server serves what lies in its place where no word says another one.
        ((what, place),) = places.items()
        draft.put("model.source", model_source(place.path, (place,)), what)
    leave_places(draft, places)
    volumes.leave(draft)
    model.leave(OWN, REASONS)
    write_placement(draft, predictor)


def _replica_bounds(draft: Draft, holder: Reader) -> None:
    low, high = holder.peek("minReplicas"), holder.take("maxReplicas")
    if low is not None and low == high != 0:
        draft.put(
            "replicas", holder.take("minReplicas"), f"{holder.at('minReplicas')} and maxReplicas: {low}"
        )
        return
    holder.put_least_replicas()
    if high:
        draft.put("scaling.max", high, f"{holder.at('maxReplicas')}: {high}")
    elif high == 0:
        draft.lose(
            f"{holder.at('maxReplicas')}: 0",
            "it sets no limit in KServe: scaling.max says how many there may be",
        )


def write_llm_inference_service(draft: Draft, document: dict[str, Any]) -> None:
    """An LLMInferenceService: its own fields first, then the words of its main container."""
    metadata, spec = opened(draft, document)
    write_metadata(draft, metadata)
    model = spec.below("model")
    uri = model.text("uri")
    if uri is None:
        raise ImportProblem("spec.model.uri: is missing; it says which model is served")
    draft.put("model.source", model_source(uri), f"{model.at('uri')}: {uri}")
    name = model.text("name")
    if name:
        draft.put("model.servedNames", [name], f"{model.at('name')}: {name}")
    _lora(draft, model)
    model.leave("spec.model has no field for it")
    _parallelism(spec)
    spec.put("replicas", "replicas")
    scaling = spec.below("scaling")
    _replica_bounds(draft, scaling)
    scaling.leave("Plimsoll scales by queue, KV and latency")
    if draft.get("scaling") is not None:
        draft.leave_replicas_to("KServe's autoscaler")
    _speculator(draft, spec)
    _offloading(draft, spec)
    template = spec.below("template")
    if "containers" in template:
        write_pod(draft, template, downloaded=kserve_place(uri))
    else:
        template.leave(OWN, REASONS)
    spec.leave(
        OWN,
        {
            "router": _ROUTER,
            "prefill": "prefill and decode are one deployment here",
            "worker": "Plimsoll writes the pods of a group from the layout",
            "baseRefs": "the presets it names are not here; import what KServe made of them",
            "storageInitializer": "spec.storage says where weights come from",
        },
    )


def _parallelism(spec: Reader) -> None:
    parallelism = spec.below("parallelism")
    for key, path in (
        ("tensor", "tensor"),
        ("pipeline", "pipeline"),
        ("data", "data"),
        ("expert", "expertParallel"),
    ):
        parallelism.put(key, f"topology.{path}")
    parallelism.leave("Plimsoll writes it for each pod of a replica that spans nodes")


def _lora(draft: Draft, model: Reader) -> None:
    lora = model.below("lora")
    items = []
    for adapter in lora.each("adapters"):
        uri = adapter.text("uri") or ""
        items.append({"name": adapter.text("name") or uri.rpartition("/")[2], "source": model_source(uri)})
        adapter.leave("spec.adapters has no field for it")
    if items:
        draft.put("adapters.items", items, f"{lora.at('adapters')} ({len(items)})")
    lora.put("maxRank", "adapters.maxRank")
    lora.put("maxAdapters", "adapters.maxLoaded")
    lora.put("maxCpuAdapters", "adapters.maxOnHost")
    lora.leave("spec.adapters has no field for it")


def _speculator(draft: Draft, spec: Reader) -> None:
    speculator = spec.below("speculator")
    config = speculator.below("config")
    uri = speculator.below("model").text("uri")
    told: dict[str, Any] = {key: config.take(key) for key in config.names()} | ({"model": uri} if uri else {})
    if told:
        write_speculation(draft, told, speculator.path)
    speculator.leave("spec.speculative has no field for it")


def _offloading(draft: Draft, spec: Reader) -> None:
    offloading = spec.below("kvCacheOffloading")
    cpu = offloading.take("cpu")
    size = cpu.get("size") or cpu.get("capacity") if isinstance(cpu, dict) else cpu
    if size is not None:
        draft.put("memory.kvOffload.size", str(size), f"{offloading.at('cpu')}: {size}")
    offloading.leave("memory.kvOffload spills to host memory only")
