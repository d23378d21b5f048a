"""Tokens come slower, or with longer gaps, than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert
from plimsoll.alerts.promised import over_promise, promise
from plimsoll.alerts.records import ITL, ITL_MEDIAN

ITL_OVER_SLO: Final = Alert(
    name="ITLOverSLO",
    summary=f"Gaps between tokens of {WHO} last longer than promised.",
    description=(
        f"99 of 100 take up to {{{{ $value | humanizeDuration }}}}, and {promise('itl_p99')} is promised in the resource's own spec.slo. "
        "Too many requests run at once, long prompts cut in, or preempted answers stand still: Preemption and PrefillContention tell "
        "these apart. Fewer sequences (let retuning work: spec.tuning.mode auto), more replicas (spec.scaling.max), or promise less."
    ),
    levels=over_promise(ITL, ITL_MEDIAN, "itl_p99"),
)
