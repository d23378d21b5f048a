"""What is simulated: one set of a plan, the traffic that its resource declares, and the hardware its fleet has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.capacity import capacity_of
from plimsoll.control.situation import Capacity, Slo
from plimsoll.planning.ask.intent import ASSUMED_INPUT, ASSUMED_OUTPUT
from plimsoll.planning.ask.reading import Reading
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.placing.placement import device_part, same_devices
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.planning.speed.rates import committed
from plimsoll.simulate.arrivals import Length, Lengths
from plimsoll.simulate.steps import Limits, StepTimes, believed, limits_of
from plimsoll.simulate.world import Hardware, World, draw_world

ROOM_MOST: Final = 1000
"""Replicas at which counting room stops."""
UP_WINDOW_S: Final = 30.0
LOOP_TPOT_PCT, LOOP_TTFT_PCT = (7.4, 20.7), (20.1, 73.7)
"""Median and p90 of what benchmarks/standin_fidelity.py measured on 109 points, each with constants that had not seen its model on its
hardware."""
REAL_TTFT_PCT, REAL_ITL_PCT, REAL_KV_PP = (41, 28), (100, 34), 3.9
"""How far p50 and p99 are from those of a real engine on CPUs, in cells that the constants were not fitted on, and how far the share of
the cache is: by the same program, in short cells on a busy machine, where the real engine is 1 to 71% from itself."""


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
    """Whether the resource says how many there may be."""
    hardware: Hardware
    up_window_s: float
    down_window_s: float | None
    sets_left_out: int = 0

    def world(self, seed: int, *, crashes_per_replica_day: float = 0.0) -> World:
        return draw_world(
            seed=seed,
            times=self.times,
            limits=self.limits,
            slo=self.slo,
            hardware=self.hardware,
            crashes_per_replica_day=crashes_per_replica_day,
        )


def scenario_of(plan: Plan, reading: Reading) -> Scenario:
    """The plan's first set; others of a mixed fleet are left out, and said so."""
    task = reading.task
    if task is None or not plan.sets:
        raise CannotSimulate(f"{plan.namespace}/{plan.name}: the plan {plan.outcome}, so nothing would run")
    chosen, intent = plan.sets[0], task.intent
    slot = next((slot for slot in reading.slots if same_devices(slot.hardware, chosen.hardware)), None)
    if chosen.performance is None or chosen.ledger.capacity is None or slot is None:
        raise CannotSimulate(f"{plan.namespace}/{plan.name}: no step times are known for {chosen.hardware}")
    if not intent.generates:
        raise CannotSimulate(
            f"{plan.namespace}/{plan.name}: decodes nothing; the engine model is one of generation"
        )
    limits = limits_of(chosen)
    hardware = _hardware(chosen, reading)
    workload, most = intent.spec.workload, intent.bounds.most
    down = intent.spec.scaling.down_window_seconds
    return Scenario(
        name=f"{plan.namespace}/{plan.name}",
        model=plan.model,
        gpu=str(chosen.hardware),
        layout=str(chosen.layout),
        devices=float(chosen.devices_per_replica),
        times=believed(chosen, model=task.model, gpu=slot.gpu, engine=task.engine, limits=limits),
        limits=limits,
        capacity=capacity_of(chosen),
        requests_per_second=chosen.performance.requests_per_second,
        slo=Slo(ttft_p99_s=_seconds(intent.ttft_ms), itl_p99_s=_seconds(intent.itl_ms)),
        lengths=lengths_of(workload),
        lengths_declared=workload.input_tokens is not None and workload.output_tokens is not None,
        least=max(1, intent.bounds.least),
        most=hardware.most if most is None else min(most, hardware.most),
        bounded=most is not None,
        hardware=hardware,
        up_window_s=float(intent.spec.scaling.up_window_seconds or UP_WINDOW_S),
        down_window_s=None if down is None else float(down),
        sets_left_out=len(plan.sets) - 1,
    )


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


def belief_error() -> str:
    """How far the planner's step times are from measurements that they had not seen: it stands beside every claim."""
    fitted = committed().fitted
    errors = fitted.left_out
    return (
        f"step times are the planner's, off by {errors['tpot_median_pct']:g}% (median) and {errors['tpot_p90_pct']:g}% (p90) "
        f"for TPOT and {errors['ttft_median_pct']:g}% and {errors['ttft_p90_pct']:g}% for TTFT on measured points left out "
        f"of the fit ({fitted.rows} points); the engine model then answers closed loops of such points within "
        f"{LOOP_TPOT_PCT[0]:g}% (median) and {LOOP_TPOT_PCT[1]:g}% (p90) for TPOT and {LOOP_TTFT_PCT[0]:g}% and "
        f"{LOOP_TTFT_PCT[1]:g}% for TTFT (how a loop begins was chosen on such points); from a real engine on CPUs its p50 and p99 are "
        f"{REAL_TTFT_PCT[0]}% and {REAL_TTFT_PCT[1]}% off for TTFT, {REAL_ITL_PCT[0]}% and {REAL_ITL_PCT[1]}% for ITL, and the "
        f"cache in use by {REAL_KV_PP:g} points; "
        "the simulated world draws its own times "
        "within 20% of them"
    )
