"""Whether a retune begins: a symptom that lasts, no cure by replicas, leave to act, and a rung that helps.

What is begun is only written down here; nothing is touched before the next look.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.control.retune.allowed import barred, refusal
from plimsoll.control.retune.figures import figures_of
from plimsoll.control.retune.ladder import TAKEN_BACK, Change, Choice, choose, planned_before
from plimsoll.control.retune.scene import FIELDS, Scene
from plimsoll.control.retune.steps import (
    OF_SET,
    HeldBack,
    Past,
    Phase,
    RetuneMemory,
    Step,
    of_set,
)
from plimsoll.control.retune.symptoms import SeenSymptom, Symptom, as_calm, cause, scaling_first, symptom_of
from plimsoll.control.retune.turned import Event, Turned

NO_RUNG = "NothingHelps"
HELD_S = 600.0
"""How long it is told at least what keeps a retune from beginning: what comes and goes with each look would be a write each time. And for how
long beyond that a symptom must be there before a person is told what to do about it."""
SUGGESTIONS_KEPT = 8
"""Of how many kinds of sets and settings: a plan has few, and each is told anew after a day."""
PLANNED_MOST_S = 600.0
"""A plan that was written down so long ago and never begun is dropped."""


def idle(scene: Scene, memory: RetuneMemory) -> Turned:
    """A look while no retune is under way."""
    if scene.consent.mode == "off":
        return Turned(memory=replace(memory, since={}, held=None))
    if not scene.data:
        return Turned(memory=replace(memory, since={}))
    what = symptom_of(scene, changed_before=_moved(scene))
    if what is None:
        memory = _freed(scene, memory)
        clock = _clock(scene, Symptom.RELAXED)
        calm = _since(memory, clock) if as_calm(scene) else None
        kept = {} if calm is None else {clock: calm}
        return Turned(memory=memory if memory.since == kept else replace(memory, since=kept))
    clock = _clock(scene, what.symptom)
    before = _since(memory, clock)
    since = scene.now if before is None else min(before, scene.now)
    memory = replace(memory, since={clock: since})
    if scene.now - since < what.lasts_s:
        left = f"{what.why}, for {scene.now - since:.0f} of {what.lasts_s:.0f} s"
        return Turned(memory=memory, why_not=left)
    if (scaling := scaling_first(scene, what.symptom)) is not None:
        return Turned(memory=_freed(scene, memory), why_not=f"{what.why}; {scaling}")
    no = refusal(scene, memory, what.symptom)
    if no is not None and scene.consent.mode == "auto":
        memory = _held(scene, memory, no.reason, no.message) if no.told else _freed(scene, memory)
        return Turned(memory=memory, why_not=f"{what.why}; {no.message}")
    choice = choose(scene, what, barred=barred(scene, memory, what.symptom))
    if choice.change is None:
        refused = "; ".join(choice.refused)
        if choice.unsure:
            memory = _freed(scene, memory)
        else:
            memory = _held(scene, memory, NO_RUNG, f"no setting that may be retuned helps: {refused}")
        why = f"{what.why}; no rung helps: {refused}"
        # A rung's size follows figures of a few minutes: of the first requests that finish, the short ones, or of a moment at which few run. So
        # a person is told only once nothing would have helped for longer.
        if choice.advice is not None and scene.now - since >= what.lasts_s + HELD_S:
            return _suggested(
                scene, memory, what, choice.advice, why=f"{why}; {choice.advice.why}", said="for a person"
            )
        return Turned(memory=memory, why_not=why)
    return _begun(scene, memory, what, choice, choice.change)


def _clock(scene: Scene, symptom: Symptom) -> str:
    """The key by which it is remembered since when a symptom has been there. It names the set: of several sets the largest is looked at,
    which may be another one by the next look, and others come beside the only one, and go."""
    return of_set(cause(symptom), scene.serving.name)


def _since(memory: RetuneMemory, clock: str) -> float | None:
    """Since when a symptom has been there; None where it was not. Older releases wrote the key without the set."""
    return memory.since.get(clock, memory.since.get(clock.partition(OF_SET)[0]))


def _held(scene: Scene, memory: RetuneMemory, reason: str, message: str) -> RetuneMemory:
    """The memory with what keeps a retune from beginning. Its message stays that of the first look, as figures in it change all the time."""
    held = memory.held
    if held is not None and (held.reason, held.about) == (reason, scene.about):
        return memory
    now = HeldBack(reason=reason, message=scene.named(message), since=scene.now, about=scene.about)
    return replace(memory, held=now)


def _freed(scene: Scene, memory: RetuneMemory) -> RetuneMemory:
    """The memory where nothing keeps a retune from beginning any more, once what did was told for long enough."""
    held = memory.held
    if held is None or abs(scene.now - held.since) < HELD_S:
        return memory
    return replace(memory, held=None)


def _moved(scene: Scene) -> bool:
    """Whether an earlier retune has changed a setting that a day of calm takes back."""
    return any(planned_before(scene, one) is not None for one in TAKEN_BACK)


def _begun(scene: Scene, memory: RetuneMemory, what: SeenSymptom, choice: Choice, change: Change) -> Turned:
    passed_over = f"; passed over: {'; '.join(choice.refused)}" if choice.refused else ""
    tried = scene.consent.mode == "auto"
    all_sets = ", which holds for all sets" if scene.about else ""
    by_hand = "" if tried else f" (spec.{FIELDS[change.setting]}: {change.after}{all_sets})"
    why = (
        f"{what.why}. {change.setting} {change.before} to {change.after}{by_hand}: {change.why}{passed_over}"
    )
    if not tried:
        return _suggested(scene, _freed(scene, memory), what, change, why=why, said="a dry run")
    step = Step(
        id=_identity(change, memory),
        set=scene.serving.name,
        setting=change.setting,
        before=change.before,
        after=change.after,
        symptom=what.symptom,
        why=scene.named(why),
        phase=Phase.PLANNED,
        began=scene.now,
        since=scene.now,
        deadline=scene.now + PLANNED_MOST_S,
        replicas=scene.serving.present,
        surge=scene.free_replicas > 0,
        spec=scene.spec,
        serves=scene.serves,
        baseline=figures_of(scene.signals, scene.slo, scene.window).written,
    )
    memory = memory.suggesting(_other_suggestions(scene, memory, change))
    memory = replace(memory, step=step, since={}, count=memory.count + 1, held=None)
    memory = memory.of_kind(step.id, scene.kind)
    return Turned(memory=memory, events=(Event(reason="RetunePlanned", message=why),))


def _identity(change: Change, memory: RetuneMemory) -> str:
    return f"{change.setting}-{memory.count + 1}"


def _suggested(
    scene: Scene, memory: RetuneMemory, what: SeenSymptom, change: Change, *, why: str, said: str
) -> Turned:
    """A change that is only suggested, to a person or in a dry run. The same one is told again only after a while, as each time is a write."""
    others = _other_suggestions(scene, memory, change)
    if any(_still_told(scene, one) for one in memory.suggestions if one not in others):
        return Turned(memory=memory, why_not=f"{said}: {why}")
    suggested = Past(
        id=_identity(change, memory),
        setting=change.setting,
        before=change.before,
        after=change.after,
        symptom=what.symptom,
        outcome=Phase.PLANNED,
        began=scene.now,
        ended=scene.now,
        reason=scene.named(why),
        tried=False,
    )
    event = Event(reason="RetuneSuggested", message=f"{said}, nothing is changed: {why}")
    others = tuple(one for one in others if _still_told(scene, one))[: SUGGESTIONS_KEPT - 1]
    # It is counted as a retune is, so that none of several has the identity of another.
    memory = replace(memory.suggesting((suggested, *others)), count=memory.count + 1)
    memory = memory.of_kind(suggested.id, scene.kind)
    return Turned(memory=memory, events=(event,), why_not=f"{said}: {why}")


def _other_suggestions(scene: Scene, memory: RetuneMemory, change: Change) -> tuple[Past, ...]:
    """Those of other kinds of sets or other settings. Sizes follow figures that waver, so another size is no other suggestion."""
    return tuple(
        one
        for one in memory.suggestions
        if one.setting != change.setting or not memory.concerns(one, scene.kind)
    )


def _still_told(scene: Scene, one: Past) -> bool:
    return scene.now - one.began < scene.restarts.retry_after_seconds
