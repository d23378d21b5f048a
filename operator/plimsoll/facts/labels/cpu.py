"""Nodes without accelerators. Each has one device, which is the whole host, of the best kind that its labels show.

No label says how fast the memory is, so the kinds in the catalogue have the figures of a common CPU. How much of the host is free is told
by the pool's free host memory and cores, and not by its number of free devices.
"""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.labels.device import Device, Pair

RESOURCE = "cpu"
_ARCH = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
_FEATURE = "feature.node.kubernetes.io/cpu-cpuid."


def host(labels: Mapping[str, str], memory_bytes: int | None) -> Device | None:
    """The host as a device; None where the node does not say how much memory it can give."""
    if memory_bytes is None:
        return None
    kind, pins = _kind(labels)
    return Device(gpu=gpu_named(kind), memory_bytes=memory_bytes, resource=RESOURCE, count=1, pins=pins)


def _kind(labels: Mapping[str, str]) -> tuple[str, tuple[Pair, ...]]:
    """The catalogue's name of the kind, and the labels that show it."""
    arch = tuple((key, labels[key]) for key in _ARCH[:1] if labels.get(key))
    if any(labels.get(key) == "arm64" for key in _ARCH):
        return "CPU-ARM", arch
    for feature, kind in (("AMXBF16", "CPU-AMX"), ("AVX512F", "CPU-AVX512")):
        if labels.get(_FEATURE + feature) == "true":
            return kind, (*arch, (_FEATURE + feature, "true"))
    return "CPU-AVX2", arch
