"""Whether a retune may begin, and whether one may go on: by consent, by budgets, by time, and by how earlier tries ended."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Final

from plimsoll.control.retune.scene import Scene
from plimsoll.control.retune.steps import (
    PAST_KEPT,
    PAST_MOST,
    Past,
    Phase,
    Requests,
    RetuneMemory,
    Step,
    place_of,
)
from plimsoll.control.retune.symptoms import Symptom, cause
from plimsoll.facts.spans import DAY_S

CROWDED: Final = 1.25
"""Times as many replicas as are left that the load may ask for while one restarts: what queues meanwhile is paid back after it."""
EACH_A_DAY: Final = 3
"""Restarts of a day for each replica where the admin says nothing: both retunes of a day fit, one that stays, and one that goes all the way
and back. So each loses the same share of its time however many there are."""
LEAST_A_DAY: Final = 6
"""The same for all replicas together where there are few."""


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    """One stable word."""
    message: str
    told: bool = True
    """Whether it is told as what keeps retunes back. Those that pass by themselves, or are told elsewhere, are not."""


def refusal(scene: Scene, memory: RetuneMemory, symptom: Symptom) -> Refusal | None:
    """Why no retune may begin for such a symptom; None: it may."""
    if memory.paused_at is not None:
        message = f"{memory.failures} retunes failed; a person has to look, then clear it"
        return Refusal("RepeatedFailure", message, told=False)
    if not scene.data:
        return Refusal("MetricsMissing", "without fresh metrics nothing is retuned", told=False)
    if scene.busy is not None:
        return Refusal("Busy", f"{scene.busy} is under way", told=False)
    if scene.ready == 0 or scene.serving.present != scene.ready:
        message = f"{scene.ready} of {scene.serving.present} replicas are ready"
        return Refusal("NotReady", message, told=False)
    return _budget(scene, memory) or crowding(scene, memory, symptom) or _traffic(scene)


def taken_back(scene: Scene, step: Step) -> str | None:
    """What the user has taken back since the retune began, in a clause: their consent, or all replicas of its set."""
    if scene.serving.wanted == 0:
        return "no replica of its set is asked for any more"
    consent = scene.consent
    floors = {"maxSequences": consent.least_sequences, "maxBatchedTokens": consent.least_batched}
    if consent.mode != "auto":
        return f"spec.tuning.mode was set to {consent.mode}"
    if step.setting not in consent.allowed:
        return f"spec.tuning.allow names {step.setting} no more"
    relaxed = step.symptom == Symptom.RELAXED
    if why := consent.set_by_hand(step.setting, goes_back=relaxed):
        return why
    # What the plan itself has is never too few.
    floor = None if relaxed else floors.get(step.setting)
    if floor is not None and int(step.after) < min(floor, int(step.before)):
        return f"spec.tuning.floors allows no fewer than {floor} by now"
    return None


def _budget(scene: Scene, memory: RetuneMemory) -> Refusal | None:
    rules = scene.restarts
    today = [past for past in memory.past if past.tried and scene.now - past.began < DAY_S]
    if len(today) >= rules.retunes_per_day:
        return Refusal("BudgetSpent", f"{len(today)} retunes today, and {rules.retunes_per_day} are allowed")
    allowed = rules.fleet_percent / 100 * scene.fleet_gpus
    if scene.fleet_retuning and scene.fleet_retuning + scene.gpus > allowed:
        known = isfinite(scene.fleet_retuning)
        many = f"{scene.fleet_retuning:g}" if known else "it cannot be read how many"
        return Refusal("FleetBusy", f"{many} GPUs of the fleet are in retunes, {allowed:g} may be")
    return None


def crowding(scene: Scene, memory: RetuneMemory, symptom: str) -> Refusal | None:
    """Why replicas cannot do without the one that is to have a change, where no further one finds GPUs; None: they can, or one does."""
    if scene.free_replicas > 0:
        return None
    if not scene.consent.disruption and (why := _drowns(scene, symptom)) is not None:
        return Refusal("WouldDisrupt", why)
    # Every replica restarts once for the change, and once more to undo it if the last one shows that it is bad.
    whole, most = 2 * scene.serving.present, restarts_allowed(scene, memory)
    need = f"all replicas there and, if need be, back are {whole} restarts"
    if whole > most:
        return Refusal(
            "BudgetTooSmall",
            f"{need}, and the admin's restarts.restartsPerDay allows {most} a day: {whole} would do, or a free GPU for one more replica",
        )
    if whole > restarts_left(scene, memory):
        return Refusal("BudgetSpent", f"{need}, {spent_of(scene, memory)}")
    return None


def _drowns(scene: Scene, symptom: str) -> str | None:
    """That replicas cannot do without the one that would restart in its place, with what helps.

    Where pools are full and no further replica can be had, what the load asks for beyond what all of them carry queues with that one and
    without it, and only the change makes answers flow again. So only what all of them carry counts: for as long as a start takes the
    others are given the share of one, and fall behind by as much. Of five each gets a quarter more, of two the other one twice as much.
    """
    left, wanted = scene.ready - 1 + scene.beside, scene.wanted
    helps = "a free GPU for another one, within the namespace's budget, or spec.tuning.allowDisruption"
    if not left:
        return (
            "the only replica would have to restart: it needs a free GPU for a second one, within the namespace's budget, or "
            "spec.tuning.allowDisruption"
        )
    if wanted is None:
        return None
    asked = min(wanted, left + 1) if _is_full(scene, symptom) else wanted
    if asked <= CROWDED * left:
        return None
    return (
        f"one of {scene.ready} replicas would have to restart, and the load asks for more than the others carry, {asked / left:.3g} times as "
        f"many as are left: it needs {helps}"
    )


def _is_full(scene: Scene, symptom: str) -> bool:
    """Whether the pools of all are too small for the load, and there are as many as can be had."""
    return cause(symptom) == Symptom.PREEMPTION and not scene.more_replicas


def restarts_allowed(scene: Scene, memory: RetuneMemory) -> int:
    """Restarts of the deployment in a day: as the admin says, else by how many replicas there are."""
    if scene.restarts.restarts_per_day is not None:
        return scene.restarts.restarts_per_day
    there = scene.serving.present + (0 if scene.changed is None else scene.changed.present)
    # One that is missed at a look, as its pod is being made anew, ends no roll that had room when it began.
    began = 0 if memory.step is None else memory.step.replicas
    return max(LEAST_A_DAY, EACH_A_DAY * max(there, began))


def restarts_left(scene: Scene, memory: RetuneMemory) -> int:
    return restarts_allowed(scene, memory) - _restarts(scene, memory)


def spent_of(scene: Scene, memory: RetuneMemory) -> str:
    """How much of the day's restarts is used, for sentences."""
    made, most = _restarts(scene, memory), restarts_allowed(scene, memory)
    return f"{made} were made in the last day, and {most} are allowed"


