"""After a change stays: for how long engines that end with it still take it back, and how.

By then it is part of the plan, and no replica without it is left. So it goes back by the plan too: with the setting as it was before it
is another plan, to which replicas move as by any rollout. Nothing is judged, as whatever ends is worse than what was there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.control.retune.allowed import remembered
from plimsoll.control.retune.ending import closed, past_of
from plimsoll.control.retune.figures import NOTHING, Figures
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.steps import Past, Phase, RetuneMemory, Step
from plimsoll.control.retune.turned import Event, Turned
from plimsoll.control.situation import ReplicaState, ServingSet

ENDED: Final = "engines ended"
"""In place of a symptom: what asks for a change to go back that was to stay."""


def broken(seen: ServingSet) -> str | None:
    """That replicas with a change do not start, or have crashed since: then nobody waits for a verdict."""
    if failed := seen.count(ReplicaState.FAILED) - imageless(seen):
        return f"{failed} replicas with the change do not start or crash"
    # These replicas were made for the change, so any restart of theirs was under it, however soon they served again.
    again = any(replica.restarts for replica in seen.replicas)
    return "engines with the change ended and were started again" if again else None


def imageless(seen: ServingSet) -> int:
    """How many replicas fail for want of an image, a node or a container beside the engine, which is not the change's doing."""
    return sum(one.state is ReplicaState.FAILED and one.outside for one in seen.replicas)


def adopted(scene: Scene, memory: RetuneMemory, step: Step) -> Turned | None:
    """The end of a step whose change is part of the plan by now; None while it is not, and nobody has edited the spec."""
    if scene.knobs.text(step.setting) == step.after:
        if step.symptom == ENDED:
            message = f"{step.setting} {step.after} stands again in the plan: {step.why}"
            event = Event(reason=f"Retune{Phase.FAILED.value}", message=message, warning=True)
            return Turned(memory=replace(memory, step=None), events=(event,))
        # What it was judged by is no longer needed.
        kept = replace(step, baseline=Figures(), new=NOTHING, old=NOTHING, serves="")
        return Turned(memory=replace(memory, step=None, kept=kept))
    if scene.spec != step.spec:
        return Turned(memory=replace(memory, step=None))
    return None


def watched(scene: Scene, memory: RetuneMemory) -> RetuneMemory:
    """The memory with the change that stays while it can still be blamed for what its engines do: for as long as a setting may not be turned
    the other way, and until an edit, a plan that is made anew or a further change makes other replicas."""
    kept = memory.kept
    if kept is None or not memory.concerns(_as_past(kept), scene.kind, whatever_runs=True):
        # Another set is looked at, as it has more replicas by now.
        return memory
    over = scene.now - kept.since >= scene.restarts.reverse_after_seconds
    other = scene.knobs.text(kept.setting) != kept.after or kept.setting not in scene.planned
    if over or other or scene.spec != kept.spec or kept.serves not in ("", scene.serves):
        return replace(memory, kept=None)
    return memory if kept.serves else replace(memory, kept=replace(kept, serves=scene.serves))


def taken_out(scene: Scene, memory: RetuneMemory) -> Turned | None:
    """The change that stays goes out of the plan again, where its engines end; None where nothing speaks against it."""
    kept = memory.kept
    if kept is None or kept.serves != scene.serves or scene.consent.mode != "auto":
        return None
    why = broken(scene.serving)
    if why is None:
        return None
    said = f"{why}, {(scene.now - kept.since) / 60:.0f} minutes after it was done"
    before = next((past for past in memory.past if past.id == kept.id), None)
    past = past_of(
        kept,
        Phase.FAILED,
        scene.named(said),
        now=scene.now,
        tried=True,
        requests=(before or _as_past(kept)).requests,
    )
    others = tuple(one for one in memory.past if one.id != kept.id)
    # That it was done ends no row of failures, as it did not stay.
    failures = memory.failures_before + memory.failures
    memory = closed(
        replace(memory, past=others, kept=None, failures=failures, failures_before=0),
        kept,
        past,
        until_pause=scene.restarts.failures_until_pause,
    )
    restarts = () if scene.free_replicas > 0 else (scene.now,) * scene.serving.present
    back = replace(
        kept,
        set=scene.serving.name,
        before=kept.after,
        after=kept.before,
        symptom=ENDED,
        why=scene.named(said),
        phase=Phase.DONE,
        since=scene.now,
        deadline=scene.now,
        replicas=scene.serving.present,
        rolled=scene.serving.present,
        surge=scene.free_replicas > 0,
    )
    memory = replace(
        memory,
        step=back,
        past=remembered(scene, memory),
        restarts=(*memory.restarts, *restarts),
    )
    message = f"{kept.setting} goes back to {kept.before}, by a rollout: {said}"
    return Turned(memory=memory, events=(Event(reason="RetuneRollingBack", message=message, warning=True),))


def _as_past(kept: Step) -> Past:
    return past_of(kept, Phase.DONE, kept.said, now=kept.since, tried=True)
