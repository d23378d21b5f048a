"""What a plan found, as conditions say it."""

from __future__ import annotations

from typing import Final

from plimsoll.planning.plan import Finding, Outcome, Plan

LACKING: Final = frozenset(
    {"NoGPUs", "NoFreeGPUs", "BudgetExhausted", "Outranked", "NoHostMemory", "NoHostDisk", "HardwareGone"}
)


def sentence(finding: Finding) -> str:
    """A finding as one message of a condition."""
    where = f"{finding.field}: " if finding.field and not finding.message.startswith(finding.field) else ""
    return f"{where}{finding.message}" + (f". What helps: {finding.remedy}" if finding.remedy else "")


def finding_of(plan: Plan | None, reason: str) -> Finding | None:
    return None if plan is None else next((found for found in plan.findings if found.reason == reason), None)


def reading_of(plan: Plan) -> Finding | None:
    """What a plan still waits for that is not the spec's fault."""
    return finding_of(plan, "ModelReading") if plan.outcome is Outcome.INVALID else None


def lacking_of(plan: Plan | None) -> Finding | None:
    if plan is None or plan.outcome is not Outcome.SHORT:
        return None
    return next((found for found in plan.findings if found.reason in LACKING), None)
