"""The AMD GPUs on which a program in this container can compute: their device files are here, the kernel's compute driver knows them, and no
variable hides them.

ROCm numbers GPUs in the order of the compute driver's nodes, and its variables name them by these numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plimsoll_runtime.gpus import Devices, Gpu

KFD = "/dev/kfd"
"""The device file through which programs use all GPUs; each GPU has a further file of its own."""
_AMD = "0x1002"
_NODES = "sys/class/kfd/kfd/topology/nodes"
_FIRST_MINOR = 128
"""The first minor number of device files for computing."""
_OF_ROCM = "ROCR_VISIBLE_DEVICES"
_OF_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""Of these variables the first one that is set counts. Its numbers count the GPUs that are left by ROCm's own variable."""


def _may_open(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def amd_devices(
    environment: Mapping[str, str], root: Path = Path("/"), may_open: Callable[[Path], bool] = _may_open
) -> Devices | None:
    """The GPUs; None where they cannot be told for certain."""
    here = _here(root)
    if not here:
        return None
    computing = _computing(root)
    found = list(here) if computing is None else [name for name in computing if name in here]
    if not found:
        return None
    left = _shown(found, environment)
    if left is None:
        return None
    shown, hiding = left
    doors = [root / KFD[1:], *(root / "dev/dri" / name for name in shown)]
    shut = tuple(f"/{door.relative_to(root)}" for door in doors if not may_open(door))
    return Devices(tuple(here[name] for name in shown), shut=shut, hiding=hiding)


def _here(root: Path) -> dict[str, Gpu] | None:
    """The GPUs whose device files are in this container, by those files' names, as the kernel's folders show all of the machine. None where a
    GPU is partitioned: the kernel gives the whole GPU's memory for its first part and nothing for the others."""
    found = {}
    for node in sorted((root / "dev/dri").glob("renderD*")):
        folder = root / "sys/class/drm" / node.name / "device"
        try:
            if (folder / "vendor").read_text().strip() != _AMD:
                continue
            total = int((folder / "mem_info_vram_total").read_text())
            used = int((folder / "mem_info_vram_used").read_text())
        except (OSError, ValueError):
            return None
        if _is_cut(folder):
            return None
        found[node.name] = Gpu(name=_name(folder), total=total, free=total - used)
    return found


def _is_cut(folder: Path) -> bool:
    try:
        return (folder / "current_compute_partition").read_text().strip().upper() not in ("", "SPX")
    except OSError:
        return False


def _name(folder: Path) -> str:
    try:
        return (folder / "product_name").read_text().strip() or "AMD GPU"
    except OSError:
        return "AMD GPU"


def _computing(root: Path) -> list[str] | None:
    """The compute driver's GPUs in its order; None where it does not say which file belongs to which. CPUs are nodes too, without a file's
    number, and nodes of GPUs that this container does not have cannot be read."""
    found = []
    nodes = [node for node in (root / _NODES).glob("*") if node.name.isdecimal()]
    for node in sorted(nodes, key=lambda one: int(one.name)):
        try:
            if (node / "gpu_id").read_text().strip() == "0":
                continue
            said = re.search(r"^drm_render_minor (\d+)$", (node / "properties").read_text(), re.MULTILINE)
        except OSError:
            continue
        if said is None or int(said[1]) < _FIRST_MINOR:
            return None
        found.append(f"renderD{said[1]}")
    return found or None


def _shown(found: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], str] | None:
    """The GPUs that variables do not hide, and the variables that hide some; None where they name GPUs otherwise than by numbers."""
    shown, hiding = list(found), []
    by_hip = next((name for name in _OF_HIP if environment.get(name)), None)
    for name in (_OF_ROCM, by_hip):
        if name is None or name not in environment:
            continue
        left = _listed(environment[name], shown)
        if left is None:
            return None
        if len(left) < len(shown):
            hiding.append(f"{name}={environment[name]}")
        shown = left
    return shown, " and ".join(hiding)


def _listed(said: str, found: list[str]) -> list[str] | None:
    """The GPUs of a list of numbers, up to the first number that no GPU has; none for an empty list. None where it has other names than
    numbers, which cannot be resolved here."""
    words = [word.strip() for word in said.split(",")] if said else []
    if not all(re.fullmatch(r"-?\d+", word) for word in words):
        return None
    chosen: list[str] = []
    for number in map(int, words):
        if not 0 <= number < len(found):
            break
        if found[number] not in chosen:
            chosen.append(found[number])
    return chosen
