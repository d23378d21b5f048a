"""The next step of a retune: from what was written down and what is seen, to what is to be written down.

Planned → Canary → Judging → Rolling → Verifying → Done, and from each of them back, ending as Failed at the old settings. One
phase a call at most. Whatever crashes between two calls, the record says what should be so; whoever edits the spec meanwhile
wins; whatever is not decided in time is undone, unless only the load of the last look is another than at the beginning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll import names
from plimsoll.control.decision import Told
from plimsoll.control.retune.allowed import crowding, restarts_left, spent_of, taken_back
from plimsoll.control.retune.beginning import idle
from plimsoll.control.retune.figures import NOTHING
from plimsoll.control.retune.judging import Answer, Verdict, fails
from plimsoll.control.retune.keeping import adopted, broken, taken_out, watched
from plimsoll.control.retune.looking import counted, lacks_requests, lasts, noted, unwatched, verdict_of
from plimsoll.control.retune.moving import (
    asked_of,
    dropped,
    ended,
    gone_back,
    onward,
    restarted,
    total_of,
    undone,
)
from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.steps import Phase, RetuneMemory, Step
from plimsoll.control.retune.turned import Turned
from plimsoll.control.situation import ReplicaState
from plimsoll.facts.spans import DAY_S

ROLL_SHARE: Final = 0.2
"""How long each further replica is watched, as a share of the time that a canary is."""
VERIFY_SHARE: Final = 1.5
"""How long all replicas together are watched at the end, as a share of the same."""
STARTS: Final = 3.0
"""Times as long as a start takes, for which a changed replica is waited for."""
START_LEAST_S: Final = 600.0
"""How long a canary's start is waited for at least."""
LATE_LEAST_S: Final = 1800.0
"""The same of further replicas: one start in forty takes twenty minutes whatever the settings are. A canary so late ends the retune; once
a canary has served, late ones are waited for."""
UNHEARD: Final = Verdict(Answer.OPEN, "a replica with the change does not say how it is")
_LACKS: Final = "an image, a node or a container beside the engine could not be had"
TRYING: Final = frozenset({Phase.CANARY, Phase.JUDGING, Phase.ROLLING, Phase.VERIFYING})
ACTIVE: Final = Told(type=names.AUTOTUNE_PAUSED, status="False", reason="Active", message="retuning is on")


def advance(scene: Scene, memory: RetuneMemory) -> Turned:
    """One look: the retune under way goes on by a phase at most, or one begins where a symptom asks for it."""
    memory = _kept(scene, memory.moved(scene.jumped_s) if scene.jumped_s else memory)
    if memory.step is None:
        memory = watched(scene, memory)
        turned = taken_out(scene, memory) or idle(scene, memory)
    elif _edited(scene, memory.step) and memory.step.phase is not Phase.DONE:
        turned = dropped(scene, memory, memory.step)
    else:
        turned = _going(scene, memory, memory.step)
    if scene.scaled and _takes_one(memory.step, turned.memory.step):
        # One action a tick: the next look comes to the same. Only the way back does not wait.
        turned = Turned(memory=memory, why_not="the number of replicas is changed at this tick")
    return replace(turned, told=(paused(turned.memory), *turned.told))


def _takes_one(before: Step | None, after: Step | None) -> bool:
    """Whether a retune begins, or goes on to a further replica."""
    if after is None or after.phase is Phase.DONE:
        return False
    return before is None or after.rolled > before.rolled


def _edited(scene: Scene, step: Step) -> bool:
    return scene.spec != step.spec or bool(step.serves and scene.serves != step.serves)


def _kept(scene: Scene, memory: RetuneMemory) -> RetuneMemory:
    """The memory without what has expired. Moments that are still to come were noted before a clock was put back: they count as now."""
    restarts = tuple(min(at, scene.now) for at in memory.restarts if scene.now - at < DAY_S)
    paused_at = None if memory.paused_at is None else min(memory.paused_at, scene.now)
    if any(past.ended > scene.now for past in memory.past):
        memory = replace(memory, past=tuple(past.no_later(scene.now) for past in memory.past))
    if any(one.ended > scene.now for one in memory.suggestions):
        memory = memory.suggesting(tuple(one.no_later(scene.now) for one in memory.suggestions))
    if paused_at is not None and scene.cleared_at is not None and scene.cleared_at > paused_at:
        return replace(memory, restarts=restarts, paused_at=None, failures=0, failures_before=0)
    if (restarts, paused_at) == (memory.restarts, memory.paused_at):
        return memory
    return replace(memory, restarts=restarts, paused_at=paused_at)


