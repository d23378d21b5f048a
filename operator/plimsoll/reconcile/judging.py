"""One tick of control over many deployments, as a function: who shall have how many replicas, what is retuned, what is told.

Everything that it starts from was gathered before, and what follows from it is done by turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.control.decision import Decision, Told
from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.gate import Gate, gate_of
from plimsoll.control.law import Law
from plimsoll.control.learning import lead_s
from plimsoll.control.record import Act, Noted, Record
from plimsoll.control.retune import Offer, RetuneMemory, Scene, Turned, advance
from plimsoll.control.retune.machine import paused
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, latencies_of, signals_of
from plimsoll.control.situation import Role, ServingSet, Situation, Zero
from plimsoll.control.workload import observe
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.serving import Serving
from plimsoll.planning.budgets import UNLIMITED, limits_of
from plimsoll.reconcile.situations import (
    Grounds,
    busy_of,
    leaders,
    live,
    serving_set,
    situation_of,
)
from plimsoll.reconcile.sources import Looked, PodKey
from plimsoll.reconcile.subject import Planned, Subject, annotations_of
from plimsoll.status.told import News

SLOWER: Final = 4
"""Ticks between two looks at a deployment's traffic and settings in a large fleet: those change by the minute."""
LARGE: Final = 200
ROLE: Final = "serve"
SCALING: Final = frozenset({names.METRICS, names.SCALING, names.SLO})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One deployment, as a tick finds it."""

    subject: Subject
    record: Record
    serving: Serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    record: Record
    told: tuple[Told, ...] = ()
    reason: str = ""
    """Why this number of replicas."""
    news: tuple[News, ...] = ()
    """Decisions of this tick, each to be told once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    now: float
    number: int
    window: Window
    looked: Looked
    inventory: Inventory
    config: OperatorConfig
    law: Law
    grounds: Grounds = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grounds", Grounds(self.inventory, self.config))

    def waiting(self, case: Case) -> float | None:
        """What the gateway's query says, where there is one and it was answered."""
        return self.looked.woken.waiting.get(case.subject.key)

    def signals(self, case: Case, sets: Sequence[str] | None = None) -> Signals:
        """Of some sets' replicas, or of all."""
        space = case.subject.key.partition("/")[0]
        summed = None
        if self.looked.histograms is not None:
            chosen = sets if sets is not None else sorted({name for name, _ in leaders(case.serving)})
            summed = latencies_of(_found(self.looked.histograms, space, chosen))
        return signals_of(
            self.window,
            now=self.now,
            live=live(case.serving, sets).values(),
            reachable=self.looked.reachable,
            gateway=self.waiting(case),
            latencies=summed,
        )


def _found(
    histograms: Mapping[PodKey, Mapping[str, Histogram]], space: str, sets: Sequence[str]
) -> list[Mapping[str, Histogram]]:
    return [histograms[space, name] for name in sets if (space, name) in histograms]


def judged(tick: Tick, cases: Mapping[str, Case]) -> dict[str, Judged]:
    """By deployment."""
    cases = {key: _noticed(tick, cases[key]) for key in sorted(cases)}
    signals = {key: tick.signals(case) for key, case in cases.items()}
    situations = [_situation(tick, case, signals[key]) for key, case in cases.items()]
    decisions = decide_fleet(
        now=tick.now,
        situations=situations,
        memories={key: case.record.memory for key, case in cases.items()},
        fleet=_fleet(tick, situations),
        law=tick.law,
    )
    found, retuning = {}, _retuning(cases)
    slower = SLOWER if len(cases) > LARGE else 1
    for place, decision in enumerate(decisions):
        case = cases[decision.name]
        scaled = _scaled(tick, case, decision)
        if (place + tick.number) % slower == 0:
            scaled = _slowly(tick, case, scaled, signals[decision.name], retuning)
        found[decision.name] = scaled
    return found


