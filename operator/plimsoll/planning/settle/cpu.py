"""How large a replica on CPUs is. The engine profiles nothing there, so cache, memory and cores are all set beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from plimsoll.api.quantity import parse_bytes
from plimsoll.facts.gpus import GIB
from plimsoll.planning.ask.intent import ASSUMED_CONCURRENCY
from plimsoll.planning.ask.task import Task
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv import kv_bytes_per_token
from plimsoll.planning.placing.placement import Slot

BESIDE: Final = 8 * GIB
"""Bytes for the interpreter, libraries, tokenizer, and the buffers of a step."""
HOST_PART: Final = 0.8
"""Share of a host's memory that one replica may take when the user does not say."""
MOST_CORES: Final = 32
"""Cores beyond which decoding becomes no faster, as one memory controller feeds no more."""
FEWEST_CORES: Final = 4
"""Cores that are asked for where it is not known how many a host has."""
SMALL_HOST: Final = 8
"""Hosts with fewer cores keep one for the system, others two. A pod that asked for all cores of a host would never find one."""
CACHE_MARGIN: Final = 1.1
"""How many times what the tokens take the cache is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSize:
    """What one replica on CPUs gets."""

    cache_bytes: int
    memory_bytes: int
    """Memory of the pod, cache and weights included."""
    cores: int


def cpu_size(task: Task, slot: Slot) -> CpuSize:
    """The user's numbers where there are any; else a cache for a modest load, within most of a host's memory."""
    asked = task.intent.spec.topology.cpu
    fixed = task.intent.spec.memory.kv_cache_size
    if asked is not None and asked.kv_cache_size is not None:
        fixed = asked.kv_cache_size
    resident = task.model.weights.total + BESIDE
    if asked is not None and asked.memory is not None:
        memory = parse_bytes(asked.memory)
        cache = _whole(fixed) if fixed is not None else max(0, memory - resident) // GIB * GIB
    else:
        most = max(0, int(slot.hardware.memory_bytes * HOST_PART) - resident) // GIB * GIB
        cache = _whole(fixed) if fixed is not None else min(most, _wanted(task))
        memory = resident + cache
    cores = asked.cores if asked is not None and asked.cores is not None else _cores(slot)
    return CpuSize(cache_bytes=cache, memory_bytes=memory, cores=cores)


def _cores(slot: Slot) -> int:
    """The cores of the smallest host, less those that are kept for the system."""
    hosts = [pool.host_cpus for pool in slot.pools if pool.host_cpus is not None]
    if not hosts:
        return FEWEST_CORES
    least = min(hosts)
    return max(1, min(MOST_CORES, least - (1 if least < SMALL_HOST else 2)))


def _whole(size: str) -> int:
    """A size in whole GiB, as the engine reads it, and at least one, as the engine would take zero to mean half of the host."""
    return max(1, parse_bytes(size) // GIB) * GIB


def _wanted(task: Task) -> int:
    """The cache that holds the longest request, or a modest number of typical ones if that is more, in whole GiB."""
    each = kv_bytes_per_token(task.model.architecture, Layout(), None)
    tokens = max(task.context.tokens, ASSUMED_CONCURRENCY * task.intent.lengths.live)
    return ceil(each * tokens * CACHE_MARGIN / GIB) * GIB
