"""Nodes without accelerators: one device each, the whole host, of the best kind that its labels vouch for.

How fast the memory is no label says, so the kinds of the catalogue carry a common socket's figures. How much of the host is
free changes with every pod; it stands in the pool's free host memory and cores, not in counts of devices.
"""

from __future__ import annotations

from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.labels.device import Device

RESOURCE = "cpu"
_ARCH = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
_FEATURE = "feature.node.kubernetes.io/cpu-cpuid."


def host(labels: dict[str, str], memory_bytes: int | None) -> Device | None:
    """The host as a device; None where the node does not say how much memory it can give."""
    if memory_bytes is None:
        return None
    return Device(gpu=gpu_named(_kind(labels)), memory_bytes=memory_bytes, resource=RESOURCE, count=1)


def _kind(labels: dict[str, str]) -> str:
    if any(labels.get(key) == "arm64" for key in _ARCH):
        return "CPU-ARM"
    if labels.get(_FEATURE + "AMXBF16") == "true":
        return "CPU-AMX"
    return "CPU-AVX512" if labels.get(_FEATURE + "AVX512F") == "true" else "CPU-AVX2"
