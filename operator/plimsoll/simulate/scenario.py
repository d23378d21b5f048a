"""What is simulated: the sets of a plan, the traffic that its resource declares, and the hardware its fleet has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from plimsoll.api.config import Restarts
from plimsoll.api.config_fleet import PROVISION_S
from plimsoll.api.v1alpha1.scaling import Scaling
from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.capacity import capacity_of
from plimsoll.control.law import up_window_s
from plimsoll.control.situation import Capacity, Slo
from plimsoll.planning.ask.intent import ASSUMED_INPUT, ASSUMED_OUTPUT
from plimsoll.planning.ask.reading import Reading
from plimsoll.planning.ask.values import counted
from plimsoll.planning.placing.budgets import UNLIMITED, claim_of
from plimsoll.planning.placing.budgets import Limits as Budgeted
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.placing.placement import Slot, device_part, same_devices
from plimsoll.planning.plan import Outcome, Plan, PlanSet
from plimsoll.simulate.arrivals import Length, Lengths
from plimsoll.simulate.gateway import Wake
from plimsoll.simulate.several import Played, on_devices_of_their_own
from plimsoll.simulate.steps import Limits, StepTimes, believed, limits_of
from plimsoll.simulate.tuning import Tunable, tunable_of
from plimsoll.simulate.world import SCRAPE_S, Hardware, Site, World, draw_world

ROOM_MOST: Final = 1000
"""Replicas at which counting room stops."""
USUAL: Final = Restarts()
NO_CLASSES: Final[Mapping[str, float]] = MappingProxyType({})
"""Where the admin says nothing."""
ZERO_AFTER_S: Final = 900.0


class CannotSimulate(ValueError):
    """Nothing that would run, or nothing that the engine model knows: a sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is said without naming a set is said of the plan's first one."""

    name: str
    model: str
    gpu: str
    layout: str
    devices: float
    """Of one replica."""
    times: StepTimes
    """As the planner believes."""
    limits: Limits
    capacity: Capacity
    requests_per_second: float
    """That a replica is planned for."""
    slo: Slo
    lengths: Lengths
    lengths_declared: bool
    least: int
    most: int
    """Replicas that the resource allows and the fleet has room for. Of several sets together a budget may leave fewer, see `reachable`."""
    bounded: bool
    """Whether the resource says how many there may be, or its namespace's budget."""
    fixed: bool = False
    """spec.replicas says how many there are, whatever comes."""
    budget_binds: bool = False
    """It is the budget that bounds them, and not what the resource says."""
    hardware: Hardware
    up_window_s: float
    down_window_s: float | None
    interval_s: float = SCRAPE_S
    """Between two decisions of our law."""
    zero: Wake | None = None
    """It may sleep; `least` is then what others keep, whose way it is not."""
    price_per_gpu_hour: float | None = None
    """In the admin's currency; None where a price is unknown."""
    sets: tuple[Played, ...] = ()
    """All of them, the first included, where there are several."""
    limits_together: Budgeted = UNLIMITED
    """What the budget leaves them, where there are several."""
    tunable: Tunable | None = None
    """What a retune may change, where there is one set; of several each says it of itself."""
    left_out: tuple[str, ...] = ()
    """What the resource asks for, or the fleet would do, that is not simulated: a sentence each."""

    @property
    def room(self) -> int:
        """Replicas that find devices; of several sets those that the budget leaves too."""
        return sum(one.site.room for one in self.sets) if self.sets else self.hardware.most

    @property
    def devices_hold(self) -> int:
        """Replicas that find devices, whatever the budget."""
        return sum(one.hardware.most for one in self.sets) if self.sets else self.hardware.most

    @property
    def reachable(self) -> int:
        """The largest number that can be there, the first set's first."""
        return min(self.most, self.room)

    def world(self, seed: int, *, crashes_per_replica_day: float = 0.0) -> World:
        return draw_world(
            seed=seed,
            times=self.times,
            limits=self.limits,
            slo=self.slo,
            hardware=self.hardware,
            crashes_per_replica_day=crashes_per_replica_day,
            allowed=self.sets[0].site.allowed if self.sets else None,
            beside=tuple(one.site for one in self.sets[1:]),
        )


