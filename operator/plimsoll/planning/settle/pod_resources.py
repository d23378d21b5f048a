"""What a pod needs beside its devices: cores, host memory, shared memory, disk."""

from __future__ import annotations

from typing import Final

from plimsoll.api.quantity import format_gib
from plimsoll.api.v1alpha1.features import MOST_ADAPTERS
from plimsoll.api.v1alpha1.model import Volume
from plimsoll.api.v1alpha1.source import FETCHED, scheme_of
from plimsoll.facts.gpus import GIB, Vendor
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import explained
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.placing.placement import Slot
from plimsoll.planning.plan import Origin, PodResources, Value
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.settle.cpu import cpu_size

BASE_CORES: Final = 2
"""Cores for the API server and the engine core, which keep one thread busy each."""
CORES_EACH: Final = 1
"""Cores for the worker process of each device."""
BASE_MEMORY: Final = 6 * GIB
"""Memory of the API server and the engine core: interpreter, CUDA libraries and tokenizer."""
MEMORY_EACH: Final = 4 * GIB
"""Memory of the worker process of each device: interpreter and CUDA libraries."""
LOADING_MOST: Final = 16 * GIB
"""Most bytes counted for pages of the file that is being read; the rest of the page cache can be given up."""
QUEUE_BYTES: Final = 160 * 2**20
"""Shared memory of one broadcast ring of the engine: 10 chunks of 16 MiB."""
CACHES: Final = 10 * GIB
"""Disk for compiled kernels, graphs and tokenizer files."""
ADAPTER_BYTES: Final = 256 * 2**20
"""Bytes of one LoRA adapter, in host memory and on disk."""
MOST_SHARED_GIB: Final = 16
STEP: Final = 256 * 2**20
"""Bytes to whose multiples resources are rounded up, so that small changes of a model change no pod."""


def pod_resources(
    task: Task, slot: Slot, shape: Shape, layout: Layout, settings: EngineSettings
) -> tuple[PodResources, tuple[Value, ...]]:
    """What one pod of a replica asks for, and the reasons for it."""
    spec, model, workers = task.intent.spec, task.model, shape.devices
    shm = _shared(layout, workers)
    loading = min(LOADING_MOST, model.weights.total // max(1, layout.tensor * layout.pipeline))
    offload = settings.kv_offload_bytes // shape.pods + settings.weight_offload_bytes * workers
    adapters = settings.lora.max_cpu_loras * ADAPTER_BYTES if settings.lora is not None else 0
    memory = _whole(BASE_MEMORY + MEMORY_EACH * workers + loading + shm + offload + adapters)
    cores = BASE_CORES + CORES_EACH * workers
    fetched = _fetched(task)
    scratch = _ends(spec.storage.weights) or bool(fetched)
    disk = _whole(sum(fetched.values()) * 11 // 10 + CACHES) if scratch else 0
    if slot.gpu.vendor is Vendor.CPU:
        size = cpu_size(task, slot)
        cores, memory = size.cores, _whole(size.memory_bytes + shm)
    resources = PodResources(
        resource=slot.hardware.resource,
        devices=shape.devices,
        cpu_millis=cores * 1000,
        memory_bytes=memory,
        shm_bytes=shm,
        disk_bytes=disk,
    )
    return resources, (
        _value(
            "cpu_millis", f"{cores}000m", f"{BASE_CORES} + {CORES_EACH} a device", {"devices": str(workers)}
        ),
        _value(
            "memory_bytes",
            format_gib(memory),
            f"{format_gib(BASE_MEMORY)} + {format_gib(MEMORY_EACH)} a device + shard being read + /dev/shm + offload",
            {
                "devices": str(workers),
                "shard": format_gib(loading),
                "shm": format_gib(shm),
                "offload": format_gib(offload + adapters),
            },
        ),
        _value(
            "shm_bytes",
            format_gib(shm),
            "1 GiB + 1 GiB a rank of the pod, at most 16 GiB; one ring of 160 MiB where there is one rank",
            {"ranks": str(workers)},
        ),
        _value(
            "disk_bytes",
            format_gib(disk),
            ("1.1 x what is fetched + caches" if fetched else "caches")
            if scratch
            else "0: a volume holds the weights",
            {**{what: format_gib(size) for what, size in fetched.items()}, "caches": format_gib(CACHES)},
        ),
    )


def _fetched(task: Task) -> dict[str, int]:
    """Bytes that are fetched onto volumes that end with the pod, by what they are: as they are stored, which is more than a model that is
    quantized while it is loaded takes in memory."""
    spec, adapters = task.intent.spec, task.intent.spec.adapters
    draft = spec.speculative.model if spec.speculative is not None else None
    weights, cache = spec.storage.weights, spec.storage.cache
    in_image = weights is not None and weights.image is not None
    # Caches are beside the weights, unless these can only be read.
    beside = cache is None and not in_image and not (weights is not None and weights.is_read_only)
    caches_end = _ends(weights if beside else cache)
    found = {}
    if caches_end if in_image else _ends(weights):
        if spec.model.scheme in FETCHED and not in_image:
            found["weights"] = task.model.weights.on_storage
        if task.draft is not None and draft is not None and scheme_of(draft) in FETCHED:
            found["draft"] = task.draft.weights.on_storage
        if adapters is not None and not adapters.runtime_loading:
            count = sum(scheme_of(item.source) in FETCHED for item in adapters.items)
            found["adapters"] = count * ADAPTER_BYTES
    if adapters is not None and adapters.runtime_loading and caches_end:
        # The list may grow while pods run, and their volumes do not.
        found["adapters"] = MOST_ADAPTERS * ADAPTER_BYTES
    return {what: size for what, size in found.items() if size}


def _ends(volume: Volume | None) -> bool:
    """Whether a volume ends with the pod."""
    return volume is None or volume.empty_dir is not None


def _shared(layout: Layout, workers: int) -> int:
    if layout.gpus == 1:
        return _whole(QUEUE_BYTES)
    return min(MOST_SHARED_GIB, 1 + workers) * GIB


def _whole(amount: int) -> int:
    """The amount, rounded up to a multiple of the step."""
    return -(-amount // STEP) * STEP


def _value(name: str, value: str, formula: str, inputs: dict[str, str]) -> Value:
    return explained(
        name,
        value,
        formula,
        inputs=inputs,
        origin=Origin.DERIVED,
        source="layout and settings",
        changes="the layout; podPatches change it for one deployment",
    )
