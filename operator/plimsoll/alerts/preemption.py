"""Running requests are thrown out of the KV pool and computed again: answers stand still in the middle."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import PREEMPTED, PREEMPTIONS, SAME
from plimsoll.alerts.thresholds import PREEMPTED_ACT, PREEMPTED_WARN, PREEMPTIONS_LEAST

PREEMPTION: Final = Alert(
    name="Preemption",
    summary=f"Engines of {WHO} preempt running requests.",
    description=(
        "{{ $value | humanizePercentage }} preemptions for each finished request: answers stop for seconds and work is done twice. "
        "Retuning cures it without a GPU more (spec.tuning.mode: auto, with watermark and maxSequences allowed); "
        "otherwise allow more replicas (spec.scaling.max) or declare the load as it is (spec.workload)."
    ),
    levels=(
        Level(
            "warning",
            f"{PREEMPTED} > {PREEMPTED_WARN}",
            "5m",
            f"above {PREEMPTED_WARN.value:.0%}",
            keeps=SWINGS,
        ),
        Level(
            "critical",
            f"{PREEMPTED} > {PREEMPTED_ACT} and {SAME} {PREEMPTIONS} >= {PREEMPTIONS_LEAST}",
            "5m",
            f"above {PREEMPTED_ACT.value:.0%}",
            keeps=SWINGS,
        ),
    ),
)