def _restarts(scene: Scene, memory: RetuneMemory) -> int:
    return sum(1 for at in memory.restarts if scene.now - at < DAY_S)


def _traffic(scene: Scene) -> Refusal | None:
    finished = scene.signals.rate("finished")
    if finished is None:
        message = "the engine does not say how many requests it finishes"
        return Refusal("MetricsMissing", message, told=False)
    expected = finished / max(1, scene.ready) * scene.restarts.canary_limit_seconds
    if expected < scene.restarts.canary_requests:
        least = scene.restarts.canary_requests
        return Refusal(
            "TooLittleTraffic", f"a canary would see about {expected:.0f} requests, fewer than {least}"
        )
    return None


def barred(scene: Scene, memory: RetuneMemory, symptom: Symptom) -> dict[str, str]:
    """Settings that may not be touched now, with the reason."""
    found: dict[str, str] = {}
    requests = Requests.of(scene.signals.latencies)
    for past in memory.past:
        if not past.tried or not memory.concerns(past, scene.kind):
            continue
        # An end that is still to come was noted before a clock was put back.
        passed = max(0.0, scene.now - past.ended)
        if (
            past.outcome is Phase.FAILED
            and cause(past.symptom) == cause(symptom)
            and past.requests.like(requests)
            and passed < scene.restarts.retry_after_seconds
        ):
            found.setdefault(past.setting, f"{past.after} was tried {passed / 3600:.1f} h ago: {past.reason}")
        turned = _way(past.symptom) != _way(symptom)
        if past.outcome is Phase.DONE and turned and passed < scene.restarts.reverse_after_seconds:
            found.setdefault(past.setting, f"it was changed the other way {passed / 3600:.1f} h ago")
    if symptom is Symptom.RELAXED:
        for setting in sorted({past.setting for past in memory.past}):
            if _for_gaps(setting, scene, memory):
                found.setdefault(
                    setting, "it keeps gaps between tokens short, of which a calm pool says nothing"
                )
    return found


def remembered(scene: Scene, memory: RetuneMemory) -> tuple[Past, ...]:
    """The retunes that are still needed: the newest ones, and older ones that still bar a setting or count for the day's budget."""
    rules, past, bars = scene.restarts, memory.past, _for_latency(memory)
    windows = {Phase.FAILED: rules.retry_after_seconds, Phase.DONE: rules.reverse_after_seconds}
    older = (
        each
        for each in past[PAST_KEPT:]
        if each.tried
        and (
            each.id in bars
            or scene.now - each.began < DAY_S
            or scene.now - each.ended < windows.get(each.outcome, 0)
        )
    )
    return (*past[:PAST_KEPT], *older)[:PAST_MOST]


def _for_latency(memory: RetuneMemory) -> set[str]:
    """Identities of the retunes that made a setting what it is for the sake of latency, and of those that went on from there."""
    found: set[str] = set()
    since: dict[tuple[str, str], list[str]] = {}
    settled: set[tuple[str, str]] = set()
    for past in memory.past:
        of = (past.setting, place_of(memory.kinds.get(past.id, "")))
        if past.outcome is not Phase.DONE or of in settled:
            continue
        since.setdefault(of, []).append(past.id)
        if past.symptom in {Symptom.RELAXED, Symptom.SLOW_TOKENS}:
            settled.add(of)
        if past.symptom == Symptom.SLOW_TOKENS:
            found.update(since[of])
    return found


def _for_gaps(setting: str, scene: Scene, memory: RetuneMemory) -> bool:
    """Whether the setting was changed for the sake of latency since it last was as planned. A change that did not lead to what it is now, or
    to where a later one began, was of a plan that has been made anew since."""
    now = scene.knobs.text(setting)
    for past in memory.past:
        done = past.outcome is Phase.DONE and memory.concerns(past, scene.kind, whatever_runs=True)
        if past.setting != setting or not done:
            continue
        if past.after != now or past.symptom == Symptom.RELAXED:
            return False
        if past.symptom == Symptom.SLOW_TOKENS:
            return True
        now = past.before
    return False


def _way(symptom: str) -> bool:
    """Which way a symptom moves a setting: True where more is to run at once."""
    return symptom in {Symptom.CAPPED, Symptom.RELAXED, Symptom.LATE_FIRST}
