"""The scenario of a plan: its sets as they are simulated, those that stand by, and what of the resource and the fleet is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from plimsoll.api.config import Restarts
from plimsoll.api.config_fleet import PROVISION_S
from plimsoll.api.v1alpha1.scaling import Scaling
from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.law import up_window_s
from plimsoll.control.situation import ZERO_AFTER_S, Slo
from plimsoll.planning.ask.context_length import model_ceiling
from plimsoll.planning.ask.intent import ASSUMED_INPUT, ASSUMED_OUTPUT
from plimsoll.planning.ask.reading import Reading
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.values import counted
from plimsoll.planning.choice.outcomes import LACKING
from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.lengths import Length
from plimsoll.planning.placing.budgets import UNLIMITED, claim_of
from plimsoll.planning.placing.budgets import Limits as Budgeted
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.placing.placement import Slot, device_part, same_devices
from plimsoll.planning.plan import Finding, Outcome, Plan, PlanSet, Severity
from plimsoll.simulate.arrivals import Lengths
from plimsoll.simulate.gateway import Wake
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.several import Played, numbered, on_devices_of_their_own
from plimsoll.simulate.tuning import tunable_of
from plimsoll.simulate.world import SCRAPE_S, Hardware, Site
from plimsoll.status.findings import sentence

ROOM_MOST: Final = 1000
"""Replicas at which counting room stops."""
USUAL: Final = Restarts()
NO_CLASSES: Final[Mapping[str, float]] = MappingProxyType({})
"""Where the admin's config says nothing of how long nodes take."""


class CannotSimulate(ValueError):
    """Nothing that would run, or nothing that the engine model knows: a sentence for the user."""


class NotPlayed(CannotSimulate):
    """It would run, and the engine model knows nothing of it."""


