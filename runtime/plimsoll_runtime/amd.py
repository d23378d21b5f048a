"""AMD's GPUs that a program of this container can compute on: those whose files are here, that the kernel's compute driver knows, and
that no variable hides.

ROCm counts GPUs in the order of the compute driver's nodes, and its variables name them by their places there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from plimsoll_runtime.gpus import Devices, Gpu

KFD = "/dev/kfd"
"""By which programs reach all of them; each has a file of its own beside it."""
_AMD = "0x1002"
_NODES = "sys/class/kfd/kfd/topology/nodes"
_FIRST_MINOR = 128
"""Of files by which programs compute."""
_OF_ROCM = "ROCR_VISIBLE_DEVICES"
_OF_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""The first of them that says something; its numbers are places among those that ROCm's own list leaves."""


def _may_open(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def amd_devices(
    environment: Mapping[str, str], root: Path = Path("/"), may_open: Callable[[Path], bool] = _may_open
) -> Devices | None:
    """None where nothing is certain."""
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
    """By the names of their files in this container; the kernel's own folders show all of the machine. Of a GPU that is cut they tell
    the whole's memory by its first part and nothing by the others, so that nobody can be asked there."""
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
    """The compute driver's GPUs, in its order; None where it does not say which file is whose. CPUs are nodes too, without a number,
    and a GPU that this container was not given cannot be read."""
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
    """Those that variables leave, and the variables that leave some out; None where these name them in another way than by numbers."""
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
    """By their numbers, up to the first that is nobody's; an empty list is of none. Which have other names than numbers nobody can
    tell from here."""
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
