"""The GPUs that this container sees, as NVIDIA's driver tells by its own library; where that is not here, AMD's are looked for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from plimsoll_runtime.amd import amd_devices
from plimsoll_runtime.gpus import Devices, Gpu

LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96
_NVLINK, _OK, _UNKNOWN = 2, 0, 6
_BROKEN = {
    8: "INSUFFICIENT_POWER",
    11: "IRQ_ISSUE",
    15: "GPU_IS_LOST",
    16: "RESET_REQUIRED",
    999: "UNKNOWN",
}
"""Answers of a GPU that no program can use before somebody sees to it; UNKNOWN is also what one says that was lost before the driver looked.
Others say nothing of it: one that shares the machine's memory does not support the question, one of somebody else's does not permit it."""
_A = TypeVar("_A")
_B = TypeVar("_B")


class NvmlError(Exception):
    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} answers {code}")
        self.code = code


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def devices(environment: Mapping[str, str]) -> Devices | None:
    """None means that nothing is known, which is not the same as no GPU: without library and driver there is nobody to ask."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return amd_devices(environment)
    try:
        return nvidia_devices(library)
    except (NvmlError, AttributeError):  # a library without a driver, or older than all that is asked
        return None


def nvidia_devices(library: Any) -> Devices:
    """`library` is NVML, or what behaves like it."""
    _call(library.nvmlInit_v2)
    try:
        refused: list[tuple[int, int]] = []
        whole = list(_answered(enumerate(range(_count(library))), partial(_handle, library), refused))
        parts = [(place, part) for place, handle in whole for part in _parts(library, handle)]
        gpus = [gpu for _, gpu in _answered(parts or whole, partial(_gpu, library), refused)]
        broken = [(place, code) for place, code in refused if code in _BROKEN]
        return Devices(
            gpus=tuple(gpus),
            driver=_text(library.nvmlSystemGetDriverVersion),
            nvlink=None if parts or len(whole) < 2 else _all_linked(library, [one for _, one in whole]),
            cuda=_cuda(library),
            failed=tuple(f"GPU {place} does not answer: {_BROKEN[code]} ({code})" for place, code in broken),
            unknown=len(refused) - len(broken),
        )
    finally:
        library.nvmlShutdown()


def _call(function: Any, *arguments: Any) -> None:
    code = function(*arguments)
    if code != _OK:
        raise NvmlError(getattr(function, "__name__", "nvml"), code)


def _text(function: Any, *arguments: Any) -> str:
    buffer = ctypes.create_string_buffer(_TEXT)
    _call(function, *arguments, buffer, ctypes.c_uint(_TEXT))
    return buffer.value.decode(errors="replace")


def _answered(
    devices: Iterable[tuple[int, _A]], ask: Callable[[_A], _B], refused: list[tuple[int, int]]
) -> Iterator[tuple[int, _B]]:
    """What each device answers, by its place. One that answers an error goes to `refused` with its code, and hides none of the others."""
    for place, device in devices:
        try:
            yield place, ask(device)
        except NvmlError as error:  # noqa: PERF203 - there are eight of them
            refused.append((place, error.code))


def _count(library: Any) -> int:
    count = ctypes.c_uint()
    _call(library.nvmlDeviceGetCount_v2, ctypes.byref(count))
    return count.value


def _handle(library: Any, index: int) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _call(library.nvmlDeviceGetHandleByIndex_v2, ctypes.c_uint(index), ctypes.byref(handle))
    return handle


def _parts(library: Any, handle: ctypes.c_void_p) -> Iterator[ctypes.c_void_p]:
    """Of a GPU that is cut (MIG), those that this container sees."""
    current, pending, most = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    if library.nvmlDeviceGetMigMode(handle, ctypes.byref(current), ctypes.byref(pending)) != _OK:
        return
    if not current.value:
        return
    if library.nvmlDeviceGetMaxMigDeviceCount(handle, ctypes.byref(most)) != _OK:
        return
    for index in range(most.value):
        part = ctypes.c_void_p()
        if (
            library.nvmlDeviceGetMigDeviceHandleByIndex(handle, ctypes.c_uint(index), ctypes.byref(part))
            == _OK
        ):
            yield part


def _gpu(library: Any, handle: ctypes.c_void_p) -> Gpu:
    memory, major, minor = _Memory(), ctypes.c_int(), ctypes.c_int()
    _call(library.nvmlDeviceGetMemoryInfo, handle, ctypes.byref(memory))
    code = library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
    return Gpu(
        name=_text(library.nvmlDeviceGetName, handle),
        total=memory.total,
        free=memory.free,
        capability=(major.value, minor.value) if code == _OK else None,
    )


def _cuda(library: Any) -> tuple[int, int] | None:
    """13000 is 13.0, and 12080 is 12.8. Asked of the driver's library, it is the one that the engine will load too."""
    version = ctypes.c_int()
    try:
        code = library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version))
    except AttributeError:  # older than the question
        return None
    return (version.value // 1000, version.value % 1000 // 10) if code == _OK and version.value > 0 else None


def _all_linked(library: Any, handles: list[ctypes.c_void_p]) -> bool | None:
    for place, one in enumerate(handles):
        for other in handles[place + 1 :]:
            status = ctypes.c_int()
            code = library.nvmlDeviceGetP2PStatus(one, other, ctypes.c_int(_NVLINK), ctypes.byref(status))
            if code != _OK or status.value == _UNKNOWN:
                return None
            if status.value != _OK:
                return False
    return True
