"""The end of a retune: how it is told, and how it ends where nobody is to look at it any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.control.retune.scene import named
from plimsoll.control.retune.steps import PAST_KEPT, UNKNOWN, Past, Phase, Requests, RetuneMemory, Step
from plimsoll.control.retune.turned import Event, Turned

LEFT: Final = "nobody looks at it any more, as the spec asks for neither scaling nor tuning"


def left(memory: RetuneMemory, now: float, *, until_pause: int, about: str = "") -> Turned:
    """Nobody looks at it any more, so what is tried goes unjudged: no failure. `about` is the set that it is of, where there are several."""
    step = memory.step
    if step is None or step.phase is Phase.DONE:
        return Turned(memory=replace(memory, step=None))
    # What was found out before is found out all the same.
    back = step.phase is Phase.ROLLING_BACK
    why = step.said if back else LEFT
    past = past_of(step, Phase.FAILED, named(about, why), now=now, tried=back)
    after = closed(memory, step, past, until_pause=until_pause)
    # As many as were kept: some still count, and only who looks can say which.
    kept = after.past[: max(PAST_KEPT, len(memory.past))]
    return Turned(memory=replace(after, past=kept), events=(told_of_end(step, Phase.FAILED, why),))


def past_of(
    step: Step, outcome: Phase, reason: str, *, now: float, tried: bool, requests: Requests = UNKNOWN
) -> Past:
    return Past(
        id=step.id,
        setting=step.setting,
        before=step.before,
        after=step.after,
        symptom=step.symptom,
        outcome=outcome,
        began=step.began,
        ended=now,
        reason=reason,
        tried=tried,
        requests=requests,
    )


def closed(memory: RetuneMemory, step: Step, past: Past, *, until_pause: int) -> RetuneMemory:
    """With the end of a retune, which may be the failure that pauses them."""
    blamed = past.tried and not step.starved
    failures = 0 if past.outcome is Phase.DONE else memory.failures + blamed
    pauses = failures >= until_pause and memory.paused_at is None
    return replace(
        memory,
        step=None,
        past=(past, *memory.past),
        failures=failures,
        paused_at=past.ended if pauses else memory.paused_at,
        since={},
    )


def told_of_end(step: Step, outcome: Phase, why: str) -> Event:
    if outcome is Phase.DONE:
        became = f"{step.after} stays"
    elif step.phase is Phase.ROLLING_BACK:
        became = f"{step.before} stands again"
    else:
        became = f"{step.before} to {step.after} is given up"
    message = f"{step.setting} {became}: {why}"
    return Event(reason=f"Retune{outcome.value}", message=message, warning=outcome is not Phase.DONE)
