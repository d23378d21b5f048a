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
from plimsoll.planning.choice.outcomes import MOST_NAMED
from plimsoll.planning.layouts.layout import Shape
from plimsoll.planning.pinning import Event
from plimsoll.planning.placing.budgets import UNLIMITED, Limits, limits_of, priority_of
from plimsoll.planning.placing.occupancy import occupied
from plimsoll.planning.placing.placement import take
from plimsoll.planning.plan import Finding, FleetPlan, Outcome, Plan, PlanSet, PoolUse, Severity
from plimsoll.planning.planner import PlanFacts, plan

NEVER = "9999"
"""Creation time of what does not exist in a cluster yet: after all that does."""


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
    spenders: dict[str, list[str]] = {}
    takers: dict[str, list[str]] = {}
    plans: dict[str, Plan] = {}
    for request in ordered:
        namespace = request.deployment.namespace
        left = _left(request, ordered, plans, limits_of(namespace, admin))
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
            made = _outspent(made, spenders.get(namespace, ()))
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
    """A set's replicas leave the pools for those who come after."""
    for placement in chosen.placements:
        pool = pools.get(placement.pool)
        if pool is None:
            continue
        names = takers.setdefault(pool.key, [])
        if owner not in names:
            names.append(owner)
        pools[pool.key] = occupied(pool, placement, chosen.shape, owner)


def _left(request: Request, ordered: Sequence[Request], plans: Mapping[str, Plan], whole: Limits) -> Limits:
    """What others of the namespace leave of its budget: those planned so far, and what serves already of those to come."""
    if whole == UNLIMITED:
        return whole
    for other in ordered:
        if other.deployment.namespace != request.deployment.namespace or other is request:
            continue
        stands = plans.get(other.owner, other.pinned)
        whole = whole.after(stands.sets) if stands is not None else whole
    return whole


def _outranked(made: Plan, pools: Mapping[str, Pool], takers: Mapping[str, Iterable[str]]) -> Plan:
    """Tell who got the devices that this one did not, where anybody in this round did."""
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


def _outspent(made: Plan, spenders: Sequence[str]) -> Plan:
    """Tell who spent the namespace's budget, where it was not enough for this one too."""
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
