"""The part of a tick that looks at engines' settings: the traffic as it is seen, and the next step of a retune."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll import names
from plimsoll.control.copying import replace
from plimsoll.control.gate import gate_of
from plimsoll.control.record import Record, acts_of
from plimsoll.control.retune import Scene, Turned, abandoned, advance
from plimsoll.control.retune.beside_scaling import beside_scaling
from plimsoll.control.retune.scene import named
from plimsoll.control.retune.steps import kind_of
from plimsoll.control.signals import Signals
from plimsoll.control.situation import ServingSet, claim_of
from plimsoll.control.workload import observe
from plimsoll.facts.serving import Serving
from plimsoll.reconcile.loop.situations import busy_of, serving_set
from plimsoll.reconcile.loop.subject import Planned, Subject
from plimsoll.reconcile.loop.tick import ROLE, Case, Judged, Tick
from plimsoll.status.told import News

REPLANNED = "the plan was made anew"


def retuning_gpus(cases: Mapping[str, Case]) -> dict[str, float]:
    """GPUs of sets that a retune moves now, by deployment."""
    return {key: case.subject.gpus for key, case in cases.items() if case.record.retune.step is not None}


def retuned(tick: Tick, case: Case, so_far: Judged, signals: Signals, retuning: dict[str, float]) -> Judged:
    """With the next look at its settings. `retuning` are the GPUs in retunes by deployment, to which one that begins here is added."""
    record = so_far.record
    if gate_of(signals, tick.law).open:
        burstiness = record.memory.of(ROLE).load.burstiness
        record = replace(record, observed=observe(record.observed, signals, tick.now, burstiness=burstiness))
    if case.subject.paused:
        return unlooked(tick, case, replace(so_far, record=record))
    scene = _scene(tick, case, so_far, signals, retuning)
    turned = advance(scene, record.retune)
    if turned.memory.step is not None:
        retuning[case.subject.key] = case.subject.gpus
    told = tuple(one for one in so_far.told if one.type != names.AUTOTUNE_PAUSED)
    told += turned.told if case.subject.consent.mode != "off" else ()
    record, news = _noted(record, turned, tick.now, scene.about)
    return replace(
        so_far,
        record=record,
        told=told,
        why_not=turned.why_not or "",
        news=(*so_far.news, *news),
    )


def _noted(record: Record, turned: Turned, now: float, about: str) -> tuple[Record, tuple[News, ...]]:
    """The record with a retune's new state and what was done in it, and the events that tell of it."""
    news = tuple(
        News("Warning" if event.warning else "Normal", "Retune", event.reason, named(about, event.message))
        for event in turned.events
    )
    acts = acts_of(now, record.retune, turned, about)
    record = replace(record, retune=turned.memory)
    for act in acts:
        record = record.with_act(act)
    return record, news


def untried(record: Record, now: float, until_pause: int) -> tuple[Record, tuple[News, ...]]:
    """The record of a deployment that control no longer looks at: a retune under way is given up, and that is told."""
    turned = abandoned(record.retune, now, until_pause=until_pause, about=record.about)
    return _noted(record, turned, now, record.about)


def unlooked(tick: Tick, case: Case, so_far: Judged) -> Judged:
    """A deployment whose retune is not looked at in this tick. Its deadlines move with a jump of the clock, which only this tick sees, and
    with each tick of a pause, in which no time counts."""
    moved = _paused(tick, case) if case.subject.paused else _jumped(tick, case)
    if not moved:
        return so_far
    record = so_far.record
    return replace(so_far, record=replace(record, retune=record.retune.moved(moved)))


def _lead(subject: Subject, record: Record) -> tuple[Planned, str]:
    """The set that is retuned: that of the step under way, else the one with the most replicas. And the spec as the retune sees it: where
    the step's set has gone with a new plan, it is another one, which ends the step as an edit does."""
    step = record.retune.step
    about = None if step is None else next((one for one in subject.sets if one.digest == step.set), None)
    if about is not None:
        return about, subject.spec
    return max(subject.sets, key=lambda each: each.replicas), subject.spec if step is None else REPLANNED


def _called(lead: Planned) -> str:
    """What tells a set from others, in the words of the condition Placed."""
    return f"{lead.layout} on {lead.hardware}"


