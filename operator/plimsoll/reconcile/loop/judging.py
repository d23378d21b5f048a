"""One tick of control over many deployments, as a function: who shall have how many replicas, what is retuned, what is told.

Everything that it starts from was gathered before, and what follows from it is done by turns.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from plimsoll import names
from plimsoll.control.copying import replace
from plimsoll.control.decision import Action, Decision, RoleDecision, Told
from plimsoll.control.demand import weights
from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.gate import OF_QUERY, QUERY_FAILED, QUERY_REFUSED, QUERY_UNANSWERED, gate_of
from plimsoll.control.idle import is_unsaid, last_asked, wake_of
from plimsoll.control.memory import Memory
from plimsoll.control.record import SCALE, Act, Noted, Record
from plimsoll.control.retune.machine import paused
from plimsoll.control.signals import Signals
from plimsoll.control.situation import Situation, Zero
from plimsoll.control.wish import acted, standing
from plimsoll.planning.placing.budgets import UNLIMITED, limits_of
from plimsoll.reconcile.loop.retuning import retuned, retuning_gpus, unlooked
from plimsoll.reconcile.loop.situations import situation_of
from plimsoll.reconcile.loop.subject import Subject, annotations_of
from plimsoll.reconcile.loop.tick import Case, Judged, Tick
from plimsoll.reconcile.loop.unanswered import why_missing
from plimsoll.status.told import News

LOG: Final = logging.getLogger(__name__)
SLOWER_S: Final = 60.0
"""Between two looks at a deployment's traffic and settings in a large fleet, where not all of them fit into one tick."""
LARGE: Final = 200
"""Deployments of a fleet, beyond which it counts as large."""
COUNTING: Final = frozenset({"requestSuccess", "generationTokens"})
"""Metrics that count what an engine has done. One that exports neither shows only what is in flight."""
FINDS_NOTHING: Final = (
    "finds nothing, so it neither sleeps nor wakes by it: where its series come only with a first request, end it in `or vector(0)`; "
    "else see at Prometheus what it finds"
)
NO_ANSWER: Final = "has no answer, so it neither sleeps nor wakes by it; the query need not be wrong: look at the Prometheus of prometheusUrl, which says"
SCALING: Final = frozenset({names.METRICS, names.SCALING, names.SLO})


def judged(tick: Tick, cases: Mapping[str, Case]) -> dict[str, Judged]:
    """By deployment. One for which nothing can be decided is left out, so that what was decided last stands."""
    met: dict[str, tuple[Case, Signals, Situation]] = {}
    for key in sorted(cases):
        try:
            case = _noticed(tick, _running(tick, cases[key]))
            signals = tick.signals(case)
            met[key] = case, signals, _situation(tick, case, signals)
        except Exception as error:  # noqa: BLE001 - what is odd about one deployment harms no other
            _spoiled(key, error)
    situations = [situation for _, _, situation in met.values()]
    decisions = decide_fleet(
        now=tick.now,
        situations=situations,
        memories={key: case.record.memory for key, (case, _, _) in met.items()},
        fleet=_fleet(tick, situations),
        law=tick.law,
        spoiled=_spoiled,
    )
    # Also of those of which nothing can be decided: what they try is there all the same.
    found, retuning = {}, {**tick.retuning, **retuning_gpus(cases)}
    slower = max(1, round(SLOWER_S / tick.law.tick_s)) if len(met) > LARGE else 1
    for decision in decisions:
        try:
            case, signals, situation = met[decision.name]
            scaled = _scaled(tick, case, decision, signals, situation)
            if is_due(decision.name, tick.number, slower):
                scaled = retuned(tick, case, scaled, signals, retuning)
            else:
                scaled = unlooked(tick, case, scaled)
            found[decision.name] = _explained(tick, case, signals, scaled)
        except Exception as error:  # noqa: BLE001 - as above
            _spoiled(decision.name, error)
    return found


def is_due(key: str, number: int, every: int) -> bool:
    """Whether this tick is one of the deployment's, of which it has one in so many, whoever comes and goes beside it."""
    return (zlib.crc32(key.encode()) + number) % every == 0


def _spoiled(key: str, error: Exception) -> None:
    LOG.error("nothing can be decided for a deployment", exc_info=error, extra={"deployment": key})


def _running(tick: Tick, case: Case) -> Case:
    """With what its sets run noted."""
    record = case.record.running([each.runs for each in case.subject.sets], tick.law)
    return case if record is case.record else case.noting(record)


