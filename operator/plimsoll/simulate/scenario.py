"""What is simulated: one set of a plan, the traffic that its resource declares, and the hardware its fleet has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.capacity import capacity_of
from plimsoll.control.situation import Capacity, Slo
from plimsoll.planning.ask.intent import ASSUMED_INPUT, ASSUMED_OUTPUT
from plimsoll.planning.ask.reading import Reading
from plimsoll.planning.placing.budgets import UNLIMITED, claim_of
from plimsoll.planning.placing.budgets import Limits as Budgeted
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.placing.placement import device_part, same_devices
from plimsoll.planning.plan import Outcome, Plan, PlanSet
from plimsoll.simulate.arrivals import Length, Lengths
from plimsoll.simulate.steps import Limits, StepTimes, believed, limits_of
from plimsoll.simulate.world import Hardware, World, draw_world

ROOM_MOST: Final = 1000
"""Replicas at which counting room stops."""
UP_WINDOW_S: Final = 30.0


class CannotSimulate(ValueError):
    """Nothing that would run, or nothing that the engine model knows: a sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
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
    """Replicas that the resource allows and the fleet has room for."""
    bounded: bool
    """Whether the resource says how many there may be, or its namespace's budget."""
    fixed: bool = False
    """spec.replicas says how many there are, whatever comes."""
    hardware: Hardware
    up_window_s: float
    down_window_s: float | None
    price_per_gpu_hour: float | None = None
    """In the admin's currency; None where a price is unknown."""
    left_out: tuple[str, ...] = ()
    """What the resource asks for, or the fleet would do, that is not simulated: a sentence each."""

    def world(self, seed: int, *, crashes_per_replica_day: float = 0.0) -> World:
        return draw_world(
            seed=seed,
            times=self.times,
            limits=self.limits,
            slo=self.slo,
            hardware=self.hardware,
            crashes_per_replica_day=crashes_per_replica_day,
        )


def scenario_of(plan: Plan, reading: Reading, limits: Budgeted = UNLIMITED) -> Scenario:
    """The plan's first set, alone in its fleet and with all of its namespace's `limits`; what is left out is said."""
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
    told = limits_of(chosen)
    hardware = _hardware(chosen, reading)
    workload, allowed = intent.spec.workload, limits.allows(claim_of(chosen))
    fixed = intent.bounds.fixed
    most_asked = intent.bounds.most if fixed is None else max(1, fixed)
    bound = min((one for one in (most_asked, allowed) if one is not None), default=None)
    most = hardware.most if bound is None else min(bound, hardware.most)
    down = intent.spec.scaling.down_window_seconds
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
        fixed=fixed is not None,
        hardware=hardware,
        up_window_s=float(intent.spec.scaling.up_window_seconds or UP_WINDOW_S),
        down_window_s=None if down is None else float(down),
        price_per_gpu_hour=_price(chosen),
        left_out=tuple(_left_out(plan, reading, allowed)),
    )


def _said(outcome: Outcome) -> str:
    return f"is {outcome}" if outcome in (Outcome.SHORT, Outcome.INVALID) else outcome.value


def _left_out(plan: Plan, reading: Reading, allowed: int | None) -> Iterator[str]:
    if len(plan.sets) > 1:
        yield f"the plan has {len(plan.sets) - 1} more set(s) on other hardware; the first alone is simulated"
    spec = reading.deployment.spec
    if spec.replicas is None and spec.scaling.max is None:
        yield "without scaling.max the operator keeps the number that was planned; this shows what it would do with one"
    if spec.scaling.zero is not None:
        yield "the resource may sleep (scaling.zero); here one replica always stays, so that no request waits for a wake"
    if allowed is not None:
        yield (
            f"the namespace's budget allows {allowed} replicas; what others there take of it, and whose priority goes first, "
            "is not simulated"
        )
    if spec.tuning.mode in (None, "auto"):
        yield "the operator may retune what preempts (spec.tuning); here every setting stays as it is planned"


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
    own = Length(max(1.0, given.median - shared), given.sigma)
    return Lengths(input=own, output=_length(workload.output_tokens, ASSUMED_OUTPUT), shared_tokens=shared)


def _length(declared: TokenPercentiles | None, otherwise: int) -> Length:
    if declared is None:
        return Length.by(None, None, None, otherwise)
    return Length.by(declared.p50, declared.p95, declared.p99, otherwise)


def _hardware(chosen: PlanSet, reading: Reading) -> Hardware:
    """Room for replicas of a set on the nodes there are, and on those that would be made."""
    there = [
        replace(slot, pools=tuple(replace(pool, declared_nodes=0) for pool in slot.pools))
        for slot in reading.slots
    ]
    ready = Ground(there, reading.owner).room(chosen)
    most = Ground(reading.slots, reading.owner).room(chosen)
    if most < 1:
        raise CannotSimulate(f"{reading.owner}: no {chosen.hardware} has room for a replica")
    return Hardware(
        ready=min(ready, ROOM_MOST),
        growing=min(most, ROOM_MOST) - min(ready, ROOM_MOST),
        devices=float(chosen.devices_per_replica * device_part(chosen.hardware)),
    )
