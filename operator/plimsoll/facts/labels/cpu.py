"""Nodes without accelerators: one device each, the whole host, of the best kind that its labels vouch for.

How fast the memory is no label says, so the kinds of the catalogue carry a common socket's figures. How much of the host is
free changes with every pod; it stands in the pool's free host memory and cores, not in counts of devices.
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
    """The catalogue's name, and the labels that vouch for it."""
    arch = tuple((key, labels[key]) for key in _ARCH[:1] if labels.get(key))
    if any(labels.get(key) == "arm64" for key in _ARCH):
        return "CPU-ARM", arch
    for feature, kind in (("AMXBF16", "CPU-AMX"), ("AVX512F", "CPU-AVX512")):
        if labels.get(_FEATURE + feature) == "true":
            return kind, (*arch, (_FEATURE + feature, "true"))
    return "CPU-AVX2", arch