def scenario_of(
    plan: Plan,
    reading: Reading,
    limits: Budgeted = UNLIMITED,
    further: Callable[[], Iterable[PlanSet]] = tuple,
    *,
    restarts: Restarts = USUAL,
    provision: Mapping[str, float] = NO_CLASSES,
    interval_s: float = SCRAPE_S,
) -> Scenario:
    """The plan's sets, alone in their fleet and with all of their namespace's `limits`; what is left out is said. `restarts` bound retunes;
    `provision` is how long a node of each class takes, `interval_s` the time between two decisions.

    `further`: the sets that come to stand by where these find no more devices; asked only where that can be.
    """
    task = reading.task
    if task is None or not plan.sets:
        raise CannotSimulate(
            f"{plan.namespace}/{plan.name}: the plan {_said(plan.outcome)}, so nothing would run"
        )
    chosen, intent = plan.sets[0], task.intent
    slot = next((slot for slot in reading.slots if same_devices(slot.hardware, chosen.hardware)), None)
    if chosen.performance is None or chosen.ledger.capacity is None or slot is None:
        raise CannotSimulate(f"{plan.namespace}/{plan.name}: no step times are known for {chosen.hardware}")
    if not intent.generates:
        raise CannotSimulate(
            f"{plan.namespace}/{plan.name}: decodes nothing; the engine model is one of generation"
        )
    told = limits_of(chosen, task, slot.gpu)
    hardware = _hardware(chosen, reading, provision)
    workload, allowed = intent.spec.workload, limits.allows(claim_of(chosen))
    fixed = intent.bounds.fixed
    most_asked = intent.bounds.most if fixed is None else max(1, fixed)
    sets, unplayed = _sets(
        plan,
        reading,
        limits=limits,
        further=further,
        most=most_asked if fixed is None else None,
        provision=provision,
        restarts=restarts,
        fixed=fixed is not None,
    )
    bound = min((one for one in (most_asked, allowed) if one is not None), default=None)
    most = hardware.most if bound is None else min(bound, hardware.most)
    if sets:
        room = sum(one.hardware.most for one in sets)
        most = room if most_asked is None else min(most_asked, room)
    up, down = intent.spec.scaling.up_window_seconds, intent.spec.scaling.down_window_seconds
    return Scenario(
        name=f"{plan.namespace}/{plan.name}",
        model=plan.model,
        gpu=str(chosen.hardware),
        layout=str(chosen.layout),
        devices=float(chosen.devices_per_replica),
        times=believed(chosen, model=task.model, gpu=slot.gpu, engine=task.engine, limits=told),
        limits=told,
        capacity=capacity_of(chosen),
        requests_per_second=chosen.performance.requests_per_second,
        slo=Slo(ttft_p99_s=_seconds(intent.ttft_ms), itl_p99_s=_seconds(intent.itl_ms)),
        lengths=lengths_of(workload),
        lengths_declared=workload.input_tokens is not None and workload.output_tokens is not None,
        least=min(max(1, intent.bounds.least), most) if fixed is None else most,
        most=most,
        bounded=bound is not None,
        budget_binds=allowed is not None and (most_asked is None or allowed < most_asked),
        fixed=fixed is not None,
        hardware=hardware,
        up_window_s=up_window_s(up, interval_s),
        down_window_s=None if down is None else float(down),
        interval_s=interval_s,
        zero=None if fixed is not None else _wake(intent.spec.scaling),
        price_per_gpu_hour=_price(chosen),
        sets=sets,
        limits_together=limits if sets else UNLIMITED,
        tunable=None
        if sets
        else tunable_of(chosen, task, slot, intent.spec.tuning, restarts, plan=plan, fixed=fixed is not None),
        left_out=(*_left_out(reading, plan.outcome, allowed, several=bool(sets)), *unplayed),
    )


def _sets(
    plan: Plan,
    reading: Reading,
    *,
    limits: Budgeted,
    further: Callable[[], Iterable[PlanSet]],
    most: int | None,
    provision: Mapping[str, float],
    restarts: Restarts,
    fixed: bool,
) -> tuple[tuple[Played, ...], tuple[str, ...]]:
    """All that are played, where they are more than one; and what is not, a sentence each."""
    planned = on_devices_of_their_own(plan.sets)
    grounds = [_room(chosen, reading.slots, reading.owner) for chosen in planned]
    beside = tuple(further()) if most is not None and sum(grounds) < most else ()
    found: list[Played] = []
    said: list[str] = []
    task = reading.task
    if task is None or len(planned) + len(beside) < 2:
        return (), ()
    if len(planned) < len(plan.sets):
        said.append("a set on the same devices as one before it is not simulated")
    for chosen in (*planned, *beside):
        slot = next((slot for slot in reading.slots if same_devices(slot.hardware, chosen.hardware)), None)
        if chosen.performance is None or chosen.ledger.capacity is None or slot is None:
            said.append(f"no step times are known for {chosen.hardware}, so that set is not simulated")
            continue
        if _room(chosen, reading.slots, reading.owner) < 1:
            continue
        told, hardware = limits_of(chosen, task, slot.gpu), _hardware(chosen, reading, provision)
        allowed = limits.allows(claim_of(chosen))
        times = believed(chosen, model=task.model, gpu=slot.gpu, engine=task.engine, limits=told)
        site = Site(times=times, limits=told, hardware=hardware, allowed=allowed)
        limits = limits.less(claim_of(chosen), site.room)
        found.append(
            Played(
                gpu=str(chosen.hardware),
                layout=str(chosen.layout),
                site=site,
                capacity=capacity_of(chosen),
                claim=claim_of(chosen),
                tunable=tunable_of(
                    chosen, task, slot, task.intent.spec.tuning, restarts, plan=plan, fixed=fixed
                ),
                stands_by=chosen in beside,
            )
        )
    return tuple(found) if len(found) > 1 else (), tuple(said)


def _said(outcome: Outcome) -> str:
    return f"is {outcome}" if outcome in (Outcome.SHORT, Outcome.INVALID) else outcome.value


def _left_out(reading: Reading, outcome: Outcome, allowed: int | None, *, several: bool) -> Iterator[str]:
    spec = reading.deployment.spec
    if spec.replicas == 0:
        yield "spec.replicas is 0, so nothing would serve; one replica is simulated"
    if spec.paused:
        yield "spec.paused holds everything as it is; it is simulated as if it did not"
    if outcome is Outcome.SHORT:
        yield "the plan is short of GPUs: fewer replicas than it asks for are simulated, as many as find room (`plimsoll plan` says what is missing)"
    if spec.replicas is None and spec.scaling.max is None:
        yield "without scaling.max the operator keeps the number that was planned; this shows what it would do with one"
    if spec.replicas is not None and spec.scaling.zero is not None:
        yield "spec.replicas holds the number of replicas, so it never sleeps, whatever scaling.zero says"
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


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


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
