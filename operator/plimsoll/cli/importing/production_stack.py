"""The vLLM production stack: its Helm values (one deployment a model) and its VLLMRuntime resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.cli.importing.command import Command, write_command
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.environment import EnvValue
from plimsoll.cli.importing.metadata import opened, write_metadata
from plimsoll.cli.importing.pods import (
    OWN,
    SIZES,
    read_env,
    write_devices,
    write_node_terms,
    write_placement,
)
from plimsoll.cli.importing.reader import Reader

# Keys of both forms and the flags they stand for; booleans become switches.
_FLAGS: Mapping[str, str] = {
    "enablePrefixCaching": "--enable-prefix-caching",
    "enableChunkedPrefill": "--enable-chunked-prefill",
    "maxModelLen": "--max-model-len",
    "dtype": "--dtype",
    "tensorParallelSize": "--tensor-parallel-size",
    "pipelineParallelSize": "--pipeline-parallel-size",
    "maxNumSeqs": "--max-num-seqs",
    "maxNumBatchedTokens": "--max-num-batched-tokens",
    "gpuMemoryUtilization": "--gpu-memory-utilization",
    "maxLoras": "--max-loras",
    "maxLoraRank": "--max-lora-rank",
    "enableLoRA": "--enable-lora",
    "toolCallParser": "--tool-call-parser",
    "enableTool": "--enable-auto-tool-choice",
    "quantization": "--quantization",
}
_LMCACHE = "LMCache keeps KV in host memory: memory.kvOffload with backend lmcache"


def models_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The models of Helm values."""
    engine = document.get("servingEngineSpec")
    models = engine.get("modelSpec") if isinstance(engine, Mapping) else None
    if not isinstance(models, list) or not models:
        raise ImportProblem("servingEngineSpec.modelSpec: lists no model")
    return [model for model in models if isinstance(model, dict)]


def write_values_model(draft: Draft, model: dict[str, Any], document: Mapping[str, Any], place: int) -> None:
    """One model of Helm values."""
    spec = Reader(model, f"servingEngineSpec.modelSpec[{place}]", draft)
    name = spec.text("name")
    if name:
        draft.name(name)
    if place == 0:
        _outer(draft, document)
    _image(spec, "repository", "tag", "image")
    url = spec.text("modelURL")
    spec.put("replicaCount", "replicas")
    for key in ("requestGPU", "limitGPU"):
        write_devices(draft, str(model.get("requestGPUType", "nvidia.com/gpu")), spec.take(key), spec.at(key))
    for key in ("requestCPU", "requestMemory", "limitCPU", "limitMemory", "requestGPUType", "shmSize"):
        spec.lose(key, SIZES)
    _claim(draft, spec)
    words = flags_in(spec.below("vllmConfig"))
    if spec.take("enableTool"):
        words.append("--enable-auto-tool-choice")
    for key, flag in (("toolCallParser", "--tool-call-parser"), ("chatTemplate", "--chat-template")):
        value = spec.text(key)
        if value:
            words += [flag, value]
    if spec.take("enableLoRA"):
        words.append("--enable-lora")
    _lmcache(draft, spec.below("lmcacheConfig"))
    environment = read_env(spec) | _hub_token(draft, spec)
    write_node_terms(draft, spec.each("nodeSelectorTerms"))
    write_placement(draft, spec)
    _keda(draft, spec.below("keda"))
    write_command(draft, Command(argv=tuple(words), environment=environment, image=_joined(model), model=url))
    spec.leave(OWN)


def write_runtime(draft: Draft, document: dict[str, Any]) -> None:
    """A VLLMRuntime."""
    metadata, spec = opened(draft, document)
    write_metadata(draft, metadata)
    model = spec.below("model")
    url = model.text("modelURL")
    words = flags_in(model)
    config = spec.below("vllmConfig")
    words += flags_in(config)
    environment = read_env(config) | _hub_token(draft, model)
    deployment = spec.below("deploymentConfig")
    deployment.put("replicas", "replicas")
    resources = deployment.below("resources")
    write_devices(
        draft, str(resources.peek("gpuType") or "nvidia.com/gpu"), resources.take("gpu"), resources.at("gpu")
    )
    resources.leave(SIZES)
    image = deployment.below("image")
    registry, name = image.text("registry"), image.text("name")
    image.put("pullPolicy", "engine.imagePullPolicy")
    secret = image.text("pullSecretName")
    if secret:
        draft.put("engine.imagePullSecrets", [secret], f"{image.at('pullSecretName')}: {secret}")
    image.leave("engine.image is the whole name of an image")
    write_node_terms(draft, deployment.each("nodeSelectorTerms"))
    write_placement(draft, deployment)
    _lmcache(draft, spec.below("lmCacheConfig"))
    _autoscaling(draft, spec.below("autoscalingConfig"))
    whole = f"{registry}/{name}" if registry and name and registry != "docker.io" else name
    write_command(draft, Command(argv=tuple(words), environment=environment, image=whole, model=url))
    for part in (model, deployment, spec):
        part.leave(
            OWN,
            {
                "storageConfig": "spec.storage says where weights live",
                "deploymentStrategy": "rollout.strategy",
            },
        )


