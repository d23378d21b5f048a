"""Whether the pinned plan is kept or replaced: what serves is disturbed only for a stated reason.

A plan stands until a field that planning reads is changed, a set fails to start for memory or layout, no device that is there or
declared could hold it, or a person asks for a new one. Anything else (new nodes, learned facts, a newer planner) can at most make
it known that a better plan is possible; a retune changes single settings of the plan that stands (`settle.changed`). What happened
outside (failures, waiting times) is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, Final

from plimsoll.api.base import ApiModel
from plimsoll.api.same import Same
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.planning import codec
from plimsoll.planning.apart import apart
from plimsoll.planning.memory.ledger import Verdict
from plimsoll.planning.placing.budgets import Limits, claim_of
from plimsoll.planning.placing.cost import rescaled, total_cost
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.plan import Finding, Outcome, Pinning, Plan, PlanSet

UNREAD_BEFORE: Final[tuple[tuple[str, ...], ...]] = (
    ("replicas",),
    ("scaling",),
    ("paused",),
    ("rollout",),
    ("tuning",),
    ("networking",),
    ("cost",),
    ("podLabels",),
    ("podAnnotations",),
    ("slo", "availabilityPercent"),
    ("workload", "preset"),
    ("model", "servedNames"),
    ("model", "tokenSecret"),
    ("engine", "upgrade"),
    ("engine", "imagePullPolicy"),
    ("engine", "imagePullSecrets"),
)
"""The same fields in the release before, whose digests are stored in clusters. Never change them: every pinned plan would count as edited."""
UNREAD: Final[tuple[tuple[str, ...], ...]] = (
    *UNREAD_BEFORE,
    ("podPatches",),
    ("scheduling",),
    ("toolCalling",),
    ("reasoning",),
    ("structuredOutput",),
    ("chatTemplate",),
)
"""Fields of a spec that change neither a figure nor a choice of the plan, so that editing them keeps it. Those that pods are made from
still lead to new sets of the same plan."""


REMEMBERED: Final = 64
"""How many specs have their digests remembered: every turn under way asks for those of its spec several times."""


FASTER: Final = 1.05
"""How many times the tokens a second of the pinned plan a fresh one must give, at the same cost, to be called better."""


class Event(StrEnum):
    """Why a caller asks for a new plan although the pinned one may still be good."""

    SET_FAILED = "SetFailed"
    REQUESTED = "Requested"
    LOST_HARDWARE = "LostHardware"
    """Nothing present or declared could hold the plan for as long as the caller waits (ten minutes)."""


def spec_digest(spec: LLMDeploymentSpec) -> str:
    """A digest of the fields that planning reads, with presets and defaults filled in."""
    return _digests(Same(spec))[0]


def digest_before(spec: LLMDeploymentSpec) -> str:
    """The digest that the release before made of the same spec."""
    return _digests(Same(spec))[1]


@lru_cache(REMEMBERED)
def _digests(asked: Same[LLMDeploymentSpec]) -> tuple[str, str]:
    spec = asked.value
    now, before = spec.to_dict(), spec.to_dict()
    for path in UNREAD:
        _drop(now, path)
    if spec.adapters is not None and spec.adapters.runtime_loading:
        _drop(now, ("adapters", "items"))
    for path in UNREAD_BEFORE:
        _drop(before, path)
    # A block in which nothing is left for planning counts as one that is not there.
    empty = _empty_blocks()
    said = {name: value for name, value in now.items() if name not in empty or value not in ({}, empty[name])}
    return codec.digest(said), codec.digest(before)


@cache
def _empty_blocks() -> Mapping[str, dict[str, Any]]:
    """By the name of a block: what a spec holds for it when none of its fields is set, which is its defaults."""
    fields = LLMDeploymentSpec.model_fields
    kinds = {
        info.alias or name: info.default_factory for name, info in fields.items() if info.default_factory
    }
    made = {name: kind() for name, kind in kinds.items()}  # type: ignore[call-arg]
    return {name: one.to_dict() for name, one in made.items() if isinstance(one, ApiModel)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How many replicas live traffic asks for, in place of the declared load."""

    replicas: int
    shares: Mapping[str, int] = field(default_factory=dict)
    """Replicas by digest of a set; empty where it is left open how they are shared among the sets."""
    further: bool = False
    """True where the sets find no more devices, so that another set on other devices is to be planned without replicas."""


def replacing(pinned: Plan | None, digest: str, event: Event | None, *, holdable: bool) -> Pinning | None:
    """Why the pinned plan must be replaced, or None where it stands.

    `holdable` says whether devices that are there or declared could hold each of its sets if they were free.
    """
    if pinned is None or not pinned.sets:
        return Pinning(kept=False, reason="FirstPlan", message="there was no plan yet")
    if event is not None and (event is not Event.LOST_HARDWARE or not holdable):
        return Pinning(kept=False, reason=event.value, message=_EVENTS[event])
    if pinned.spec_digest != digest:
        return Pinning(kept=False, reason="SpecChanged", message="a field that planning reads was changed")
    return None


_EVENTS: Final = {
    Event.SET_FAILED: "a set failed to start for memory or layout",
    Event.REQUESTED: "a person asked for a new plan",
    Event.LOST_HARDWARE: "no device that is there or declared could hold it",
}