def _noticed(tick: Tick, case: Case) -> Case:
    """With annotations that changed, which ask for something."""
    noted = dict(case.record.noted)
    for name, value in annotations_of(case.subject.metadata).items():
        if name not in noted or noted[name].value != value:
            # One that was there before anybody looked asks for nothing.
            looked = case.record.memory.roles or case.record.noted
            noted[name] = Noted(value, tick.now if looked else 0.0)
    if noted == case.record.noted:
        return case
    return replace(case, record=replace(case.record, noted={name: noted[name] for name in sorted(noted)}))


def _situation(tick: Tick, case: Case, signals: Signals) -> Situation:
    return situation_of(
        case.subject, case.record, case.serving, signals, tick.grounds, zero=_zero(tick, case, signals)
    )


def _zero(tick: Tick, case: Case, signals: Signals) -> Zero | None:
    asked = case.subject.zero
    if asked is None:
        return None
    noted = case.record.noted.get(names.ANNOTATION_WAKE)
    waiting = tick.waiting(case)
    silent = asked.query is not None and waiting is None
    busy = case.record.busy_at
    idle = None if silent or busy is None or not signals.reachable else max(0.0, tick.now - busy)
    return Zero(
        after_s=asked.after_s,
        waiting=waiting,
        woken_at=None if noted is None or not noted.at else noted.at,
        idle_s=idle,
    )


def _busy_at(tick: Tick, case: Case, signals: Signals) -> float:
    """When somebody last asked: by the gateway's count, the wake annotation, and the engines' own."""
    noted = case.record.noted.get(names.ANNOTATION_WAKE)
    last = max(case.record.busy_at or tick.now, noted.at if noted is not None else 0.0)
    asked = (
        (tick.waiting(case) or 0.0) > 0
        or (signals.inflight or 0.0) > 0
        or (signals.sum("recently") or 0.0) > 0
    )
    return tick.now if asked else last


def _fleet(tick: Tick, situations: Sequence[Situation]) -> Fleet:
    spaces = sorted({one.namespace for one in situations})
    limits = {space: limits_of(space, tick.config) for space in spaces}
    return Fleet(
        free=tick.grounds.free(),
        limits={space: each for space, each in limits.items() if each != UNLIMITED},
    )


def _scaled(tick: Tick, case: Case, decision: Decision) -> Judged:
    subject, record = case.subject, case.record
    role = decision.roles[0]
    record = replace(record, memory=decision.memory)
    if not subject.autoscaled:
        return Judged(record=replace(record, replicas=None), told=_tuned(tick, case, record))
    if subject.zero is not None:
        record = replace(record, busy_at=_busy_at(tick, case, tick.signals(case)))
    before = record.replicas if record.replicas is not None else subject.replicas
    news: tuple[News, ...] = ()
    if role.replicas != before:
        act = Act(
            at=tick.now,
            what="scale",
            before=str(before),
            after=str(role.replicas),
            reason=role.reason,
            message=role.message,
        )
        record = record.with_act(act)
        news = (News("Normal", "Scale", role.reason, role.message),)
    told = [one for one in decision.conditions if one.type in SCALING]
    told += [one for one in _tuned(tick, case, record) if one.type not in {each.type for each in told}]
    if (refused := tick.looked.woken.refused.get(subject.key)) is not None:
        said = f"spec.scaling.zero.wake.query is refused, so it neither sleeps nor wakes by it: {refused}"
        told = [one for one in told if one.type != names.METRICS]
        told.append(Told(type=names.METRICS, status="False", reason="QueryRefused", message=said))
    return Judged(
        record=replace(record, replicas=role.replicas), told=tuple(told), reason=role.message, news=news
    )


def _tuned(tick: Tick, case: Case, record: Record) -> tuple[Told, ...]:
    """What is told of whoever is only retuned."""
    if case.subject.consent.mode == "off":
        return ()
    return _gate(tick, case).told, paused(record.retune)


def _gate(tick: Tick, case: Case) -> Gate:
    return gate_of(tick.signals(case), tick.law)


