"""Many deployments on one inventory: who comes first, what each leaves for the next, and who is told what.

Order is namespace priority, then the pods' priority class, then age, then name: permuting the input changes nothing. What
pods already hold stays with its owner, so a newcomer of any rank takes only what is free; preemption is the scheduler's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.learned import NOTHING, Learned
from plimsoll.planning.budgets import Limits, limits_of, priority_of
from plimsoll.planning.pinning import Event
from plimsoll.planning.placement import Shape, take
from plimsoll.planning.plan import Finding, FleetPlan, Outcome, Plan, PlanSet, PoolUse, Severity
from plimsoll.planning.planner import PlanFacts, plan

NEVER = "9999"
"""Creation time of what does not exist in a cluster yet: after all that does."""
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    deployment: LLMDeployment
    facts: PlanFacts
    pinned: Plan | None = None
    event: Event | None = None

    @property
    def owner(self) -> str:
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
    """`reserved`: devices by pool that turns have claimed whose pods are not there yet."""
    admin = config if config is not None else OperatorConfig()
    ordered = sorted(requests, key=lambda request: rank(request, admin, priority_classes or {}))
    pools = {pool.key: _reserve(pool, (reserved or {}).get(pool.key, 0)) for pool in inventory.pools}
    before = {key: pool.free_devices for key, pool in pools.items()}
    limits: dict[str, Limits] = {}
    takers: dict[str, list[str]] = {}
    plans: dict[str, Plan] = {}
    for request in ordered:
        namespace = request.deployment.namespace
        left = limits.get(namespace) or limits_of(namespace, admin)
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
            made = _outranked(made, pools, takers)
        plans[request.owner] = made
        limits[namespace] = left.after(made.sets)
        for chosen in made.sets:
            _occupy(pools, chosen, request.owner, takers)
    return FleetPlan(
        plans=tuple(plans[owner] for owner in sorted(plans)),
        order=tuple(request.owner for request in ordered),
        pools=tuple(
            PoolUse(
                pool=key,
                devices=(pool.nodes + pool.declared_nodes) * pool.devices_per_node,
                free_before=before[key],
                free_after=pool.free_devices,
            )
            for key, pool in sorted(pools.items())
        ),
    )


def rank(
    request: Request, config: OperatorConfig, priority_classes: Mapping[str, int]
) -> tuple[int, int, str, str, str]:
    """First is most important."""
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
    """Devices that are spoken for, taken where they leave the largest holes whole."""
    free = dict(pool.free)
    for _ in range(min(devices, pool.free_devices)):
        free = take(free, Shape(1, 1), 1)
    return replace(pool, free=free)


def _occupy(pools: dict[str, Pool], chosen: PlanSet, owner: str, takers: dict[str, list[str]]) -> None:
    """A set's replicas leave the pools: first what the owner holds already, then what is free, then nodes to be made."""
    shape = Shape(chosen.pods_per_replica, chosen.resources.devices)
    for placement in chosen.placements:
        pool = pools.get(placement.pool)
        if pool is None:
            continue
        pods = placement.replicas * shape.pods
        held = pool.held.get(owner, 0)
        own = min(pods, held // shape.devices)
        names = takers.setdefault(pool.key, [])
        if owner not in names:
            names.append(owner)
        pools[pool.key] = _place(
            replace(pool, held={**pool.held, owner: held - own * shape.devices}), pods - own, shape.devices
        )


def _place(pool: Pool, pods: int, devices: int) -> Pool:
    free, declared = dict(pool.free), pool.declared_nodes
    for _ in range(pods):
        if not any(size >= devices and nodes for size, nodes in free.items()):
            if not declared:
                break
            declared -= 1
            free[pool.devices_per_node] = free.get(pool.devices_per_node, 0) + 1
        free = take(free, Shape(1, devices), 1)
    return replace(pool, free=free, declared_nodes=declared)


def _outranked(made: Plan, pools: Mapping[str, Pool], takers: Mapping[str, Iterable[str]]) -> Plan:
    """Tell who got the devices that this one did not, where anybody in this round did."""
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
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    finding = Finding(
        severity=Severity.WARNING,
        reason="Outranked",
        message=(
            f"{', '.join(sorted(products))} went first to {', '.join(names[:MOST_NAMED])}{rest}, which come earlier by "
            f"priority, age or name"
        ),
        field="scheduling.priorityClass",
        remedy="a higher priority for the namespace (budgets in the admin's config) or the pods, or more GPUs",
    )
    return replace(made, findings=(*made.findings, finding))
