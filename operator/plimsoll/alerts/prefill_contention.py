"""Long prompts cut into running answers: most gaps between tokens are short, and some are long."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import ENOUGH, ITL, ITL_MEDIAN, PREEMPTED, PROMPT, SAME
from plimsoll.alerts.thresholds import LONG_PROMPT, PREEMPTED_WARN, SPIKE, SPIKE_LEAST

_SPIKES: Final = f"{ITL} > {SAME} ({SPIKE} * {ITL_MEDIAN}) and {ITL} > {SPIKE_LEAST}"

PREFILL_CONTENTION: Final = Alert(
    name="PrefillContention",
    summary=f"Long prompts interrupt running answers of {WHO}.",
    description=(
        "One gap between tokens in a hundred lasts {{ $value | humanizeDuration }}, many times the median, and prompts are long, while nothing "
        "is preempted: prefill and decode share the steps. Promise what users need in spec.slo.itlP99Ms, so that prompts are cut into "
        "smaller chunks, let retuning cut them (spec.tuning.allow: maxBatchedTokens), or serve long prompts by a deployment of their own."
    ),
    levels=(
        Level(
            "warning",
            f"{_SPIKES} and {SAME} {PROMPT} > {LONG_PROMPT} {ENOUGH} "
            f"unless {SAME} {PREEMPTED} > {PREEMPTED_WARN}",
            "10m",
            keeps=SWINGS,
        ),
    ),
)