def _retuning(cases: Mapping[str, Case]) -> dict[str, float]:
    """GPUs of sets that a retune moves now, by deployment."""
    return {
        key: sum(each.gpus * each.replicas for each in case.subject.sets)
        for key, case in cases.items()
        if case.record.retune.step is not None
    }


def _slowly(tick: Tick, case: Case, so_far: Judged, signals: Signals, retuning: dict[str, float]) -> Judged:
    record = so_far.record
    burstiness = record.memory.of(ROLE).load.burstiness
    record = replace(record, observed=observe(record.observed, signals, tick.now, burstiness=burstiness))
    if case.subject.paused:
        return replace(so_far, record=record)
    turned = advance(_scene(tick, case, so_far, retuning), record.retune)
    if turned.memory.step is not None:
        retuning[case.subject.key] = sum(each.gpus * each.replicas for each in case.subject.sets)
    told = tuple(one for one in so_far.told if one.type != names.AUTOTUNE_PAUSED)
    told += tuple(one for one in turned.told if case.subject.consent.mode != "off")
    news = tuple(
        News("Warning" if event.warning else "Normal", "Retune", event.reason, event.message)
        for event in turned.events
    )
    return replace(
        so_far,
        record=_retuned(tick, replace(record, retune=turned.memory), record.retune, turned),
        told=told,
        news=(*so_far.news, *news),
    )


def _retuned(tick: Tick, record: Record, before: RetuneMemory, turned: Turned) -> Record:
    """With what a person would want to read later."""
    step = turned.memory.step or before.step
    for event in turned.events:
        past = turned.memory.past[0] if turned.memory.past and turned.memory.past != before.past else None
        about = past or step or turned.memory.suggested
        if about is not None:
            record = record.with_act(
                Act(
                    at=tick.now,
                    what=about.setting,
                    before=about.before,
                    after=about.after,
                    reason=event.reason,
                    message=event.message,
                )
            )
    return record


def _scene(tick: Tick, case: Case, so_far: Judged, retuning: Mapping[str, float]) -> Scene:
    subject, record = case.subject, case.record
    lead = max(subject.sets, key=lambda each: each.replicas)
    tried = subject.changed
    ground = tick.grounds.for_set(lead)
    signals = tick.signals(case, [lead.name])
    role = record.memory.of(ROLE)
    serving = _of(lead, case.serving, tick)
    # The plan's entry is what a step is about: a set's name holds fields of the user's too.
    serving = replace(serving, name=lead.digest)
    limited = any(one.type == names.SCALING and one.status == "True" for one in so_far.told)
    wish = so_far.record.replicas
    more = subject.autoscaled and subject.most is not None and wish is not None and wish < subject.most
    cleared = record.noted.get(names.ANNOTATION_RESET)
    return Scene(
        now=tick.now,
        name=subject.key,
        knobs=lead.knobs,
        serving=serving,
        signals=signals,
        changed=None if tried is None else _of(tried, case.serving, tick),
        changed_signals=None if tried is None else tick.signals(case, [tried.name]),
        slo=subject.slo,
        consent=subject.consent,
        offer=Offer(watermark="--watermark" in subject.engine.flags),
        restarts=tick.config.restarts,
        spec=subject.spec,
        more_replicas=more and not limited and ground.replicas > 0,
        free_replicas=ground.replicas,
        start_s=lead_s(role, Role(sets=(serving,), signals=signals), tick.law),
        data=_gate(tick, case).open,
        busy=busy_of(subject, case.serving),
        scaled_at=role.up_at,
        fleet_gpus=tick.grounds.gpus,
        fleet_retuning=sum(gpus for key, gpus in retuning.items() if key != subject.key),
        cleared_at=None if cleared is None or not cleared.at else cleared.at,
    )


def _of(planned: Planned, serving: Serving, tick: Tick) -> ServingSet:
    seen = [one for one in serving.sets if one.name == planned.name]
    return serving_set(planned, seen, tick.grounds.for_set(planned))


__all__ = ["Case", "Judged", "Tick", "judged"]