def _noticed(tick: Tick, case: Case) -> Case:
    """With annotations whose value has changed since they were last seen: those ask for something."""
    asks = annotations_of(case.subject.metadata)
    if not asks and not case.record.noted:
        return case
    # A moment that is still to come was noted before a clock was put back: it counts as now, as all such moments do.
    noted = {
        name: each if each.at <= tick.now else Noted(each.value, tick.now)
        for name, each in case.record.noted.items()
    }
    for name, value in asks.items():
        if name not in noted or noted[name].value != value:
            # One that was there before the first look asks for nothing.
            looked = case.record.memory.roles or case.record.noted
            noted[name] = Noted(value, tick.now if looked else 0.0)
    if noted == case.record.noted:
        return case
    record = replace(case.record, noted={name: noted[name] for name in sorted(noted)})
    return case.noting(record)


def _situation(tick: Tick, case: Case, signals: Signals) -> Situation:
    return situation_of(
        case.subject,
        case.record,
        case.serving,
        signals,
        tick.sets.of(case.subject, case.serving, tick.grounds),
        zero=_zero(tick, case, signals),
    )


def _zero(tick: Tick, case: Case, signals: Signals) -> Zero | None:
    asked = case.subject.zero
    if asked is None:
        return None
    noted = case.record.noted.get(names.ANNOTATION_WAKE)
    return wake_of(
        now=tick.now,
        after_s=asked.after_s,
        queried=asked.query is not None,
        waiting=tick.waiting(case),
        woken_at=None if noted is None or not noted.at else noted.at,
        asked_at=None if case.record.busy_at is None else _busy_at(tick, case, signals),
        reachable=signals.reachable,
        unsaid=is_unsaid(signals, counts=_counts(case)),
    )


def _busy_at(tick: Tick, case: Case, signals: Signals) -> float:
    noted = case.record.noted.get(names.ANNOTATION_WAKE)
    return last_asked(
        case.record.busy_at,
        now=tick.now,
        signals=signals,
        waiting=tick.waiting(case),
        noted_at=None if noted is None else noted.at,
        counts=_counts(case),
    )


def _counts(case: Case) -> bool:
    """Whether its engine exports what it has done."""
    return not COUNTING.isdisjoint(case.subject.engine.metrics)


def _fleet(tick: Tick, situations: Sequence[Situation]) -> Fleet:
    spaces = sorted({one.namespace for one in situations})
    limits = {space: limits_of(space, tick.config) for space in spaces}
    # Deployments that are decided here count by what is seen of them, and all others by what their turns have decided.
    for key in sorted(tick.spends.keys() - {one.name for one in situations}):
        space = key.partition("/")[0]
        for claim, replicas in tick.spends[key] if space in limits else ():
            limits[space] = replace(limits[space].less(claim, replicas), replicas=limits[space].replicas)
    return Fleet(
        free=tick.grounds.free(),
        parts=tick.grounds.parts(),
        limits={space: each for space, each in limits.items() if each != UNLIMITED},
    )


def _scaled(tick: Tick, case: Case, decision: Decision, signals: Signals, situation: Situation) -> Judged:
    subject, record = case.subject, case.record
    role = decision.roles[0]
    record = replace(record, memory=decision.memory)
    if not subject.autoscaled:
        return Judged(record=replace(record, replicas=None), told=_tuned(tick, case, record, signals))
    if subject.zero is not None:
        record = replace(record, busy_at=_busy_at(tick, case, signals))
    before = case.asked_before
    news: tuple[News, ...] = ()
    weight = weights(situation.roles[0].sets)
    wish = standing(before, role, decision.memory.of(role.role), subject.bounds, weight)
    shares = _shares(case, role, wish)
    if acted(before, wish, role.action, moved=shares != record.shares):
        act = Act(
            at=tick.now,
            what=SCALE,
            before=str(before),
            after=str(wish),
            reason=role.reason,
            message=role.message,
        )
        record = record.with_act(act)
        news = (News("Normal", "Scale", role.reason, role.message),)
    else:
        record = replace(record, memory=_unmoved(decision, case.record.memory, tick.now))
    said = {one.type: one for one in decision.conditions if one.type in SCALING}
    for one in _tuned(tick, case, record, signals):
        said.setdefault(one.type, one)
    if (behind := _behind(tick, subject, wish, record.memory.of(role.role).up_at)) is not None:
        limit = said.get(behind.type)
        # Where not even scaling.max can be had, it is not scaling.max that limits.
        said[behind.type] = behind if limit is None or limit.reason == "AtMax" else limit
    # Not knowing the load is the greater trouble, and whatever keeps Prometheus from telling it keeps this query from an answer too.
    unknown = names.METRICS in said and said[names.METRICS].status == "False"
    if not unknown and (query := _of_query(tick, case, signals)) is not None:
        said[names.METRICS] = query
    record = replace(record, replicas=wish, shares=shares)
    return Judged(record=record, told=tuple(said.values()), reason=role.message, awake=role.awake, news=news)


