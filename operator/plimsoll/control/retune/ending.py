"""The end of a retune: how it is told, and how it ends where nobody is to look at it any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.control.retune.scene import named
from plimsoll.control.retune.steps import PAST_KEPT, UNKNOWN, Past, Phase, Requests, RetuneMemory, Step
from plimsoll.control.retune.turned import Event, Turned

ABANDONED: Final = "nobody looks at it any more, as the spec asks for neither scaling nor tuning"


def abandoned(memory: RetuneMemory, now: float, *, until_pause: int, about: str = "") -> Turned:
    """The retune's end where the spec no longer asks for anything that needs a look: it is undone without a verdict, which is no
    failure. `about` is the set that it is of, where the plan has several. Nor does anything keep further ones from beginning then."""
    step, memory = memory.step, replace(memory, held=None, kept=None)
    if step is None or step.phase is Phase.DONE:
        return Turned(memory=replace(memory, step=None))
    # A verdict that was reached before it was abandoned stands all the same.
    back = step.phase is Phase.ROLLING_BACK
    why = step.said if back else ABANDONED
    past = past_of(step, Phase.FAILED, named(about, why), now=now, tried=back)
    after = closed(memory, step, past, until_pause=until_pause)
    # No older ones are dropped here: some may still count against today's budget, which only a look can say.
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
    done = past.outcome is Phase.DONE
    failures = 0 if done else memory.failures + blamed
    pauses = failures >= until_pause and memory.paused_at is None
    return replace(
        memory,
        step=None,
        latest=None,
        past=(past, *memory.past),
        failures=failures,
        failures_before=memory.failures if done else memory.failures_before,
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
