"""The end of a retune: how it is told, and how it ends where nobody is to look at it any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.control.retune.scene import named
from plimsoll.control.retune.steps import PAST_KEPT, Past, Phase, RetuneMemory, Step
from plimsoll.control.retune.turned import Event, Turned

LEFT: Final = "nobody looks at it any more, as the spec asks for neither scaling nor tuning"


def left(memory: RetuneMemory, now: float, about: str = "") -> Turned:
    """Nobody looks at it any more, so what is tried goes unjudged: no failure. `about` is the set that it is of, where there are several."""
    step = memory.step
    if step is None or step.phase is Phase.DONE:
        return Turned(memory=replace(memory, step=None))
    # What was found out before is found out all the same.
    back = step.phase is Phase.ROLLING_BACK
    why = step.said if back else LEFT
    past = Past(
        id=step.id,
        setting=step.setting,
        before=step.before,
        after=step.after,
        symptom=step.symptom,
        outcome=Phase.FAILED,
        began=step.began,
        ended=now,
        reason=named(about, why),
        tried=back,
    )
    failures = memory.failures + (1 if back and not step.starved else 0)
    # As many as were kept: some still count, and only who looks can say which.
    kept = (past, *memory.past)[: max(PAST_KEPT, len(memory.past))]
    after = replace(memory, step=None, past=kept, failures=failures, since={})
    return Turned(memory=after, events=(told_of_end(step, Phase.FAILED, why),))


def told_of_end(step: Step, outcome: Phase, why: str) -> Event:
    if outcome is Phase.DONE:
        became = f"{step.after} stays"
    elif step.phase is Phase.ROLLING_BACK:
        became = f"{step.before} stands again"
    else:
        became = f"{step.before} to {step.after} is given up"
    message = f"{step.setting} {became}: {why}"
    return Event(reason=f"Retune{outcome.value}", message=message, warning=outcome is not Phase.DONE)
