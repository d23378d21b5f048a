"""Users wait longer for the first token than the resource promises."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import WHO, Alert
from plimsoll.alerts.promised import over_promise, promise
from plimsoll.alerts.records import TTFT, TTFT_MEDIAN

TTFT_OVER_SLO: Final = Alert(
    name="TTFTOverSLO",
    summary=f"The first token of {WHO} takes longer than promised.",
    description=(
        f"99 of 100 take up to {{{{ $value | humanizeDuration }}}}, and {promise('ttft_p99')} is promised in the resource's own spec.slo. "
        "Where the queue grows, more replicas are needed (spec.scaling.max). Where it does not, prompts are long: give prefill "
        "more room (spec.workload.inputTokens as they are, so that the plan is made for them) or promise less. "
        "Requests that engines refuse (llm:refused:increase5m) have no first token and are not in this figure."
    ),
    levels=over_promise(TTFT, TTFT_MEDIAN, "ttft_p99"),
)
