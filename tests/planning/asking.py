"""Deployments, pools and plans in one line each, for the tests of planning."""

from dataclasses import replace

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.gpus import cpu_kinds, gpu_named
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.models import lookup
from plimsoll.planning.planner import PlanFacts, plan

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
QWEN_32B = "Qwen/Qwen3-32B"
QWEN_MOE = "Qwen/Qwen3-30B-A3B"
R1 = "deepseek-ai/DeepSeek-R1"
SMALL = "Qwen/Qwen3-0.6B"
RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "habana": "habana.ai/gaudi", "cpu": "cpu"}


def pool(gpu="H100-SXM-80GB", per_node=8, nodes=2, *, key=None, **others):
    known = gpu_named(gpu)
    defaults = {
        "key": key or f"{gpu.lower()}-x{per_node}",
        "gpu": known,
        "memory_bytes": known.memory_bytes,
        "resource": RESOURCES[known.vendor],
        "devices_per_node": per_node,
        "free": {per_node: nodes},
        "labels": {"nvidia.com/gpu.product": gpu} if known.vendor == "nvidia" else {},
    }
    return Pool(**{**defaults, **others})


def cpu_pool(nodes=2, gib=256):
    kind = cpu_kinds()[0]
    return replace(
        pool(nodes=nodes),
        key="hosts",
        gpu=kind,
        memory_bytes=gib * 2**30,
        resource="cpu",
        devices_per_node=1,
        free={1: nodes},
        labels={},
        host_memory_bytes=gib * 2**30,
        host_cpus=64,
    )


def inventory(*pools, **others):
    return Inventory(pools=tuple(sorted(pools, key=lambda one: one.key)), **others)


def deployment(source=LLAMA, *, name="chat", namespace="team-a", created=None, **spec):
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": created}
    model = spec.pop("model", {"source": source})
    return LLMDeployment.model_validate({"metadata": metadata, "spec": {"model": model, **spec}})


def facts(asked):
    return PlanFacts(model=lookup(asked.spec.model.source))


def planned(asked, *pools, config=None, **others):
    return plan(
        asked,
        inventory(*(pools or (pool(),))),
        facts(asked),
        config=OperatorConfig.model_validate(config or {}),
        **others,
    )


def reasons(made):
    return [finding.reason for finding in made.findings]


def finding(made, reason):
    return next(one for one in made.findings if one.reason == reason)