def kept(
    pinned: Plan, fresh: Plan, *, wanted: int, wish: Wish | None, ground: Ground, limits: Limits
) -> Plan:
    """The pinned sets with today's number of replicas and today's findings, and what a fresh plan would save.

    Replicas beyond the room of the pinned hardware go to the sets of the fresh plan, which are added; no set is replaced. The budget
    binds only replicas that are added: as with a quota, what serves already may stay.
    """
    ours = {chosen.digest for chosen in pinned.sets}
    sets = [*pinned.sets, *(rescaled(other, 0) for other in fresh.sets if other.digest not in ours)]
    sets = _spread(sets, wanted=wanted, wish=wish, ground=ground, limits=limits)
    sets = [chosen for chosen in sets if chosen.replicas or chosen.digest in ours]
    outcome = Outcome.FITS
    if any(chosen.ledger.verdict is Verdict.TIGHT for chosen in sets):
        outcome = Outcome.TIGHT
    if sum(chosen.replicas for chosen in sets) < wanted:
        outcome = Outcome.SHORT
    now = replace(
        pinned,
        sets=tuple(sets),
        outcome=outcome,
        replicas_wanted=wanted,
        replicas_reason=fresh.replicas_reason,
        findings=fresh.findings,
        cost=total_cost(sets),
    )
    message = "nothing happened that would justify a restart"
    return replace(
        now, pinning=Pinning(kept=True, reason="Pinned", message=message, better=saving(now, fresh))
    )


def undisturbed(
    pinned: Plan,
    fixed: int | None,
    findings: tuple[Finding, ...],
    *,
    wish: Wish | None,
    ground: Ground,
    limits: Limits,
) -> Plan:
    """The pinned plan where nothing can be planned now, which must not take down what serves: the model's source cannot be reached, an
    admin's list has become shorter, or an edit contradicts itself. Replicas go only where a person takes them away, and come only where
    live traffic asks for more of the same and there is room, as neither needs a new plan."""
    wished = 0 if wish is None else wish.replicas
    wanted = max(pinned.replicas, wished) if fixed is None else fixed
    sets = tuple(_spread(pinned.sets, wanted=wanted, wish=wish, ground=ground, limits=limits))
    message = "it cannot be planned anew now, so what serves stays; the findings say why"
    return replace(
        pinned,
        sets=sets,
        replicas_wanted=max(pinned.replicas_wanted, wished) if fixed is None else fixed,
        findings=findings,
        cost=total_cost(sets),
        pinning=Pinning(kept=True, reason="Pinned", message=message),
    )


def _spread(
    sets: Sequence[PlanSet], *, wanted: int, wish: Wish | None, ground: Ground, limits: Limits
) -> list[PlanSet]:
    """The sets with `wanted` replicas in all, each set's number as the wish says, within its room and the budget. Where the wish does not
    share them out, replicas are taken from the last set first and added to the first set first."""
    most = dict.fromkeys((chosen.digest for chosen in sets), wanted)
    if wish is not None and sum(wish.shares.values()) == wanted and wish.shares.keys() <= most.keys():
        most = {digest: wish.shares.get(digest, 0) for digest in most}
    found, left = [], wanted
    for chosen in sets:
        found.append(rescaled(chosen, min(chosen.replicas, most[chosen.digest], left)))
        left -= found[-1].replicas
    for chosen in found:
        ground.occupy(chosen, chosen.placements)
    for index, chosen in enumerate(found):
        missing = min(left, most[chosen.digest] - chosen.replicas)
        more = min(missing, ground.room(chosen), _allowed(chosen, found, limits, missing))
        if more > 0:
            found[index] = rescaled(chosen, chosen.replicas + more, ground.place(chosen, more))
            left -= more
    return found


def _allowed(chosen: PlanSet, sets: Sequence[PlanSet], limits: Limits, wanted: int) -> int:
    """How many more replicas of a set the budget allows when all the sets are counted; at most `wanted`."""
    for other in sets:
        limits = limits.less(claim_of(other), other.replicas)
    allowed = limits.allows(claim_of(chosen))
    return wanted if allowed is None else allowed


def saving(pinned: Plan, fresh: Plan) -> str | None:
    """What a fresh plan would do better, in words; None where it would run the same sets or be no better."""
    if not fresh.sets or {s.digest for s in fresh.sets} == {s.digest for s in pinned.sets}:
        return None
    now, then = pinned.cost, fresh.cost
    if now is None or then is None or pinned.replicas == 0 or fresh.replicas < fresh.replicas_wanted:
        return None
    what = " + ".join(f"{s.replicas} x {s.layout} on {s.hardware}" for s in fresh.sets)
    if otherwise := apart(fresh, pinned):
        what += f", with {otherwise},"
    if now.per_hour is not None and then.per_hour is not None and float(then.per_hour) < float(now.per_hour):
        return f"{what} would cost {then.per_hour} instead of {now.per_hour} an hour"
    if then.gpu_hours_per_hour < now.gpu_hours_per_hour:
        return f"{what} would take {then.gpu_hours_per_hour:g} GPUs instead of {now.gpu_hours_per_hour:g}"
    old, new = pinned.output_tokens_per_second, fresh.output_tokens_per_second
    same_bill = then.gpu_hours_per_hour == now.gpu_hours_per_hour and then.per_hour == now.per_hour
    if same_bill and old is not None and new is not None and new > old * FASTER:
        return f"{what} would give {new:,.0f} instead of {old:,.0f} output tokens a second for the same GPUs"
    return None


def _drop(data: dict[str, Any], path: tuple[str, ...]) -> None:
    """Takes the value at a path of keys out of nested data, if it is there."""
    inner: Any = data
    for part in path[:-1]:
        inner = inner.get(part)
        if not isinstance(inner, dict):
            return
    inner.pop(path[-1], None)
