"""Every number that an alert holds something against, in one table. Limits of latency are not here: they are the resource's own `slo`.

Where control goes by the same number it is control's: what an alert tells of keeps replicas, and what it asks to act on is acted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.control.latencies import ENOUGH
from plimsoll.control.law import LAW
from plimsoll.control.retune.symptoms import ACT


@dataclass(frozen=True, slots=True)
class Threshold:
    value: float
    meaning: str

    def __str__(self) -> str:
        return f"{self.value:g}"


KV_FULL: Final = Threshold(LAW.alert_kv, "share of the KV pool in use, mean of the replicas")
PREEMPTED_WARN: Final = Threshold(LAW.healthy_preempted, "preemptions for each finished request, to look at")
PREEMPTED_ACT: Final = Threshold(ACT, "preemptions for each finished request, to act on")
PREEMPTIONS_LEAST: Final = Threshold(3, "preemptions in 5 minutes below which there is nothing to act on")
QUEUE_LEAST: Final = Threshold(LAW.alert_waiting, "waiting requests below which a queue is no matter")
QUEUE_SOON: Final = Threshold(
    600, "seconds within which a queue, as it went for ten minutes, will be short again to be no matter"
)
QUEUE_SHARE: Final = Threshold(
    LAW.alert_queue, "waiting for each running request below which a queue is no matter"
)
QUEUE_UNEVEN: Final = Threshold(
    0.1, "shortest queue of a replica as a share of the longest in its set, below which the load is uneven"
)
SAMPLES: Final = Threshold(ENOUGH, "requests in 5 minutes below which a 99th percentile says nothing")
FEW_SAMPLES: Final = Threshold(
    5, "requests in 5 minutes below which nothing is held against a promise, not even what half of them took"
)
FAILURES_LEAST: Final = Threshold(
    5, "failed requests below which their share says nothing, in 5 minutes or in an hour"
)
SLO_ACT: Final = Threshold(2, "times the promised latency, from which it is no longer a warning")
SPIKE: Final = Threshold(
    5, "times the median gap between tokens that the 99th percentile must be to be a spike"
)
SPIKE_LEAST: Final = Threshold(0.1, "seconds that such a gap must last to matter")
LONG_PROMPT: Final = Threshold(
    4096, "tokens of the 95th percentile of prompts, from which prefill is suspected"
)
STALL: Final = Threshold(
    1.8,
    "times the predicted p99 gap between tokens, from which half of all gaps are too long for GPUs joined by PCIe",
)
"""Gaps that all last hardly more than 25 ms have a median of 37.5 ms, the middle of their bucket: less than this is no sign of anything."""
STALL_LEAST: Final = Threshold(
    0.025, "seconds that half of all gaps must last to be too long for GPUs joined by PCIe"
)
"""Below, buckets are too wide: gaps of 10 ms have a median of 17.5 ms."""
PREDICTION: Final = Threshold(0.1, "share by which the KV pool is smaller than the plan's")
RESTARTS: Final = Threshold(
    2,
    "restarts of replicas that had restarted within the hour before, in 15 minutes, or in an hour while a replica still fails",
)
FAILING: Final = Threshold(0.1, "share of turns that fail")

TABLE: Final[Mapping[str, Threshold]] = {
    name: value for name, value in sorted(globals().items()) if isinstance(value, Threshold)
}
