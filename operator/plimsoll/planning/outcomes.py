"""The words for how a plan came out: what is missing, who has it, what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.facts.inventory import Inventory
from plimsoll.planning.choice import Chosen, Demand, Option, replicas_for
from plimsoll.planning.intent import Intent
from plimsoll.planning.placement import Shape, Slot, refusal, room, room_when_empty
from plimsoll.planning.plan import Finding, Outcome, PlanSet, Severity
from plimsoll.planning.weighing import Weighed

MOST_NAMED = 3


def no_devices(intent: Intent, inventory: Inventory, products: frozenset[str] | None) -> Finding:
    """No pool may be used: why the largest ones were refused."""
    topology = intent.spec.topology
    cpu = topology.cpu is not None
    reasons: list[str] = []
    for pool in sorted(inventory.pools, key=lambda pool: (-pool.nodes - pool.declared_nodes, pool.key)):
        why = refusal(
            pool,
            selector=topology.node_selector,
            tolerations=topology.tolerations,
            products=products,
            on_cpu=cpu,
        )
        if why is not None and why not in reasons:
            reasons.append(why)
    if not inventory.pools:
        message = "the inventory holds no GPU nodes, present or declared"
        if inventory.problems:
            first = inventory.problems[0]
            message += f"; {len(inventory.problems)} nodes could not be read, the first: {first.node}: {first.message}"
        remedy = "nodes with GPUs and their vendor's labels, or nodeClasses in the admin's config"
    else:
        message = f"none of {len(inventory.pools)} pools may be used: {'; '.join(reasons[:MOST_NAMED])}"
        remedy = "topology.gpuProducts, topology.nodeSelector, topology.tolerations or topology.cpu"
    return Finding(severity=Severity.ERROR, reason="NoGPUs", message=message, field="topology", remedy=remedy)


def no_room(option: Option, wanted: int, placed: int, owner: str) -> Finding:
    """A layout is known, but not all replicas find devices now."""
    candidate = option.candidate
    slot = candidate.slot
    empty = sum(room_when_empty(pool, candidate.shape, candidate.layout) for pool in slot.pools)
    free = sum(pool.free_devices for pool in slot.pools)
    holders = sorted(
        {
            name: None
            for pool in slot.pools
            for name, count in sorted(pool.held.items())
            if count and name != owner
        }
    )
    others = f"; held by {', '.join(holders[:MOST_NAMED])}" if holders else ""
    if empty >= wanted:
        reason = "NoFreeGPUs"
        message = (
            f"{placed} of {wanted} replicas of {candidate.layout} find free GPUs: {free} {slot.hardware} are free, each "
            f"pod needs {candidate.shape.devices} on one node{others}"
        )
        remedy = "free those GPUs, a higher priority, or fewer replicas"
    else:
        reason = "NoGPUs"
        message = f"{placed} of {wanted} replicas of {candidate.layout} find GPUs: all {slot.hardware} together would hold {empty}"
        remedy = "more nodes, or fewer replicas"
    return Finding(
        severity=Severity.WARNING,
        reason=reason,
        message=message,
        field="replicas",
        value=str(wanted),
        remedy=remedy,
    )


def replicas_reason(intent: Intent) -> str:
    """Who decides the number of replicas."""
    bounds = intent.bounds
    if bounds.fixed is not None:
        return "spec.replicas, obeyed exactly"
    most = f"at most scaling.max {bounds.most}" if bounds.most is not None else "without scaling.max"
    if intent.concurrency is not None:
        return f"as many as {intent.concurrency:,} requests in flight need, at least {bounds.least}, {most}"
    if intent.rate is not None:
        return f"as many as {float(intent.rate):g} requests a second need, at least {bounds.least}, {most}"
    return f"no load is declared: scaling.min, at least 1, {most}"


def does_not_fit(intent: Intent, weighed: Weighed, nearest: PlanSet | None) -> tuple[Outcome, Finding]:
    """Why nothing is left: what the user fixed contradicts the model, or no device holds it."""
    wishes = intent.wishes
    fixed = {
        f"topology.{name}": value
        for name, value in (
            ("tensor", wishes.tensor),
            ("pipeline", wishes.pipeline),
            ("data", wishes.data),
            ("expertParallel", wishes.expert_parallel),
        )
        if value is not None
    }
    granted = [(slot, refusal) for slot, refusal in weighed.refusals if refusal.rule != "asked"]
    if fixed and granted and all(slot is None for slot, _ in granted):
        first = granted[0][1]
        field = next(iter(fixed))
        return Outcome.INVALID, Finding(
            severity=Severity.ERROR,
            reason="TopologyContradiction",
            message=f"no layout is possible with {_words(fixed)}: {first.message}",
            field=field,
            value=str(fixed[field]),
            remedy="leave it out, or a number that the model divides by",
        )
    if nearest is not None:
        message = f"nearest is {nearest.layout} on {nearest.hardware}: {nearest.ledger.reason}"
    elif granted:
        slot, refusal = granted[-1]
        where = f" on {slot.hardware}" if slot is not None else ""
        message = f"for example {refusal.layout}{where}: {refusal.message}"
    else:
        message = "no layout could be tried"
    return Outcome.DOES_NOT_FIT, Finding(
        severity=Severity.ERROR,
        reason="DoesNotFit",
        message=f"no layout fits these devices; {message}",
        field="topology" if fixed else "model.source",
        value=_words(fixed) if fixed else None,
        remedy="larger or more GPUs, a shorter context, a quantized checkpoint; see the advice",
    )


def _words(fixed: dict[str, int | bool]) -> str:
    return ", ".join(f"{name} {str(value).lower()}" for name, value in fixed.items())


def spanning(sets: Sequence[PlanSet]) -> tuple[Finding, ...]:
    """Replicas over nodes live from a network that no label of a node describes well."""
    return tuple(
        Finding(
            severity=Severity.INFO,
            reason="SpansNodes",
            message=(
                f"a replica of {chosen.layout} spans {chosen.pods_per_replica} nodes of {chosen.hardware}; RDMA of 400 Gb/s "
                f"a GPU between them is assumed"
            ),
            field="topology.interconnect",
            remedy="topology.interconnect: rdma to demand it",
        )
        for chosen in sets
        if chosen.pods_per_replica > 1
    )


def to_be_made(sets: Sequence[PlanSet], slots: Sequence[Slot]) -> tuple[Finding, ...]:
    """Replicas that wait for a node of a declared class."""
    pools = {pool.key: pool for slot in slots for pool in slot.pools}
    found = []
    for chosen in sets:
        shape = Shape(chosen.pods_per_replica, chosen.resources.devices)
        for placement in chosen.placements:
            pool = replace(pools[placement.pool], declared_nodes=0)
            waiting = placement.replicas - room(pool, shape, chosen.layout)
            if pools[placement.pool].declared_nodes and waiting > 0:
                found.append(
                    Finding(
                        severity=Severity.INFO,
                        reason="NodeDeclared",
                        message=(
                            f"{waiting} replicas of {chosen.layout} on {chosen.hardware} wait for nodes of class "
                            f"{pool.node_class or pool.key} to be made"
                        ),
                    )
                )
    return tuple(found)


def over_budget(option: Option, demand: Demand, room: int) -> Finding:
    """Devices are there, but the namespace may not take them."""
    limits = demand.limits
    said = []
    if limits.devices is not None:
        said.append(f"{float(limits.devices):g} GPUs")
    product = limits.by_product.get(option.candidate.slot.hardware.gpu)
    if product is not None:
        said.append(f"{float(product):g} {option.candidate.slot.hardware.gpu}")
    if limits.per_hour is not None:
        said.append(f"{float(limits.per_hour):g} an hour")
    if limits.replicas is not None:
        said.append(f"{limits.replicas} replicas")
    return Finding(
        severity=Severity.WARNING,
        reason="BudgetExhausted",
        message=(
            f"the budget leaves {' and '.join(said) or 'nothing'}, which is {room} replicas of "
            f"{option.candidate.layout} on {option.candidate.slot.hardware}; {replicas_for(option, demand)} are wanted"
        ),
        field="cost.maxPerHour" if limits.per_hour is not None else "replicas",
        remedy="a larger budget in the admin's config, or fewer replicas",
    )


def inventory_findings(inventory: Inventory, money: bool) -> tuple[Finding, ...]:
    found = []
    if inventory.free_is_assumed:
        found.append(
            Finding(
                severity=Severity.INFO,
                reason="FreeAssumed",
                message="pods were not seen, so every allocatable GPU is taken as free",
                remedy="a snapshot of the cluster",
            )
        )
    if not money:
        found.append(
            Finding(
                severity=Severity.INFO,
                reason="PricesUnknown",
                message="not every GPU that could be used has a price, so costs are compared in GPU-hours",
                remedy="prices.gpuHour or nodeClasses with pricePerHour in the admin's config",
            )
        )
    return tuple(found)


def why_chosen(chosen: Chosen, demand: Demand, money: bool, slots: int, layouts: int) -> str:
    """The objective and what it was weighed against."""
    unit = "money" if money else "GPU-hours"
    if demand.unit == "replicas":
        aim = f"the least {unit} for each output token at a modest load"
    elif demand.unit == "concurrency":
        aim = f"the least {unit} that carries {int(demand.amount):,} requests in flight"
    else:
        aim = f"the least {unit} that carries {demand.amount:g} requests a second"
    covered = (
        ""
        if chosen.covered >= demand.amount
        else f"; {_part(chosen.covered, demand.amount)} of it is carried"
    )
    return f"{aim}, among {layouts} layouts that fit on {slots} kinds of GPU{covered}"


def _part(covered: float, amount: float) -> str:
    return f"{covered / amount:.0%}"