def scenario_of(
    plan: Plan,
    reading: Reading,
    limits: Budgeted = UNLIMITED,
    further: Callable[[], Iterable[PlanSet]] = tuple,
    *,
    restarts: Restarts = USUAL,
    provision: Mapping[str, float] = NO_CLASSES,
    interval_s: float = SCRAPE_S,
    closes: bool = False,
) -> Scenario:
    """The plan's sets, alone in their fleet and with the whole budget of their namespace; what is left out is said.

    `limits` are that budget, `restarts` bound retunes, `provision` is how long a node of each class takes to come, and `interval_s`
    lies between two decisions, `closes` says that engines close connections after each answer. `further` gives the sets that the plan would grow onto once its own find no more devices; it is
    asked only where that can come to pass.
    """
    task = reading.task
    if task is None or not plan.sets:
        why = next((f": {sentence(one)}" for one in hindering(plan)), "")
        raise CannotSimulate(
            f"{plan.namespace}/{plan.name}: the plan {_said(plan.outcome)}, so nothing would run{why}"
        )
    chosen, intent, fixed = plan.sets[0], task.intent, task.intent.bounds.fixed
    given = _Given(
        plan=plan, reading=reading, task=task, provision=provision, restarts=restarts, fixed=fixed is not None
    )
    slot = given.slot(chosen)
    if not intent.generates:
        raise NotPlayed(
            f"{plan.namespace}/{plan.name}: generates nothing, and only resources whose model.task is generate are simulated; plimsoll plan tells "
            "what a replica of it carries"
        )
    if chosen.performance is None or slot is None:
        raise NotPlayed(f"{plan.namespace}/{plan.name}: no step times are known for {chosen.hardware}")
    first = given.played(chosen, slot, limits)
    allowed = first.site.allowed
    most_asked = intent.bounds.most if fixed is None else max(1, fixed)
    sets, unplayed = _sets(given, limits, further, most=most_asked if fixed is None else None)
    bound = min((one for one in (most_asked, allowed) if one is not None), default=None)
    room = sum(one.hardware.most for one in sets) if sets else first.hardware.most
    together = most_asked if sets else bound
    most = room if together is None else min(together, room)
    workload, scaling = intent.spec.workload, intent.spec.scaling
    down = scaling.down_window_seconds
    return Scenario(
        name=f"{plan.namespace}/{plan.name}",
        model=plan.model,
        gpu=first.gpu,
        layout=first.layout,
        devices=float(chosen.devices_per_replica),
        times=first.site.times,
        limits=first.site.limits,
        capacity=first.capacity,
        requests_per_second=chosen.performance.requests_per_second,
        steady_per_second=chosen.steady_per_second,
        most_per_second=chosen.most_per_second if chosen.max_concurrency else None,
        slo=Slo.of_ms(ttft_p99=intent.ttft_ms, itl_p99=intent.itl_ms),
        lengths=lengths_of(workload),
        lengths_declared=workload.input_tokens is not None and workload.output_tokens is not None,
        ceiling=model_ceiling(task.model.architecture, intent),
        least=min(max(1, intent.bounds.least), most) if fixed is None else most,
        most=most,
        bounded=bound is not None,
        budget_binds=allowed is not None and (most_asked is None or allowed < most_asked),
        fixed=fixed is not None,
        hardware=first.hardware,
        up_window_s=up_window_s(scaling.up_window_seconds, interval_s),
        down_window_s=None if down is None else float(down),
        interval_s=interval_s,
        closes=closes,
        zero=None if fixed is not None else _wake(scaling),
        price_per_gpu_hour=_price(chosen),
        sets=sets,
        limits_together=limits if sets else UNLIMITED,
        tunable=None if sets else first.tunable,
        attainable=all(one.reason != UNATTAINABLE for one in plan.findings),
        warned=tuple(sentence(one) for one in plan.findings if one.severity is Severity.WARNING),
        left_out=(*_left_out(reading, plan.outcome, allowed, room, several=bool(sets)), *unplayed),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What each set of a scenario is made from, beside the set itself."""

    plan: Plan
    reading: Reading
    task: Task
    provision: Mapping[str, float]
    restarts: Restarts
    fixed: bool

    def slot(self, chosen: PlanSet) -> Slot | None:
        """Where it runs; None where no step times are known for that."""
        if chosen.performance is None or chosen.ledger.capacity is None:
            return None
        return next(
            (slot for slot in self.reading.slots if same_devices(slot.hardware, chosen.hardware)), None
        )

    def room(self, chosen: PlanSet) -> int:
        return _room(chosen, self.reading.slots, self.reading.owner)

    def played(self, chosen: PlanSet, slot: Slot, budget: Budgeted, *, stands_by: bool = False) -> Played:
        """One set as it is simulated, with what the budget leaves it."""
        task, claim = self.task, claim_of(chosen)
        tunable = tunable_of(
            chosen, task, slot, task.intent.spec.tuning, self.restarts, plan=self.plan, fixed=self.fixed
        )
        planned = tunable.variant({})
        return Played(
            gpu=str(chosen.hardware),
            layout=str(chosen.layout),
            site=Site(
                times=planned.times,
                limits=planned.limits,
                hardware=_hardware(chosen, self.reading, self.provision),
                allowed=budget.allows(claim),
            ),
            capacity=planned.capacity,
            claim=claim,
            tunable=tunable,
            stands_by=stands_by,
        )


def _sets(
    given: _Given, budget: Budgeted, further: Callable[[], Iterable[PlanSet]], *, most: int | None
) -> tuple[tuple[Played, ...], tuple[str, ...]]:
    """All sets that are simulated, where they are more than one; and in a sentence each those that are not."""
    planned = on_devices_of_their_own(given.plan.sets)
    beside = tuple(further()) if most is not None and sum(map(given.room, planned)) < most else ()
    if len(planned) + len(beside) < 2:
        return (), ()
    found: list[Played] = []
    unplayed: list[str] = []
    if len(planned) < len(given.plan.sets):
        unplayed.append("a set on the same devices as one before it is not simulated")
    for chosen in (*planned, *beside):
        slot = given.slot(chosen)
        if slot is None:
            unplayed.append(f"no step times are known for {chosen.hardware}, so that set is not simulated")
        elif given.room(chosen) >= 1:
            one = given.played(chosen, slot, budget, stands_by=chosen in beside)
            budget = budget.less(one.claim, one.site.room)
            found.append(one)
    return numbered(found) if len(found) > 1 else (), tuple(unplayed)


def hindering(plan: Plan) -> list[Finding]:
    """What keeps a plan from being made, or its replicas from being placed."""
    return [one for one in plan.findings if one.severity is Severity.ERROR or one.reason in LACKING]


def _said(outcome: Outcome) -> str:
    return f"is {outcome}" if outcome in (Outcome.SHORT, Outcome.INVALID) else outcome.value


def _left_out(
    reading: Reading, outcome: Outcome, allowed: int | None, room: int, *, several: bool
) -> Iterator[str]:
    spec = reading.deployment.spec
    most = spec.scaling.max
    if spec.replicas == 0:
        yield "spec.replicas is 0, so nothing would serve; one replica is simulated"
    if spec.paused:
        yield "spec.paused holds everything as it is; it is simulated as if it did not"
    if outcome is Outcome.SHORT:
        yield "the plan is short of GPUs: fewer replicas than it asks for are simulated, as many as find room"
    if spec.replicas is None and most is not None and most > room:
        yield f"scaling.max allows {most:,} replicas, and the fleet has room for {room:,}"
    if spec.replicas is None and most is None:
        yield "without scaling.max the operator keeps the number that was planned; this shows what it would do with one"
    if allowed is not None:
        yield (
            f"the namespace's budget allows {counted(allowed, 'replica')}{' of the first set' if several else ''}; what others there take of it, and whose priority goes first, "
            "is not simulated"
        )


def _wake(scaling: Scaling) -> Wake | None:
    zero = scaling.zero
    if zero is None:
        return None
    return Wake(after_s=float(zero.after_seconds or ZERO_AFTER_S), queried=zero.wake.query is not None)


def _price(chosen: PlanSet) -> float | None:
    cost = chosen.cost
    if cost.per_hour is None or not cost.gpu_hours_per_hour:
        return None
    return float(cost.per_hour) / cost.gpu_hours_per_hour


def lengths_of(workload: Workload) -> Lengths:
    given = _length(workload.input_tokens, ASSUMED_INPUT)
    share = (workload.shared_prefix_percent or 0) / 100
    shared = int(given.median * share)
    return Lengths(
        input=given.less(shared),
        output=_length(workload.output_tokens, ASSUMED_OUTPUT),
        shared_tokens=shared,
    )


def _length(declared: TokenPercentiles | None, otherwise: int) -> Length:
    if declared is None:
        return Length.by(None, None, None, otherwise)
    return Length.by(declared.p50, declared.p95, declared.p99, otherwise)


def _room(chosen: PlanSet, slots: Sequence[Slot], owner: str) -> int:
    return Ground(slots, owner).room(chosen)


def _hardware(chosen: PlanSet, reading: Reading, provision: Mapping[str, float]) -> Hardware:
    """Room for replicas of a set on the nodes there are, and on those that would be made."""
    there = [replace(slot, pools=tuple(pool.there for pool in slot.pools)) for slot in reading.slots]
    ready, most = _room(chosen, there, reading.owner), _room(chosen, reading.slots, reading.owner)
    if most < 1:
        raise CannotSimulate(f"{reading.owner}: no {chosen.hardware} has room for a replica")
    return Hardware(
        ready=min(ready, ROOM_MOST),
        growing=min(most, ROOM_MOST) - min(ready, ROOM_MOST),
        devices=float(chosen.devices_per_replica * device_part(chosen.hardware)),
        node_s=min(
            (provision.get(name, PROVISION_S) for name in _classes(chosen, reading)), default=PROVISION_S
        ),
    )


def _classes(chosen: PlanSet, reading: Reading) -> Iterator[str]:
    """Of nodes that would be made for its replicas."""
    for slot in reading.slots:
        if same_devices(slot.hardware, chosen.hardware):
            yield from (pool.node_class for pool in slot.pools if pool.node_class and pool.declared_nodes)