def _of_query(tick: Tick, case: Case, signals: Signals) -> Told | None:
    """MetricsAvailable, where there is a wake query and no answer to it. Of one that sleeps nobody else may have told that none could be asked."""
    zero, key = case.subject.zero, case.subject.key
    if (refused := tick.looked.woken.refused.get(key)) is not None:
        is_slow = key in tick.looked.woken.slow
        what = "takes Prometheus too long and is asked seldom" if is_slow else "is refused"
        reason, why = QUERY_REFUSED, f"{what}, so it neither sleeps nor wakes by it: {refused}"
    elif zero is not None and zero.query is not None and tick.waiting(case) is None:
        if not signals.reachable:
            return gate_of(signals, tick.law).told
        failed = tick.looked.woken.unanswered.get(key)
        reason, why = (
            (QUERY_UNANSWERED, FINDS_NOTHING) if failed is None else (QUERY_FAILED, f"{NO_ANSWER}: {failed}")
        )
    else:
        return None
    return Told(
        type=names.METRICS, status="False", reason=reason, message=f"spec.scaling.zero.wake.query {why}"
    )


def _unmoved(decision: Decision, before: Memory, now: float) -> Memory:
    """The memory where this decision only asks again for what was asked for before, since the plan is behind: that is no new step, so the
    last one keeps its time, and a set that is left alone is so for no longer."""
    (role,) = decision.roles
    if role.action is Action.HOLD:
        return decision.memory
    after, known = decision.memory.of(role.role), before.of(role.role)
    if role.action in (Action.UP, Action.WAKE, Action.MOVE) and known.up_at is not None:
        # A moment that is still to come was noted before a clock was put back.
        after = replace(after, up_at=min(known.up_at, now))
    blocked = {key: known.blocked.get(key, block) for key, block in after.blocked.items()}
    return Memory(roles={**decision.memory.roles, role.role: replace(after, blocked=blocked)})


def _behind(tick: Tick, subject: Subject, wish: int, up_at: float | None) -> Told | None:
    """ScalingLimited, where the plan has had fewer replicas than are asked for, for longer than a late turn explains.

    The law knows neither every limit of a plan nor how GPUs lie together, so it may ask for what a plan cannot have.
    """
    if wish <= subject.replicas or subject.paused or up_at is None or tick.now - up_at < tick.law.unplaced_s:
        return None
    reason, why = "NotPlanned", "Stalled says why, or Placed"
    if subject.short:
        known = subject.short == "BudgetExhausted"
        reason, why = "BudgetExhausted" if known else "GPUsUnavailable", "Placed says why"
    message = f"{wish} replicas are wanted, and the plan has {subject.replicas}; {why}"
    return Told(type=names.SCALING, status="True", reason=reason, message=message)


def _shares(case: Case, role: RoleDecision, wish: int) -> Mapping[str, int]:
    """How many of the wished replicas are of which set, by the digest of its entry in the plan; empty where the plan has one set.

    While the wish is another number than was just decided, as the plan is behind, what was last said for that number stands.
    """
    sets = case.subject.sets
    if len(sets) < 2:
        return {}
    if role.replicas == wish:
        wishes = {each.set: each.replicas for each in role.wishes}
        return {each.digest: wishes[each.name] for each in sets}
    before = case.record.shares
    return before if sum(before.values()) == wish else {}


def _tuned(tick: Tick, case: Case, record: Record, signals: Signals) -> tuple[Told, ...]:
    """Conditions that retuning alone tells, whether or not live traffic decides the replicas."""
    if case.subject.consent.mode == "off":
        return ()
    return gate_of(signals, tick.law).told, paused(record.retune)


def _explained(tick: Tick, case: Case, signals: Signals, judged: Judged) -> Judged:
    """With the reason why metrics of its replicas are missing, where that is known."""
    why = why_missing(tick.looked, case) if signals.silent or not signals.reachable else ""
    if not why:
        return judged
    told = (
        replace(one, message=f"{one.message}: {why}")
        if one.type == names.METRICS and one.reason not in OF_QUERY
        else one
        for one in judged.told
    )
    return replace(judged, told=tuple(told))
