"""Findings of a plan in words, which are the same in conditions, in the webhook's answer and on the command line."""

from __future__ import annotations

import re
from typing import Final

from plimsoll.api.problems import SHOWN, WHAT_HELPS
from plimsoll.planning.choice.late import PARTLY
from plimsoll.planning.choice.outcomes import LACKING
from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.plan import Finding, Outcome, Plan
from plimsoll.status.summary import cut

LONGEST_FIELD: Final = 256
LONGEST_WRONG: Final = 1024
LONGEST_REMEDY: Final = 512
"""With these bounds a sentence of field, value, what is wrong and remedy is shorter than a condition may be, so that no remedy is cut off."""


def sentence(finding: Finding) -> str:
    """The field, its value, what is wrong with it, and what helps."""
    wrong = where(finding)
    if not finding.remedy:
        return wrong
    asks = wrong.endswith("?")
    helps = WHAT_HELPS[1:] if asks else WHAT_HELPS
    return f"{wrong if asks else wrong.rstrip('.')}{helps}{cut(finding.remedy, LONGEST_REMEDY)}"


def where(finding: Finding) -> str:
    """What is wrong, with the field and its value once each: `topology.tensor (16): no layout ...`.

    Many messages name both themselves. Where one names the field alone, the value is put after it.
    """
    message = cut(finding.message, LONGEST_WRONG)
    if not finding.field:
        return message
    field, value = cut(finding.field, LONGEST_FIELD), _brief(finding.value or "")
    named = _whole(field, message)
    if named is None or (field.isalpha() and named.start() > 0):  # `replicas` is a word of any sentence
        return f"{field}{f' ({value})' if value else ''}: {message}"
    if not value or _whole(value.replace(",", ""), message.replace(",", "")):
        return message
    return f"{message[: named.end()]} ({value}){message[named.end() :]}"


def _whole(words: str, message: str) -> re.Match[str] | None:
    """Where a message has a field or a value as a whole, and not as a part of another one."""
    return re.search(rf"(?<![\w.]){re.escape(words)}(?![\w\[]|\.\w)", message)


def _brief(value: str) -> str:
    """A value on one line and short, whatever the user wrote there."""
    return cut(value if value.isprintable() else ascii(value)[1:-1], SHOWN)


def finding_of(plan: Plan | None, reason: str) -> Finding | None:
    return None if plan is None else next((found for found in plan.findings if found.reason == reason), None)


def missed_of(plan: Plan) -> Finding | None:
    """The finding that no layout keeps all of the latency target, for a single request or for 99 of 100 as users send them."""
    return finding_of(plan, UNATTAINABLE) or finding_of(plan, PARTLY)


def reading_of(plan: Plan) -> Finding | None:
    """The finding that the model is still being read, where that alone keeps a plan from being made."""
    return finding_of(plan, "ModelReading") if plan.outcome is Outcome.INVALID else None


def lacking_of(plan: Plan | None) -> Finding | None:
    """The finding that says what a plan with fewer replicas than wanted lacks."""
    if plan is None or plan.outcome is not Outcome.SHORT:
        return None
    return next((found for found in plan.findings if found.reason in LACKING), None)
