"""Planning many deployments on one inventory: who comes first, and what each leaves for the next.

The order is by namespace priority, then the pods' priority class, then age, then name, so the order of the input does not matter.
Devices that pods hold already stay with their owner: a new deployment of any rank takes only what is free, and preemption is left
to the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.learned import NOTHING, Learned
from plimsoll.planning.choice.outcomes import MOST_NAMED
from plimsoll.planning.layouts.layout import Shape
from plimsoll.planning.pinning import Event
from plimsoll.planning.placing.budgets import UNLIMITED, Limits, limits_of, priority_of
from plimsoll.planning.placing.occupancy import occupied
from plimsoll.planning.placing.placement import pool_devices, take
from plimsoll.planning.plan import Finding, FleetPlan, Outcome, Plan, PlanSet, PoolUse, Severity
from plimsoll.planning.planner import PlanFacts, plan

NEVER = "9999"
"""In place of the creation time of a deployment that does not exist in a cluster yet: it sorts after all that do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One deployment to be planned, with all that its plan depends on beside the inventory."""

    deployment: LLMDeployment
    facts: PlanFacts
    pinned: Plan | None = None
    event: Event | None = None

    @property
    def owner(self) -> str:
        """namespace/name, by which pools tell who holds their devices."""
        return f"{self.deployment.namespace}/{self.deployment.name}"


def plan_fleet(
    requests: Sequence[Request],
    inventory: Inventory,
    *,
    learned: Learned = NOTHING,
    config: OperatorConfig | None = None,
    priority_classes: Mapping[str, int] | None = None,
    reserved: Mapping[str, int] | None = None,
) -> FleetPlan:
    """The plans of all deployments. `reserved` are devices by pool that turns have claimed and whose pods are not there yet."""
    admin = config if config is not None else OperatorConfig()
    ordered = sorted(requests, key=lambda request: rank(request, admin, priority_classes or {}))
    pools = {pool.key: _reserve(pool, (reserved or {}).get(pool.key, 0)) for pool in inventory.pools}
    before = {key: pool.free_devices for key, pool in pools.items()}
    spenders: dict[str, list[str]] = {}  # by namespace: owners that have spent of its budget
    takers: dict[str, list[str]] = {}  # by pool: owners that got devices of it
    plans: dict[str, Plan] = {}
    for request in ordered:
        namespace = request.deployment.namespace
        left = _budget_left(request, ordered, plans, limits_of(namespace, admin))
        made = plan(
            request.deployment,
            replace(inventory, pools=tuple(pools[key] for key in sorted(pools))),
            request.facts,
            learned=learned,
            config=config,
            pinned=request.pinned,
            event=request.event,
            limits=left,
        )
        if made.outcome is Outcome.SHORT:
            made = _told_who_took_devices(made, pools, takers)
            made = _told_who_spent_budget(made, spenders.get(namespace, ()))
        plans[request.owner] = made
        if made.devices:
            spenders.setdefault(namespace, []).append(request.owner)
        for chosen in made.sets:
            _occupy(pools, chosen, request.owner, takers)
    return FleetPlan(
        plans=tuple(plans[owner] for owner in sorted(plans)),
        order=tuple(request.owner for request in ordered),
        pools=tuple(
            PoolUse(
                pool=key,
                devices=pool_devices(pool),
                free_before=before[key],
                free_after=pool.free_devices,
            )
            for key, pool in sorted(pools.items())
        ),
    )


def rank(
    request: Request, config: OperatorConfig, priority_classes: Mapping[str, int]
) -> tuple[int, int, str, str, str]:
    """The key by which requests are sorted, the most important first."""
    deployment = request.deployment
    pods = priority_classes.get(deployment.spec.scheduling.priority_class or "", 0)
    created = deployment.metadata.creation_timestamp or NEVER
    return (
        -priority_of(deployment.namespace, config),
        -pods,
        created,
        deployment.namespace,
        deployment.name,
    )


def _reserve(pool: Pool, devices: int) -> Pool:
    """The pool without so many of its free devices, taken from the fullest nodes so that nodes with many free devices stay whole."""
    free = dict(pool.free)
    for _ in range(min(devices, pool.free_devices)):
        free = take(free, Shape(1, 1), 1)
    return replace(pool, free=free)


def _occupy(pools: dict[str, Pool], chosen: PlanSet, owner: str, takers: dict[str, list[str]]) -> None:
    """Takes the devices of a set's replicas out of the pools, and notes their owner among the takers."""
    for placement in chosen.placements:
        pool = pools.get(placement.pool)
        if pool is None:
            continue
        names = takers.setdefault(pool.key, [])
        if owner not in names:
            names.append(owner)
        pools[pool.key] = occupied(pool, placement, chosen.shape, owner)


def _budget_left(
    request: Request, ordered: Sequence[Request], plans: Mapping[str, Plan], budget: Limits
) -> Limits:
    """What the other deployments of the namespace leave of its budget. Those that come first count with their new plans, those that come
    later with their pinned plans."""
    if budget == UNLIMITED:
        return budget
    for other in ordered:
        if other.deployment.namespace != request.deployment.namespace or other is request:
            continue
        counted = plans.get(other.owner, other.pinned)
        budget = budget.after(counted.sets) if counted is not None else budget
    return budget


def _told_who_took_devices(
    made: Plan, pools: Mapping[str, Pool], takers: Mapping[str, Iterable[str]]
) -> Plan:
    """The plan with a finding that names who got the devices it lacks, where another deployment of this round did."""
    if not any(finding.reason == "NoFreeGPUs" for finding in made.findings):
        return made
    shown = (*made.sets, *((made.nearest,) if made.nearest is not None else ()))
    products = {chosen.hardware.gpu for chosen in shown}
    mine = f"{made.namespace}/{made.name}"
    names = sorted(
        {
            name
            for key, owners in takers.items()
            if pools[key].gpu.name in products
            for name in owners
            if name != mine
        }
    )
    if not names:
        return made
    finding = Finding(
        severity=Severity.WARNING,
        reason="Outranked",
        message=(
            f"{', '.join(sorted(products))} went first to {_listed(names)}, earlier by priority, age or name"
        ),
        field="scheduling.priorityClass",
        remedy="a higher priority for the namespace (budgets in the admin's config) or the pods, or more GPUs",
    )
    return replace(made, findings=(*made.findings, finding))


def _told_who_spent_budget(made: Plan, spenders: Sequence[str]) -> Plan:
    """The plan with a finding that names who spent the namespace's budget, where what was left was not enough for it."""
    others = sorted(name for name in spenders if name != f"{made.namespace}/{made.name}")
    if not others or not any(finding.reason == "BudgetExhausted" for finding in made.findings):
        return made
    finding = Finding(
        severity=Severity.WARNING,
        reason="Outranked",
        message=(
            f"the budget of namespace {made.namespace} went first to {_listed(others)}, earlier by priority, age or name"
        ),
        field="scheduling.priorityClass",
        remedy="a larger budget in the admin's config, or a higher priority class for these pods",
    )
    return replace(made, findings=(*made.findings, finding))


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{rest}"
