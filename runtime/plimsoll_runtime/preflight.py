"""Checks, before anything is loaded, whether the machine is what the plan counts on: what is seen, what is needed, where they differ.

Seeing does I/O, judging does not. Only what is certain ends a start; what cannot be seen from here is left to the engine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plimsoll_runtime.address import has, number_of, value_of
from plimsoll_runtime.amd import KFD
from plimsoll_runtime.cuda import built_for
from plimsoll_runtime.failure import FULL_DISK, Failure, Warned
from plimsoll_runtime.gpus import Devices
from plimsoll_runtime.remedies import (
    ASK_FOR_GPUS,
    CORDON_THE_NODE,
    FREE_THE_GPU,
    LARGER_DISK,
    LARGER_SHARED_MEMORY,
    OPEN_THE_DEVICES,
    SHOW_THE_GPUS,
    WRITABLE_FOLDER,
)

GIB = 1 << 30
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the container's own mount
TEMPORARY = "/tmp"  # noqa: S108 - the container's own folder
LEAST_SHARED = 128 << 20
"""A queue between workers is 160 MiB, of which not all is used at once; Kubernetes gives 64 MiB where nobody asks for more."""
SLACK_PERMILLE = 20
"""Part of the memory that the engine takes by which free memory may be too small, as drivers keep some of it."""
SAME_PERMILLE = 900
"""Of the memory that a plan counts on, what the same device shows at least: error correction alone takes a sixteenth, and what is
published of one product differs by a thirtieth. What shows less is another device: of no two sizes of a product is the smaller
nearer to the larger."""
DEFAULT_UTILIZATION = 0.92


class Need(NamedTuple):
    """What the plan counts on; None where nothing is asked."""

    gpus: int | None = None
    product: str | None = None
    gpu_bytes: int | None = None
    """Total memory of each GPU."""
    utilization: float | None = None
    """Share of each GPU's memory that has to be free."""
    capability: tuple[int, int] | None = None
    shared_bytes: int | None = None
    host_bytes: int | None = None
    disks: tuple[tuple[str, int], ...] = ()
    writable: tuple[str, ...] = ()
    nvlink: bool | None = None
    """Whether ranks that share every layer are to reach one another by it."""
    start_seconds: int | None = None
    """How long a start may take in all, so for how long another pod of the group is waited for."""
    cuda: tuple[int, int] | None = None
    """The CUDA version that the engine of this image was built for, which no plan says."""


class Seen(NamedTuple):
    """What the machine has; None where it cannot be seen."""

    devices: Devices | None = None
    shared_bytes: int | None = None
    host_bytes: int | None = None
    disks: Mapping[str, int] = {}
    """Free bytes by folder."""
    unwritable: Mapping[str, int] = {}
    """Folders, and the number of the system's error."""


class PlanUnreadable(ValueError):
    """The plan's file; the message names the field, the value and what would be right."""


_FIELDS: Mapping[str, tuple[str, type]] = {
    "gpus": ("gpus", int),
    "product": ("product", str),
    "gpuBytes": ("gpu_bytes", int),
    "utilizationPermille": ("utilization", int),
    "capability": ("capability", str),
    "sharedMemoryBytes": ("shared_bytes", int),
    "hostMemoryBytes": ("host_bytes", int),
    "diskBytes": ("disks", dict),
    "writable": ("writable", list),
    "nvlink": ("nvlink", bool),
    "startSeconds": ("start_seconds", int),
}


def need_of(body: Mapping[str, Any]) -> Need:
    """From the plan's JSON. Fields that are not known here are a newer operator's, and pass."""
    found: dict[str, Any] = {}
    for name, (field, kind) in _FIELDS.items():
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            raise PlanUnreadable(f"{name} is {value!r}; it must be a JSON {kind.__name__}")
        found[field] = value
    if "utilization" in found:
        found["utilization"] /= 1000
    if "capability" in found:
        found["capability"] = _capability(found["capability"])
    if "disks" in found:
        found["disks"] = tuple(sorted((path, _size_of(path, said)) for path, said in found["disks"].items()))
    if "writable" in found:
        found["writable"] = tuple(map(str, found["writable"]))
    return Need(**found)


def _size_of(path: str, said: object) -> int:
    if not isinstance(said, int) or isinstance(said, bool):
        raise PlanUnreadable(f"diskBytes of {path} is {said!r}; it must be a JSON int")
    return said


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise PlanUnreadable(f"capability is {text!r}; it must read like 9.0")
    return int(major), int(minor)


