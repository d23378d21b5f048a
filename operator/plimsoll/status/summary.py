"""The pinned plan in the few fields of the status that people and GitOps tools read; its ConfigMap has all of it."""

from __future__ import annotations

from typing import Final, Literal

from plimsoll.api.v1alpha1.status import Alternative, LedgerTerm, PlanStatus
from plimsoll.planning.memory.ledger import Verdict
from plimsoll.planning.plan import Alternative as Considered
from plimsoll.planning.plan import Plan, PlanSet

MOST_ALTERNATIVES: Final = 3
LONGEST_TEXT: Final = 1024
"""Characters that most texts of the status may have."""
VERDICTS: Final[dict[Verdict, Literal["Fits", "Tight", "DoesNotFit"]]] = {
    Verdict.FITS: "Fits",
    Verdict.TIGHT: "Tight",
    Verdict.DOES_NOT_FIT: "DoesNotFit",
}


def plan_status(plan: Plan, *, config_map: str | None, pinned_at: str | None) -> PlanStatus:
    lead = plan.sets[0] if plan.sets else plan.nearest
    if lead is None:
        return PlanStatus(digest=plan.digest, config_map=config_map, reason=cut(plan.choice))
    capacity, predicted = lead.ledger.capacity, lead.performance
    return PlanStatus(
        digest=plan.digest,
        config_map=config_map,
        layout=str(lead.layout),
        gpu=", ".join(dict.fromkeys(str(one.hardware) for one in plan.used or (lead,))),
        gpus_per_replica=lead.devices_per_replica,
        nodes_per_replica=lead.pods_per_replica,
        context_tokens=lead.settings.max_model_len,
        max_sequences=lead.settings.max_num_seqs,
        kv_tokens=None if capacity is None else int(capacity.tokens.mid),
        utilization_percent=_percent(lead),
        verdict=VERDICTS[lead.ledger.verdict],
        oom_risk=str(lead.ledger.risk),
        cost_per_hour=None if plan.cost is None else plan.cost.per_hour,
        predicted_ttft_ms=None if predicted is None else round(predicted.ttft_ms.high),
        predicted_itl_ms=None if predicted is None else round(predicted.tpot_ms.high),
        predicted_running=_running(plan),
        ledger=tuple(
            LedgerTerm(name=term.name, bytes=max(0, round(term.bytes.mid)), source=str(term.certainty))
            for term in lead.ledger.terms
        ),
        alternatives=tuple(_alternative(other) for other in plan.alternatives[:MOST_ALTERNATIVES]),
        reason=cut(plan.choice),
        pinned_at=pinned_at,
    )


def _alternative(other: Considered) -> Alternative:
    """An alternative by its first set, whose text reads `replicas x layout on hardware`."""
    _, _, rest = other.sets[0].partition(" x ")
    layout, _, gpu = rest.partition(" on ")
    return Alternative(layout=layout, gpu=gpu, cost_per_hour=other.cost.per_hour, reason=cut(other.reason))


def _running(plan: Plan) -> int | None:
    """How many requests run on a replica where it answers as predicted; None where nothing measured can be held against that: engines of
    several kinds have one name for their gaps, and of drafts and weights outside the GPU no prediction knows what they cost."""
    if len(plan.used) != 1 or (predicted := plan.used[0].performance) is None:
        return None
    settings = plan.used[0].settings
    return None if settings.speculation is not None or settings.weight_offload_bytes else predicted.running


def _percent(lead: PlanSet) -> int | None:
    """The share of memory that the engine takes; None where its cache has a fixed size instead."""
    return (
        None if lead.settings.kv_cache_bytes is not None else min(100, round(lead.settings.utilization * 100))
    )


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
