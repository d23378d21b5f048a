"""What one scrape of one replica says, in the same form for every engine and version.

All that read metrics (from a Prometheus, from a pod, in a simulation) make this form, and `control` works with it. A value that was not
exported is None, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.facts.histograms import Histogram
from plimsoll.values import light

PodKey = tuple[str, str]
"""Namespace and name of a pod; where histograms are summed by set, namespace and set."""


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class PodSample:
    """The metrics of one replica at one time. Of a group of pods only those have any that take requests."""

    pod: str
    """UID of the pod, which is the first where a replica has several; its name where the source has no UIDs."""
    at: float
    """When it was measured, in seconds since the epoch."""
    kv_fraction: float | None = None
    running: float | None = None
    waiting: float | None = None
    kv_tokens: int | None = None
    block_size: int | None = None
    # Counters as they are exported: they only grow, until the engine restarts.
    preemptions: float | None = None
    finished: float | None = None
    errors: float | None = None
    """Requests that ended in an error; they are not among the finished."""
    refused: float | None = None
    """Requests that found the queue full; they are in no other count."""
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    ttft: Histogram | None = None
    itl: Histogram | None = None
    e2e: Histogram | None = None
    prompt_lengths: Histogram | None = None
    output_lengths: Histogram | None = None


COUNTERS: Final = (
    "preemptions",
    "finished",
    "errors",
    "refused",
    "prompt_tokens",
    "generation_tokens",
    "prefix_queries",
    "prefix_hits",
)
HISTOGRAMS: Final = ("ttft", "itl", "e2e", "prompt_lengths", "output_lengths")
