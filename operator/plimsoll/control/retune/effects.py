"""What a retune asks the operator to do, told from its stored memory alone, so that it is the same after every crash.

The memory is stored before its effect is asked for, so nothing happens that is not on record. And doing it twice is doing it once:
an effect names numbers of replicas, never differences.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.retune.steps import Phase, RetuneMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    set: str
    setting: str
    value: str
    """Of the replicas with the change."""
    replicas: int
    """That run with the change; the set has all the others. 0: the changed set goes."""
    surge: bool
    """A replica with the change comes before one without it goes, and there is one more meanwhile."""
    first: bool = False
    """None without the change goes before one with it serves, though there is not one more any longer."""
    adopt: bool = False
    """The change is good: it is part of the pinned plan from now on, and the old set goes."""


def effect_of(memory: RetuneMemory) -> Effect | None:
    """None where nothing is asked for."""
    step = memory.step
    if step is None or step.phase in {Phase.PLANNED, Phase.FAILED}:
        return None
    count = {
        Phase.CANARY: 1,
        Phase.JUDGING: 1,
        Phase.ROLLING: step.rolled,
        Phase.VERIFYING: step.replicas,
        Phase.DONE: step.replicas,
        Phase.ROLLING_BACK: 0,
    }[step.phase]
    return Effect(
        set=step.set,
        setting=step.setting,
        value=step.after,
        replicas=count,
        # By then all replicas have the change. One without it would take a part of the load under which they are to be verified.
        surge=step.surge and step.phase is not Phase.VERIFYING,
        first=step.surge,
        adopt=step.phase is Phase.DONE,
    )