def flags_in(config: Reader) -> list[str]:
    """Settings by their camelCase names as words of a command line, further arguments behind them."""
    words: list[str] = []
    for key, flag in _FLAGS.items():
        value = config.take(key)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or value in ("true", "false"):
            words.append(flag if value in (True, "true") else f"--no-{flag.removeprefix('--')}")
        else:
            words += [flag, str(value)]
    words += [str(word) for word in config.items("extraArgs")]
    for key in ("v0", "v1"):
        config.lose(key, "there is only one engine")
    config.lose("port", "networking.service.port is the Service's port")
    return words


def _outer(draft: Draft, document: Mapping[str, Any]) -> None:
    outer = Reader(dict(document), "", draft)
    engine = outer.below("servingEngineSpec")
    engine.take("modelSpec")
    engine.take("enableEngine")
    if engine.peek("runtimeClassName") == "":
        engine.take("runtimeClassName")
    tolerations = engine.items("tolerations")
    if tolerations:
        draft.put("topology.tolerations", tolerations, f"servingEngineSpec.tolerations ({len(tolerations)})")
    engine.leave(OWN)
    outer.leave(
        "only servingEngineSpec is read", {"routerSpec": "networking says how requests reach the replicas"}
    )


def _image(spec: Reader, *keys: str) -> None:
    for key in keys:
        spec.take(key)


def _joined(model: Mapping[str, Any]) -> str | None:
    repository, tag = model.get("repository") or model.get("image"), model.get("tag")
    if not repository:
        return None
    return f"{repository}:{tag}" if tag else str(repository)


def _claim(draft: Draft, spec: Reader) -> None:
    size = spec.text("pvcStorage")
    if not size:
        return
    mode = spec.take("pvcAccessMode")
    mode = mode[0] if isinstance(mode, list) and mode else mode
    storage_class = spec.text("storageClass")
    template = {"size": size, "accessMode": mode or "ReadWriteOnce"} | (
        {"storageClass": storage_class} if storage_class else {}
    )
    said = ", ".join(map(str, template.values()))
    draft.put("storage.weights.claimTemplate", template, f"{spec.at('pvcStorage')}: {said}")


def _hub_token(draft: Draft, spec: Reader) -> dict[str, EnvValue]:
    token = spec.take("hf_token")
    secret = spec.below("hfTokenSecret")
    name = secret.text("name")
    if name:
        return {
            "HF_TOKEN": EnvValue(secret=(name, spec.text("hfTokenName") or secret.text("key") or "token"))
        }
    if isinstance(token, Mapping) and token.get("secretName"):
        return {"HF_TOKEN": EnvValue(secret=(str(token["secretName"]), str(token.get("secretKey", "token"))))}
    if token:
        draft.lose(
            f"{spec.at('hf_token')} (hidden)",
            "secrets have no place in a resource: name a Secret in model.tokenSecret",
        )
    return {}


def _lmcache(draft: Draft, config: Reader) -> None:
    enabled, size = config.take("enabled"), config.text("cpuOffloadingBufferSize")
    if enabled and size:
        quantity = f"{size}Gi" if size.isdigit() else size
        draft.put_group(
            "memory.kvOffload",
            {"size": quantity, "backend": "lmcache"},
            f"{config.at('cpuOffloadingBufferSize')}: {size}",
        )
    config.leave(_LMCACHE if enabled else "LMCache is off")


def _keda(draft: Draft, keda: Reader) -> None:
    if not keda.peek("enabled"):
        keda.leave("KEDA is off")
        return
    keda.put("minReplicaCount", "scaling.min")
    keda.put("maxReplicaCount", "scaling.max")
    draft.leave_replicas_to("KEDA")
    keda.leave("Plimsoll scales by queue, KV and latency")


def _autoscaling(draft: Draft, config: Reader) -> None:
    if config.take("enabled"):
        config.put_least_replicas()
        config.put("maxReplicas", "scaling.max")
        draft.leave_replicas_to("autoscaling")
    config.leave("Plimsoll scales by queue, KV and latency")
