"""What the control loop remembers, in the fields of the status: changes of the number of replicas, retunes, and the traffic that was seen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.status import Condition, ScalingStep, TuningStep
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.decision import Told
from plimsoll.control.record import SCALE, Record
from plimsoll.control.retune import Past, Phase, RetuneMemory, Step
from plimsoll.control.retune.scene import named
from plimsoll.control.retune.steps import place_of
from plimsoll.control.workload import status_of
from plimsoll.status.summary import cut

SCALINGS_TOLD: Final = 5
RETUNES_TOLD: Final = 10
SHORT: Final = 63
AWAKE: Final = "; why it does not sleep: "
"""In the message of Ready, before the reason why one that may sleep does not."""
ENDS: Final = frozenset({Phase.DONE, Phase.FAILED})
State = Literal[
    "Planned", "Canary", "Judging", "Rolling", "Verifying", "Done", "RollingBack", "Failed", "DryRun"
]


def live_status(record: Record, declared: Workload | None = None) -> dict[str, Any]:
    """Fields of the status that are to change; `declared` stands beside what was seen of traffic. A field of which nothing is known is left out; a retune that is over is None."""
    scalings = [act for act in record.acts if act.what == SCALE]
    found: dict[str, Any] = {
        "scaling_history": tuple(
            ScalingStep(
                at=timestamp(act.at),
                before=int(act.before),
                after=int(act.after),
                reason=act.reason,
                message=cut(act.message),
            )
            for act in scalings[:SCALINGS_TOLD]
        ),
        "tuning_history": retunes_of(record.retune)[:RETUNES_TOLD],
        "tuning": None if record.retune.step is None else step_of(record.retune.step),
    }
    if scalings:
        found["last_scale_time"] = timestamp(scalings[0].at)
    if record.observed.since is not None and record.observed.requests >= 1:
        seen = status_of(record.observed, declared)
        found["observed"] = seen.model_copy(update={"since": timestamp(record.observed.since)})
    return found


def awake_said(conditions: Sequence[Condition]) -> str:
    """Why it does not sleep, as the message of Ready has it; empty where that says nothing of it."""
    said = get_condition(conditions, names.READY)
    return "" if said is None else said.message.partition(AWAKE)[2]


def retuning(memory: RetuneMemory) -> Told | None:
    """The condition of retunes: that one is under way, what keeps one from beginning, or how the last one ended. None where none was ever
    tried and none is asked for."""
    step = memory.step
    if step is not None and step.phase not in ENDS:
        change = f"{step.setting} {step.before} to {step.after}"
        return Told(names.RETUNING, "True", step.phase.value, f"{change}: {step.why}")
    if memory.held is not None:
        return Told(names.RETUNING, "False", memory.held.reason, memory.held.message)
    if not memory.past:
        return None
    last = memory.past[0]
    reason = "NotTried" if not last.tried else "Done" if last.outcome is Phase.DONE else "RolledBack"
    return Told(
        names.RETUNING,
        "False",
        reason,
        f"{last.setting} {last.before} to {last.after}: {_reason(memory, last)}",
    )


def retunes_of(memory: RetuneMemory) -> tuple[TuningStep, ...]:
    """Earlier retunes and what was only suggested, newest first. What an older release suggested and was then tried has the same id twice."""
    tried = {one.id for one in memory.past}
    suggested = tuple(one for one in memory.suggestions if one.id not in tried)
    newest_first = sorted((*suggested, *memory.past), key=lambda one: -one.ended)
    return tuple(_past_step(one, _reason(memory, one)) for one in newest_first)


def _reason(memory: RetuneMemory, past: Past) -> str:
    """Why a retune ended so. It names the layout and hardware where there were several, also where they were the only ones then."""
    places = {identity: place_of(kind) for identity, kind in memory.kinds.items()}
    place = places.get(past.id, "") if len(set(places.values())) > 1 else ""
    return past.reason if past.reason.startswith(place) else named(place, past.reason)


def step_of(step: Step) -> TuningStep:
    return TuningStep(
        id=step.id,
        setting=step.setting,
        before=step.before[:SHORT],
        after=step.after[:SHORT],
        state=_state(step.phase),
        reason=cut(f"{step.why}; {step.said}" if step.said else step.why),
        started_at=timestamp(step.began),
        deadline=timestamp(step.deadline),
    )


def _past_step(past: Past, reason: str) -> TuningStep:
    return TuningStep(
        id=past.id,
        setting=past.setting,
        before=past.before[:SHORT],
        after=past.after[:SHORT],
        state="DryRun" if past.outcome is Phase.PLANNED else _state(past.outcome),
        reason=cut(reason),
        started_at=timestamp(past.began),
        finished_at=timestamp(past.ended),
    )


def _state(phase: Phase) -> State:
    word: State = phase.value
    return word


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
