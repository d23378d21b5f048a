"""Sets of every kind by hand, with round figures, for goldens and tables."""

from dataclasses import replace
from typing import Any

from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import Hardware, PlanSet, PodResources
from plimsoll.planning.settings import LoraSlots
from tests.engines import sets

GIB = 2**30


def entry(
    *, vendor: str = "nvidia", gpu: str = "H100-SXM-80GB", resource: str = "nvidia.com/gpu", pods: int = 1, devices: int = 1,
    layout: Layout | None = None, partition: str | None = None, claim: str | None = None, selector: dict[str, str] | None = None,
    replicas: int = 2, disk: int = 40 * GIB, **settings: Any,
) -> PlanSet:  # fmt: skip
    made: PlanSet = sets.chosen(layout=layout or Layout(tensor=devices * pods), **settings)
    hardware = Hardware(
        gpu=gpu,
        vendor=vendor,
        resource=resource,
        memory_bytes=80 * GIB,
        partition=partition,
        via_dra=claim is not None,
        claim_selector=claim,
        selector=selector
        if selector is not None
        else {f"{resource}.product": gpu}
        if "/" in resource
        else {},
    )
    resources = PodResources(
        resource=resource,
        devices=devices,
        cpu_millis=(2 + devices) * 1000,
        memory_bytes=24 * GIB,
        shm_bytes=(1 + devices) * GIB,
        disk_bytes=disk,
    )
    return replace(
        made,
        hardware=hardware,
        resources=resources,
        replicas=replicas,
        pods_per_replica=pods,
        digest="0123456789abcdef",
    )


CPU = entry(
    vendor="cpu", gpu="CPU-AMX", resource="cpu", layout=Layout(), kv_cache_bytes=4 * GIB,
    selector={"kubernetes.io/arch": "amd64"},
)  # fmt: skip
GROUP = entry(replicas=1, pods=2, devices=4, layout=Layout(tensor=4, pipeline=2))
FABRIC = entry(replicas=1, gpu="GB200", pods=2, devices=4, layout=Layout(tensor=8))
RANKS = entry(replicas=1, pods=2, layout=Layout(data=2, expert_parallel=True))
HALVES = entry(replicas=1, pods=2, devices=4, layout=Layout(data=8, expert_parallel=True))
KINDS: dict[str, tuple[dict[str, Any], PlanSet]] = {
    "one-gpu": ({}, entry()),
    "four-gpus": ({}, entry(devices=4)),
    "amd": ({}, entry(vendor="amd", gpu="MI300X", resource="amd.com/gpu")),
    "mig": ({}, entry(gpu="H100-SXM-80GB 3g.40gb", resource="nvidia.com/mig-3g.40gb", partition="3g.40gb")),
    "claim": ({}, entry(resource="gpu.nvidia.com", devices=2, claim='device.attributes["x"].productName == "H100"')),
    "cpu": ({"topology": {"cpu": {}}}, CPU),
    "group": ({}, GROUP),
    "group-in-one-fabric": ({}, FABRIC),
    "group-by-ray": ({"topology": {"executor": "ray"}}, GROUP),
    "group-in-leaderworkerset": ({"topology": {"groups": "LeaderWorkerSet"}}, GROUP),
    "ranks-behind-the-service": ({"source": "Qwen/Qwen3-30B-A3B", "topology": {"dataMode": "external"}}, RANKS),
    "nodes-behind-the-service": ({"source": "Qwen/Qwen3-30B-A3B", "topology": {"dataMode": "external"}}, HALVES),
    "ranks-within": ({"source": "Qwen/Qwen3-30B-A3B"}, HALVES),
    "ranks-in-leaderworkerset": (
        {"source": "Qwen/Qwen3-30B-A3B", "topology": {"dataMode": "hybrid", "groups": "LeaderWorkerSet"}}, HALVES,
    ),
    "rich": (
        {
            "model": {
                "source": "hf://Qwen/Qwen3-8B", "revision": "main", "servedNames": ["chat", "qwen"], "tokenSecret": {"name": "hub"},
            },
            "engine": {"imagePullPolicy": "Always", "env": [{"name": "LEVEL", "value": "1"}], "extraArgs": ["--seed", "7"]},
            "adapters": {"items": [{"name": "sql", "source": "hf://a/sql"}, {"name": "law", "source": "pvc://adapters/law"}]},
            "toolCalling": {"parser": "hermes"},
            "reasoning": {"parser": "qwen3"},
            "chatTemplate": {"inline": "{% for m in messages %}{{ m }}{% endfor %}"},
            "rollout": {"drainSeconds": 90, "deadlineSeconds": 3600},
            "networking": {"apiKeySecret": {"name": "keys"}, "tlsSecret": "cert", "corsOrigins": ["https://a.example"]},
            "storage": {"weights": {"claimTemplate": {"storageClass": "fast"}}, "cache": {"emptyDir": {"sizeLimit": "5Gi"}}},
            "scheduling": {"queue": "llms", "priorityClass": "high", "schedulerName": "bin-packer"},
            "topology": {"tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]},
            "podLabels": {"team": "a"},
            "podAnnotations": {"note": "x"},
            "podPatches": [{"op": "add", "path": "/spec/hostname", "value": '"chat"'}],
        },
        entry(devices=2, lora=LoraSlots(max_loras=2, max_rank=16, max_cpu_loras=2)),
    ),
}  # fmt: skip
