"""How large a replica on CPUs is: nothing is profiled there, so cache, memory and cores are all said beforehand."""

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
"""Interpreter, libraries, tokenizer, and the buffers of a step."""
HOST_PART: Final = 0.8
"""Of a host that one replica may take when nothing is said."""
MOST_CORES: Final = 32
"""More cores than one memory controller feeds make decoding no faster."""
FEWEST_CORES: Final = 4
"""Where nobody says how many a host has."""
SMALL_HOST: Final = 8
"""Below it one core is left to the system, else two; a pod that asks for all of a host's never finds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSize:
    cache_bytes: int
    memory_bytes: int
    """Of the pod, cache and weights included."""
    cores: int


def cpu_size(task: Task, slot: Slot) -> CpuSize:
    """The user's numbers where they are given; else a cache for a modest load, within most of a host."""
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
    """What the smallest host has beside what runs on every host."""
    hosts = [pool.host_cpus for pool in slot.pools if pool.host_cpus is not None]
    if not hosts:
        return FEWEST_CORES
    least = min(hosts)
    return max(1, min(MOST_CORES, least - (1 if least < SMALL_HOST else 2)))


def _whole(size: str) -> int:
    """The engine reads whole GiB, and takes zero for half of the host."""
    return max(1, parse_bytes(size) // GIB) * GIB


def _wanted(task: Task) -> int:
    """One request of the longest kind and a modest number of typical ones, in whole GiB."""
    each = kv_bytes_per_token(task.model.architecture, Layout(), None)
    tokens = max(task.context.tokens, ASSUMED_CONCURRENCY * task.intent.lengths.live)
    return ceil(each * tokens * 1.1 / GIB) * GIB
