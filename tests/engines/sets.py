"""A plan's set with overrides: only what an engine is told from matters here."""

from typing import Any

from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Load
from plimsoll.planning.memory.ledger import Ledger, OomRisk, Verdict
from plimsoll.planning.plan import Cost, Hardware, PlanSet, PodResources
from plimsoll.planning.settings import EngineSettings

GIB = 2**30


def settings(**others: Any) -> EngineSettings:
    defaults: dict[str, Any] = {
        "max_model_len": 8192,
        "max_num_seqs": 64,
        "max_num_batched_tokens": 8192,
        "utilization": 0.92,
    }
    return EngineSettings(**{**defaults, **others})


def chosen(*, layout: Any = None, vendor: Any = "nvidia", **flags: Any) -> PlanSet:
    return PlanSet(
        digest="0123456789abcdef",
        hardware=Hardware(
            gpu="H100-SXM-80GB", vendor=vendor, resource="nvidia.com/gpu", memory_bytes=80 * GIB
        ),
        layout=layout or Layout(),
        settings=settings(**flags),
        replicas=1,
        pods_per_replica=1,
        resources=PodResources(
            resource="nvidia.com/gpu", devices=1, cpu_millis=1, memory_bytes=1, shm_bytes=1, disk_bytes=1
        ),
        ledger=Ledger(
            budget_bytes=1,
            device_bytes=1,
            terms=(),
            capacity=None,
            verdict=Verdict.FITS,
            risk=OomRisk.LOW,
            reason="",
        ),
        load=Load(input_tokens=1, output_tokens=1, concurrency=1),
        performance=None,
        max_concurrency=1,
        meets_slo=None,
        cost=Cost(gpu_hours_per_hour=1.0, per_hour=None),
        values=(),
    )