def with_argv(need: Need, argv: Sequence[str], environment: Mapping[str, str]) -> Need:
    """What the engine's own words ask for, where the plan does not say it."""
    ranks = _ranks(argv)
    on_cpu = "VLLM_CPU_KVCACHE_SPACE" in environment or environment.get("VLLM_TARGET_DEVICE") == "cpu"
    found: dict[str, Any] = {}
    if need.shared_bytes is None and ranks > 1:
        found["shared_bytes"] = LEAST_SHARED
    if on_cpu:
        asked = environment.get("VLLM_CPU_KVCACHE_SPACE", "")
        if need.host_bytes is None and asked.isdecimal():
            found["host_bytes"] = int(asked) * GIB * ranks  # each has a cache of its own
        return need._replace(**found)
    found["cuda"] = built_for(argv, environment)
    if need.gpus is None:
        found["gpus"] = ranks
    if need.utilization is None and value_of(argv, "--device-ids") is None:
        found["utilization"] = _utilization(argv)
    return need._replace(**found)


def _ranks(argv: Sequence[str]) -> int:
    """In this pod."""
    if "ray" in (
        value_of(argv, "--distributed-executor-backend"),
        value_of(argv, "--data-parallel-backend", "-dpb"),
    ):
        return 1  # the others are where Ray finds them
    one = (number_of(argv, "--tensor-parallel-size", "-tp") or 1) * (
        number_of(argv, "--pipeline-parallel-size", "-pp") or 1
    )
    data = number_of(argv, "--data-parallel-size", "-dp") or 1
    nodes = number_of(argv, "--nnodes", "-n") or 1
    if has(argv, "--data-parallel-external-lb") or value_of(argv, "--data-parallel-rank", "-dpn") is not None:
        return max(1, one // max(1, nodes // data))  # each of the others is an engine of its own
    if nodes > 1:
        return max(1, one * data // nodes)
    local = number_of(argv, "--data-parallel-size-local", "-dpl")
    return max(1, one * (data if local is None else local))


def _utilization(argv: Sequence[str]) -> float:
    text = value_of(argv, "--gpu-memory-utilization", "--device-memory-utilization")
    try:
        return float(text) if text is not None else DEFAULT_UTILIZATION
    except ValueError:
        return DEFAULT_UTILIZATION


def misfits(need: Need, seen: Seen) -> list[Failure]:
    """The failures; the first one is to be told."""
    found = [] if seen.devices is None else _gpu_misfits(need, seen.devices)
    if (
        need.shared_bytes is not None
        and seen.shared_bytes is not None
        and seen.shared_bytes < need.shared_bytes
    ):
        found.append(
            Failure(
                "SharedMemory",
                f"{SHARED_MEMORY} holds {_mib(seen.shared_bytes)} MiB, and the workers need {_mib(need.shared_bytes)}",
                LARGER_SHARED_MEMORY,
            )
        )
    if need.host_bytes is not None and seen.host_bytes is not None and seen.host_bytes < need.host_bytes:
        found.append(
            Failure(
                "HostMemoryTaken",
                f"{_gib(need.host_bytes)} GiB of the machine's memory are needed, and {_gib(seen.host_bytes)} are there",
                "a larger memory limit (spec.topology.cpu.memory, or spec.podPatches), or a smaller KV cache",
            )
        )
    for path, size in need.disks:
        free = seen.disks.get(path)
        if free is not None and free < size:
            message = f"{path} has {_gib(free)} GiB free, and {_gib(size)} are needed"
            found.append(Failure("DiskFull", message, LARGER_DISK))
    for path, number in sorted(seen.unwritable.items()):
        message = f"{path} cannot be written: {os.strerror(number)}"
        if number in FULL_DISK:
            found.append(
                Failure("DiskFull", message, "a larger volume there: spec.storage, or spec.podPatches")
            )
            continue
        found.append(Failure("NotWritable", message, WRITABLE_FOLDER))
    return found


def warnings(need: Need, seen: Seen) -> list[Warned]:
    """What only costs speed, so that the engine runs all the same."""
    if not need.nvlink or seen.devices is None or seen.devices.nvlink is not False:
        return []
    message = "the plan counts on NVLink between the GPUs of this pod, and not all of them reach one another by it: answers come more slowly than planned"
    remedy = (
        "nvidia-smi topo -m in this container shows the links; GPUs of other nodes (spec.topology.nodeSelector), or"
        " nodeClasses[].interconnect: pcie in the operator's config, so that plans count on what is there"
    )
    return [Warned("NoNvlink", message, remedy)]


def _gpu_misfits(need: Need, devices: Devices) -> list[Failure]:
    found, gpus = [], devices.gpus
    if need.cuda is not None and devices.cuda is not None and devices.cuda[0] < need.cuda[0]:
        runs, wanted = "{}.{}".format(*devices.cuda), "{}.{}".format(*need.cuda)
        message = f"the engine is built for CUDA {wanted}, and the node's driver {devices.driver} runs CUDA {runs} at most"
        remedy = (
            "update the node's driver, choose other nodes by spec.topology.nodeSelector, or an image that is built for"
            f" CUDA {devices.cuda[0]}: spec.engine.image"
        )
        found.append(Failure("Driver", message, remedy))
    opened = 0 if KFD in devices.shut else len(gpus) - len(devices.shut)
    if need.gpus and devices.shut and opened < need.gpus:
        shut = ", ".join(devices.shut)
        message = f"this container sees GPUs of AMD's, and {shut} are not in it or not its user's to open"
        found.append(Failure("Driver", message, OPEN_THE_DEVICES))
    usable = len(gpus) + devices.unknown
    if need.gpus is not None and devices.failed and usable < need.gpus:
        found.append(Failure("GpuFault", "; ".join(devices.failed), CORDON_THE_NODE))
    here = usable + len(devices.failed)
    if need.gpus is not None and here < need.gpus:
        message = f"the plan needs {need.gpus} GPUs, and this container sees {here}"
        if devices.hiding:
            message += f", since it is told {devices.hiding}"
        found.append(Failure("TooFewGpus", message, SHOW_THE_GPUS if devices.hiding else ASK_FOR_GPUS))
    # Any of those that are not known may be among the first ones, which the engine takes.
    judged = gpus if need.gpus is None else gpus[: max(0, need.gpus - devices.unknown)]
    for place, gpu in enumerate(judged):
        about = f"GPU {place} ({gpu.name})"
        if need.product is not None and not _same(need.product, gpu.name):
            message = f"{about} is not the {need.product} that the plan counts on"
            found.append(Failure("WrongGpu", message, "check the labels of the node: kubectl describe node"))
        if need.gpu_bytes is not None and gpu.total * 1000 < need.gpu_bytes * SAME_PERMILLE:
            message = f"{about} has {_gib(gpu.total)} GiB, and the plan counts on {_gib(need.gpu_bytes)}"
            found.append(Failure("WrongGpu", message, "check the labels of the node: kubectl describe node"))
        if need.capability is not None and gpu.capability is not None and gpu.capability < need.capability:
            said, wanted = "{}.{}".format(*gpu.capability), "{}.{}".format(*need.capability)
            message = f"{about} has compute capability {said}, and the plan needs {wanted}"
            found.append(Failure("GpuTooOld", message, "a newer class of GPU: spec.topology.gpuProducts"))
        if need.utilization is not None and gpu.free * 1000 < gpu.total * need.utilization * (
            1000 - SLACK_PERMILLE
        ):
            message = (
                f"only {_gib(gpu.free)} of {_gib(gpu.total)} GiB of {about} are free, and the engine takes"
                f" {_gib(round(gpu.total * need.utilization))}"
            )
            found.append(Failure("GpuMemoryTaken", message, FREE_THE_GPU))
    return found


def _same(product: str, name: str) -> bool:
    """H100 is in NVIDIA H100 80GB HBM3; words are compared, not letters, so that A10 is not in A100."""
    said = name.upper().replace("-", " ").split()
    return all(word in said for word in product.upper().replace("-", " ").split())


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"


def _mib(size: int) -> int:
    return size >> 20


def settled(need: Need, seen: Callable[[], Seen], wait: Callable[[], bool]) -> tuple[Seen, list[Failure]]:
    """Memory that is taken may be an earlier engine's, whose end takes the driver a moment; `wait` says how long that may be."""
    while True:
        now = seen()
        found = misfits(need, now)
        if not found or found[0].word != "GpuMemoryTaken" or not wait():
            return now, found


def see(need: Need, devices: Devices | None) -> Seen:
    """What there is of what is needed; `devices` are asked for elsewhere, since that may take seconds."""
    unwritable = {}
    for path in (_temporary(), *need.writable):
        refused = _refused(Path(path))
        if refused is not None:
            unwritable[path] = refused
    return Seen(
        devices=devices,
        shared_bytes=_size(SHARED_MEMORY),
        host_bytes=host_memory(),
        disks={path: free for path, _ in need.disks if (free := _free(path)) is not None},
        unwritable=unwritable,
    )


def _temporary() -> str:
    """The folder for temporary files; the usual one where there is none that could be written, so that it is told of."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return TEMPORARY


def _refused(folder: Path) -> int | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return error.errno or errno.EIO
    return None


def _size(path: str) -> int | None:
    try:
        return shutil.disk_usage(path).total
    except OSError:
        return None


def _free(path: str) -> int | None:
    folder = Path(path)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def host_memory(root: Path = Path("/")) -> int | None:
    """What this container may take: its limit, or the machine's memory where it has none."""
    found = []
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            found.append(int(text))
    with contextlib.suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found) if found else None
