"""What one scrape of one replica says, in Plimsoll's own words, whatever engine and version said it.

Who reads it (a Prometheus, the pod itself, a simulation) and who thinks about it (control) share this form. A value that was
not there is None, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.facts.histograms import Histogram
from plimsoll.values import light


@light
@dataclass(frozen=True, slots=True, kw_only=True)
class PodSample:
    """One replica, once. Only the leader of a group reports, so a sample is a replica's."""

    pod: str
    """UID of the (leader's) pod; its name where the source knows no UID."""
    at: float
    """Seconds since the epoch, when it was measured."""
    kv_fraction: float | None = None
    running: float | None = None
    waiting: float | None = None
    kv_tokens: int | None = None
    block_size: int | None = None
    max_num_seqs: int | None = None
    # Counters, as exported: they only grow, until the engine restarts.
    preemptions: float | None = None
    finished: float | None = None
    errors: float | None = None
    """Requests that ended in an error; they are not among the finished."""
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
    "prompt_tokens",
    "generation_tokens",
    "prefix_queries",
    "prefix_hits",
)
HISTOGRAMS: Final = ("ttft", "itl", "e2e", "prompt_lengths", "output_lengths")