def _scene(tick: Tick, case: Case, so_far: Judged, signals: Signals, retuning: Mapping[str, float]) -> Scene:
    subject, record = case.subject, case.record
    lead, spec = _lead(subject, record)
    tried = subject.changed
    ground = tick.grounds.for_set(lead)
    several = tried is not None or len(case.serving.sets) > 1
    serving = _of(lead, case.serving, tick)
    # The plan's entry is what a step is about: a set's name holds fields of the user's too.
    serving = replace(serving, name=lead.digest)
    wish = so_far.record.replicas
    grows = subject.autoscaled and subject.most is not None and wish is not None and wish < subject.most
    cleared = record.noted.get(names.ANNOTATION_RESET)
    scene = Scene(
        now=tick.now,
        jumped_s=_jumped(tick, case),
        name=subject.key,
        about=_called(lead) if len(subject.sets) > 1 and spec is not REPLANNED else "",
        kind=kind_of(_called(lead), lead.runs),
        knobs=lead.knobs,
        planned=lead.before,
        serving=serving,
        signals=tick.signals(case, [lead.name]) if several else signals,
        changed=None if tried is None else _of(tried, case.serving, tick),
        changed_signals=None if tried is None else tick.signals(case, [tried.name]),
        window=tick.window,
        slo=subject.slo,
        consent=subject.consent,
        has_watermark=subject.engine.has_watermark,
        restarts=tick.config.restarts,
        spec=spec,
        serves=lead.name,
        free_replicas=_further(tick, subject, serving, ground.replicas, retuning),
        busy=busy_of(subject, case.serving),
        scaled=wish is not None and (wish != case.asked_before or so_far.record.shares != record.shares),
        fleet_gpus=tick.grounds.gpus,
        fleet_retuning=sum(gpus for key, gpus in retuning.items() if key != subject.key),
        cleared_at=None if cleared is None or not cleared.at else cleared.at,
    )
    return beside_scaling(
        scene,
        role=so_far.record.memory.of(ROLE),
        told=so_far.told,
        sets=tick.sets.of(subject, case.serving, tick.grounds) if len(subject.sets) > 1 else (serving,),
        name=lead.name if len(subject.sets) > 1 else serving.name,
        signals=signals,
        law=tick.law,
        counted=subject.autoscaled,
        more=grows and _has_room(tick, subject),
    )


def _further(tick: Tick, subject: Subject, each: ServingSet, free: int, retuning: Mapping[str, float]) -> int:
    """How many further replicas of a set may come for a retune: as many as find devices, and as the namespace's budget allows beside those
    that its other deployments in a retune may have come."""
    space = subject.key.partition("/")[0]
    allowed = tick.budgets.allows(subject.key, claim_of(each))
    if allowed is None:
        return free
    others = sum(key != subject.key and key.partition("/")[0] == space for key in retuning)
    return max(0, min(free, allowed - others))


def _has_room(tick: Tick, subject: Subject) -> bool:
    return any(tick.grounds.for_set(one).replicas > 0 for one in subject.sets)


def _passed(tick: Tick, case: Case) -> float:
    """Seconds since this program's last look; 0 at its first. What it finds then keeps its age, or each start of a program would prolong
    it."""
    role = case.record.memory.of(ROLE)
    return 0.0 if role.seen is None or role.begun == tick.now else tick.now - role.seen


def _paused(tick: Tick, case: Case) -> float:
    """Seconds of a pause since the last look. A program that has begun in it has not seen when it began, and what was counted since the record
    was stored is lost: it goes on from how long there was left by then."""
    role = case.record.memory.of(ROLE)
    passed = 0.0 if role.seen is None else tick.now - role.seen
    # By a clock that was put back before it began, all of it was moved when it was read.
    return max(0.0, passed) if role.begun == tick.now else passed


def _jumped(tick: Tick, case: Case) -> float:
    """Seconds of that by which the clock only jumped."""
    if case.record.memory.of(ROLE).looked_before(tick.now, tick.law.jump_s):
        return 0.0
    passed = _passed(tick, case)
    return passed - tick.law.tick_s if passed else 0.0


def _of(planned: Planned, serving: Serving, tick: Tick) -> ServingSet:
    seen = [one for one in serving.sets if one.name == planned.name]
    return serving_set(planned, seen, tick.grounds.for_set(planned))
