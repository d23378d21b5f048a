"""How a retune goes from one phase to another: on, back, or to its end; and how many replicas that is about."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.control.retune.allowed import remembered
from plimsoll.control.retune.ending import closed, past_of, told_of_end
from plimsoll.control.retune.figures import NOTHING
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.steps import Phase, Requests, RetuneMemory, Step
from plimsoll.control.retune.turned import Event, Turned


def onward(
    memory: RetuneMemory,
    step: Step,
    phase: Phase,
    scene: Scene,
    *,
    deadline: float,
    rolled: int | None = None,
) -> Turned:
    after = replace(
        step,
        phase=phase,
        since=scene.now,
        deadline=scene.now + deadline,
        rolled=step.rolled if rolled is None else rolled,
        new=NOTHING,
        old=NOTHING,
        starved=False,
        worse=None,
    )
    said = f": {step.said}" if step.said else ""
    with_it = "1 replica" if after.rolled == 1 else f"{after.rolled} replicas"
    message = f"{step.setting} {step.before} to {step.after}: {phase.value}, {with_it} with the change{said}"
    return Turned(
        memory=replace(memory, step=after, latest=None),
        events=(Event(reason=f"Retune{phase.value}", message=message),),
    )


def undone(scene: Scene, memory: RetuneMemory, step: Step, why: str, *, blameless: bool = False) -> Turned:
    """Undo the change. `blameless`: the reason says nothing about the change, so it counts as no failure."""
    memory = restarted(scene, memory, step, asked_of(scene, step))
    there = _there(scene) if step.surge else 0
    after = replace(
        step, phase=Phase.ROLLING_BACK, since=scene.now, rolled=there, said=why, starved=blameless
    )
    message = f"{step.setting} goes back to {step.before}: {why}"
    return Turned(
        memory=replace(memory, step=after),
        events=(Event(reason="RetuneRollingBack", message=message, warning=True),),
    )


def dropped(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    if step.phase is Phase.ROLLING_BACK:
        # The verdict was reached before the edit, and stands.
        return ended(scene, memory, step, Phase.FAILED, step.said)
    why = "the spec was edited meanwhile, and the edit wins"
    return ended(scene, memory, step, Phase.FAILED, why, tried=False)


def ended(
    scene: Scene, memory: RetuneMemory, step: Step, outcome: Phase, why: str, *, tried: bool = True
) -> Turned:
    # At the good end no replica is without the change.
    heard = scene.signals if scene.signals.replicas else scene.changed_signals or scene.signals
    past = past_of(
        step,
        outcome,
        scene.named(why),
        now=scene.now,
        tried=tried,
        requests=Requests.of(heard.latencies),
    )
    after = closed(memory, step, past, until_pause=scene.restarts.failures_until_pause)
    stands = replace(step, phase=Phase.DONE, said=why, since=scene.now) if outcome is Phase.DONE else None
    after = replace(after, step=stands, past=remembered(scene, after))
    return Turned(memory=after, events=(told_of_end(step, outcome, why),))


def restarted(scene: Scene, memory: RetuneMemory, step: Step, count: int) -> RetuneMemory:
    return memory if step.surge else _with_restarts(scene, memory, count)


def gone_back(scene: Scene, memory: RetuneMemory, step: Step) -> tuple[RetuneMemory, Step]:
    """What is left of a surged way back, with the restarts that it came to since the last look.

    Where it finds no room for one more, a replica goes before another one serves in its place, and that is a restart after all.
    """
    there = _there(scene)
    if not step.surge or there >= step.rolled:
        return memory, step
    asked = step.replicas if scene.serving.wanted is None else scene.serving.wanted
    taken = min(step.rolled - there, max(0, asked - there - scene.serving.ready))
    return _with_restarts(scene, memory, taken), replace(step, rolled=there)


def _there(scene: Scene) -> int:
    return 0 if scene.changed is None else scene.changed.present


def _with_restarts(scene: Scene, memory: RetuneMemory, count: int) -> RetuneMemory:
    return replace(memory, restarts=(*memory.restarts, *[scene.now] * count)) if count else memory


def total_of(scene: Scene, step: Step) -> int:
    """How many replicas there are in all, with the change and without it: their number may have changed since it began."""
    if step.phase is Phase.VERIFYING and scene.serving.wanted is not None:
        # No replica stays without the change now, so what counts is how many are asked for.
        return max(1, scene.serving.wanted)
    # While a surged replica stands beside the one it replaces, one is too many.
    extra = 1 if step.surge and scene.serving.present else 0
    return max(1, scene.serving.present + _there(scene) - extra)


def asked_of(scene: Scene, step: Step) -> int:
    """How many replicas with the change are asked for: no more than there are in all, where their number has been lowered since."""
    last = scene.serving.present <= (1 if step.surge else 0)
    return min(step.rolled, total_of(scene, step)) if last else step.rolled