def _going(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    step = replace(step, since=min(step.since, scene.now))
    if step.phase in TRYING and scene.changed is not None and (why := broken(scene.changed)):
        return undone(scene, memory, step, why)
    if step.phase in TRYING and (why := taken_back(scene, step)):
        return undone(scene, memory, step, why, blameless=True)
    match step.phase:
        case Phase.PLANNED:
            return _canary(scene, memory, step)
        case Phase.CANARY:
            return _waiting(scene, memory, step)
        case Phase.JUDGING:
            return _judging(scene, memory, step)
        case Phase.ROLLING:
            return _rolling(scene, memory, step)
        case Phase.VERIFYING:
            return _verifying(scene, memory, step)
        case Phase.ROLLING_BACK:
            return _returning(scene, memory, step)
        case Phase.DONE:
            # A good change stays asked for until it is part of the plan; an edit, or a new plan, before that has the last word.
            return adopted(scene, memory, step) or Turned(memory=replace(memory, step=step))
        case Phase.FAILED:
            return Turned(memory=replace(memory, step=None))


def _canary(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    no = taken_back(scene, step)
    if not scene.data:
        no = "metrics went away before anything was touched"
    elif scene.now > step.deadline:
        no = "nobody began it in time"
    elif step.surge and not scene.free_replicas:
        # Somebody else had the GPU first.
        step, crowded = replace(step, surge=False), crowding(scene, memory, step.symptom)
        no = None if crowded is None else crowded.message
    if no is not None:
        return ended(scene, memory, step, Phase.FAILED, no, tried=False)
    memory = restarted(scene, memory, step, 1)
    return onward(memory, step, Phase.CANARY, scene, deadline=_start_s(scene), rolled=1)


def _start_s(scene: Scene) -> float:
    """How long a canary's start is waited for."""
    return max(START_LEAST_S, STARTS * scene.start_s)


def _oldest_s(scene: Scene) -> float:
    """For how long there has been a pod with the change."""
    changed = () if scene.changed is None else scene.changed.replicas
    return max((scene.now - each.created for each in changed), default=0.0)


def _waiting(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    if scene.changed is not None and scene.changed.ready >= 1:
        return onward(memory, step, Phase.JUDGING, scene, deadline=float(scene.restarts.canary_limit_seconds))
    if scene.now > step.deadline:
        if why := _kept_out(scene, 1):
            return undone(scene, memory, step, f"{why} for the canary in time", blameless=True)
        # A pod that was made late, or made anew, has not had the time that a start may take. A turn is never half of that late by itself.
        late = _oldest_s(scene) < _start_s(scene) / 2
        return undone(scene, memory, step, "the canary was not ready in time", blameless=late)
    return Turned(memory=replace(memory, step=step))


def _kept_out(scene: Scene, asked: int) -> str:
    """What keeps the missing of so many replicas from starting that has nothing to do with the change; empty where one has its GPUs and its
    image, so that only its engine is to blame."""
    changed = () if scene.changed is None else scene.changed.replicas
    if any(one.state is ReplicaState.STARTING and not one.outside for one in changed):
        return ""
    if scene.changed is None or scene.changed.present < asked:
        return "no pod was made"
    return _LACKS if _lacks_image(scene) else "no place was found"


def _lacks_image(scene: Scene) -> bool:
    return scene.changed is not None and any(one.outside for one in scene.changed.replicas)


def _judging(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    step = counted(scene, step)
    if failing := _failing(scene, step):
        return undone(scene, memory, step, failing)
    enough = (
        scene.now - step.since >= scene.restarts.canary_seconds
        and step.new.ended >= scene.restarts.canary_requests
    )
    verdict = verdict_of(scene, step)
    step = noted(scene, step, verdict)
    step = replace(step, said=step.said if step.starved and not enough else verdict.why)
    if enough and verdict.answer is Answer.GOOD:
        return _further(scene, memory, step)
    if enough and verdict.answer is Answer.BAD and lasts(scene, step):
        return undone(scene, memory, step, verdict.why)
    if scene.now > step.deadline and _lacks_image(scene):
        return undone(scene, memory, step, f"{_LACKS} again in time", blameless=True)
    if scene.now > step.deadline:
        shown = enough and verdict.answer is not Answer.OPEN
        return _undecided(scene, memory, step, shown=shown, given_less=verdict.given_less)
    if (
        verdict.given_less
        and scene.now - step.since >= scene.restarts.canary_seconds
        and lacks_requests(step)
    ):
        # Clients find the new replica slowly: the count begins anew, so that only minutes under an equal load decide.
        step = replace(step, since=scene.now, new=NOTHING, old=NOTHING, said=verdict.why, starved=True)
    return Turned(memory=replace(memory, step=step))


def _undecided(scene: Scene, memory: RetuneMemory, step: Step, *, shown: bool, given_less: bool) -> Turned:
    """The canary's time is over without a verdict. `shown`: what was seen spoke for or against the change, though not for long enough."""
    finished = f"{step.new.finished:.0f} requests finished on the canary"
    if not (given_less or step.starved):
        return undone(scene, memory, step, f"inconclusive: {step.said}; {finished}", blameless=not shown)
    since = " since" if step.starved else ""
    why = f"inconclusive, as the canary was given too few requests: {step.said}; {finished}{since}"
    return undone(scene, memory, step, why, blameless=True)


def _failing(scene: Scene, step: Step) -> str | None:
    """That the change has failed more requests in this phase than chance explains: then nobody waits until the phase is over."""
    return fails(step.new, step.old, step.baseline) if scene.data else None


def _rolling(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    step = counted(scene, step)
    ready, asked = scene.changed.ready if scene.changed is not None else 0, asked_of(scene, step)
    # Where no replica is left without the change, nothing tells whether minutes in which one was away were hard for all. The last look does.
    last = not scene.unchanged
    if last and ready < asked:
        step = replace(step, new=NOTHING, old=NOTHING)
    if failing := _failing(scene, step):
        return undone(scene, memory, step, failing)
    if ready < asked:
        if scene.now > step.deadline:
            # It is not the change that keeps them from starting: with it the canary did start.
            why = f"{ready} of {asked} changed replicas were ready in time"
            kept_out = f", as {reason} for more" if (reason := _kept_out(scene, asked)) else ""
            return undone(scene, memory, step, f"{why}{kept_out}", blameless=True)
        return Turned(memory=replace(memory, step=replace(step, since=scene.now)))
    if scene.now - step.since < ROLL_SHARE * scene.restarts.canary_seconds:
        return Turned(memory=replace(memory, step=step))
    if not scene.data:
        if scene.now > step.deadline:
            return undone(scene, memory, step, "metrics went away while it was rolled out", blameless=True)
        return Turned(memory=replace(memory, step=step))
    verdict = UNHEARD if last else verdict_of(scene, step)
    if verdict.answer is Answer.BAD:
        return undone(scene, memory, step, verdict.why)
    if verdict.unknown or (
        verdict.answer is Answer.OPEN and not verdict.given_less and unwatched(scene, step)
    ):
        if scene.now > step.deadline:
            why = f"inconclusive: {verdict.why}, and it goes to no other replica on that"
            return undone(scene, memory, step, why, blameless=True)
        return Turned(memory=replace(memory, step=step))
    return _further(scene, memory, step)


def _further(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    """To one more replica with the change, or to the last look where all have it."""
    rolled, whole = step.rolled + 1, total_of(scene, step)
    if rolled > whole:
        # All replicas that there are now, and not as many as when it began: those that came since would go back to the old settings.
        step = replace(step, replicas=whole)
        deadline = max(2 * _verify_s(scene), float(scene.restarts.canary_limit_seconds))
        return onward(memory, step, Phase.VERIFYING, scene, deadline=deadline, rolled=whole)
    # The budget of restarts allowed the whole before it began, but replicas may have come since; and the way back needs as many.
    if not step.surge and 1 + rolled > restarts_left(scene, memory):
        # That says nothing of the change.
        why = f"too few restarts are left for all: {spent_of(scene, memory)}"
        return undone(scene, memory, step, why, blameless=True)
    memory = restarted(scene, memory, step, 1)
    return onward(memory, step, Phase.ROLLING, scene, deadline=_roll_s(scene), rolled=rolled)


def _verifying(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    step = replace(counted(scene, step), replicas=total_of(scene, step), rolled=total_of(scene, step))
    serves = scene.changed is not None and scene.changed.ready > 0
    if (scene.serving.replicas or not serves) and scene.now <= step.deadline:
        # Replicas that leave still carry some of the load until they have answered it. And those with the change may all be lost: those that
        # come for them are verified from when one serves.
        return Turned(memory=replace(memory, step=replace(step, since=scene.now, new=NOTHING, old=NOTHING)))
    if not serves:
        kept_out = f", as {why}" if (why := _kept_out(scene, step.rolled)) else ""
        return undone(
            scene, memory, step, f"no replica with the change serves any more{kept_out}", blameless=True
        )
    if failing := _failing(scene, step):
        return undone(scene, memory, step, failing)
    verdict = verdict_of(scene, step)
    step = noted(scene, step, verdict)
    if scene.now - step.since < _verify_s(scene) or (not scene.data and scene.now <= step.deadline):
        return Turned(memory=replace(memory, step=step))
    if not scene.data:
        return undone(scene, memory, step, "metrics went away while it was verified", blameless=True)
    if verdict.answer is Answer.BAD:
        return _worse(scene, memory, step, verdict)
    if verdict.answer is Answer.OPEN and scene.now <= step.deadline:
        # The load may yet become what it was at the beginning, so that the two compare.
        return Turned(memory=replace(memory, step=replace(step, said=verdict.why)))
    if verdict.unkept or verdict.unknown:
        return undone(scene, memory, step, f"inconclusive: {verdict.why}", blameless=True)
    if verdict.answer is Answer.OPEN and step.new.ended < scene.restarts.canary_requests:
        seen = f"{step.new.finished:.0f} requests finished while it was verified"
        return undone(scene, memory, step, f"inconclusive: {seen}", blameless=True)
    return ended(scene, memory, step, Phase.DONE, verdict.why)


def _worse(scene: Scene, memory: RetuneMemory, step: Step, verdict: Verdict) -> Turned:
    """Back, once what is worse has lasted for longer than one slow minute of the machine makes it."""
    if lasts(scene, step) or scene.now > step.deadline:
        return undone(scene, memory, step, verdict.why)
    return Turned(memory=replace(memory, step=replace(step, said=verdict.why)))


def _returning(scene: Scene, memory: RetuneMemory, step: Step) -> Turned:
    memory, step = gone_back(scene, memory, step)
    gone = scene.changed is None or scene.changed.present == 0
    if gone and (scene.serving.ready >= 1 or scene.serving.wanted == 0):
        return ended(scene, memory, step, Phase.FAILED, step.said)
    return Turned(memory=replace(memory, step=step))


def _roll_s(scene: Scene) -> float:
    return max(LATE_LEAST_S, STARTS * scene.start_s) + ROLL_SHARE * scene.restarts.canary_seconds


def _verify_s(scene: Scene) -> float:
    return VERIFY_SHARE * scene.restarts.canary_seconds


def paused(memory: RetuneMemory) -> Told:
    """Whether retuning is on, as a condition."""
    if memory.paused_at is not None:
        message = f"{memory.failures} retunes failed in a row; look at the history, then set the annotation {names.ANNOTATION_RESET}"
        return Told(type=names.AUTOTUNE_PAUSED, status="True", reason="RepeatedFailure", message=message)
    return ACTIVE
