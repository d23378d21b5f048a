"""What a running engine says of itself at /metrics: who is answered, whether tokens move, and what the KV cache is.

Reads only what the supervisor needs; the operator and Prometheus read the rest at the source.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_RUNNING, _WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
_MOVES = frozenset(
    [
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "vllm:iteration_tokens_total_count",
        "vllm:request_success_total",
        "vllm:kv_cache_usage_perc",
    ]
)
"""Of a long prompt alone no counter moves before its first token, and the cache fills with each part of it."""
_CACHE = "vllm:cache_config_info"


class Reading(NamedTuple):
    running: int | None
    """Requests that the engine works on, over all of its ranks; None where it does not say."""
    waiting: int | None
    moved: float | None
    """Another one after every step of the engine; of no meaning by itself."""
    blocks: int | None = None
    block_size: int | None = None
    kv_tokens: int | None = None

    @property
    def idle(self) -> bool | None:
        if self.running is None or self.waiting is None:
            return None
        return self.running + self.waiting == 0


SILENT = Reading(None, None, None)
"""Of an engine that answers, and says nothing of itself."""


def reading_of(text: str) -> Reading:
    sums: dict[str, float] = {}
    cache: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("vllm:"):
            continue
        found = _SAMPLE.match(line)
        if found is None:
            continue
        name, labels, value = found[1], found[2], found[3]
        if name in _MOVES or name in (_RUNNING, _WAITING):
            sums[name] = sums.get(name, 0.0) + _number(value)
        elif name == _CACHE and not cache:
            cache = dict(_LABEL.findall(labels or ""))
    moves = [value for name, value in sums.items() if name in _MOVES]
    return Reading(
        running=_whole(sums.get(_RUNNING)),
        waiting=_whole(sums.get(_WAITING)),
        moved=sum(moves) if moves else None,
        blocks=_count(cache.get("num_gpu_blocks")),
        block_size=_count(cache.get("block_size")),
        kv_tokens=_count(cache.get("kv_cache_size_tokens")),
    )


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and int(text) > 0 else None
