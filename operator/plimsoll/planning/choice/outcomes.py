"""Sentences about how a plan came out: why these sets, why none, and what would help. What is short is `shortage`."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Final

from plimsoll.facts.gpus import Vendor
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.ask.values import counted
from plimsoll.planning.choice.cheapest import ROUNDING, Chosen, Demand
from plimsoll.planning.choice.late import PARTLY
from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.choice.weighing import Weighed
from plimsoll.planning.placing.placement import Slot, refusal, room
from plimsoll.planning.plan import Finding, Outcome, PlanSet, Severity

STRETCHED: Final = 1.05
"""From so many times a typical request on it is told how long the mean one is."""
MOST_NAMED: Final = 3
"""How many deployments or reasons a sentence names at most."""
OF_SETS: Final = frozenset(
    {"NoGPUs", "NoFreeGPUs", "NoHostMemory", "NoHostDisk", "BudgetExhausted", "SpansNodes", "NodeDeclared"}
)
"""Reasons of findings that are about the sets of one plan, and so not true of another plan's sets."""
LACKING: Final = frozenset(
    {"NoGPUs", "NoFreeGPUs", "BudgetExhausted", "Outranked", "NoHostMemory", "NoHostDisk", "HardwareGone"}
)
"""Reasons of findings that say what a plan with fewer replicas than wanted lacks."""
ABOVE_MOST: Final = "LoadAboveMax"
TOO_FEW: Final = LACKING | {ABOVE_MOST}
NOT_ENOUGH: Final = TOO_FEW | {UNATTAINABLE, PARTLY}
"""Reasons of findings that some of the load is not served as promised."""

_UNSEEN: Final = (
    "the operator watches namespaces alone and sees no nodes; it counts on the node classes of the admin's config, and takes "
    "their nodes as free"
)


def no_devices(intent: Intent, inventory: Inventory, products: frozenset[str] | None) -> Finding:
    """No pool may be used: why the largest ones were refused."""
    topology = intent.spec.topology
    reasons: list[str] = []
    for pool in sorted(inventory.pools, key=lambda pool: (-pool.nodes - pool.declared_nodes, pool.key)):
        why = refusal(
            pool,
            selector=topology.node_selector,
            tolerations=topology.tolerations,
            products=products,
            on_cpu=intent.on_cpu,
            cores=intent.cores,
        )
        if why is not None and why not in reasons:
            reasons.append(why)
    if not inventory.pools and inventory.nodes_unseen:
        message = "the operator watches namespaces alone and sees no nodes, and the admin's config declares no node classes"
        remedy = "nodeClasses in the admin's config, or an operator that watches the whole cluster"
    elif not inventory.pools:
        message = f"the inventory holds no GPU nodes, present or declared{_not_counted(inventory)}"
        remedy = "nodes with GPUs and their vendor's labels, or nodeClasses in the admin's config"
    else:
        message = f"none of {counted(len(inventory.pools), 'pool')} may be used: {'; '.join(reasons[:MOST_NAMED])}{_not_counted(inventory)}"
        ours = [pool for pool in inventory.pools if (pool.gpu.vendor is Vendor.CPU) is intent.on_cpu]
        remedy = f"{uncordoned(ours)}topology.gpuProducts, topology.nodeSelector, topology.tolerations or topology.cpu"
    return Finding(severity=Severity.ERROR, reason="NoGPUs", message=message, field="topology", remedy=remedy)


def _not_counted(inventory: Inventory) -> str:
    """A clause about nodes that may have GPUs and could not be counted; empty where there are none."""
    if not inventory.problems:
        return ""
    first, many = inventory.problems[0], counted(len({one.node for one in inventory.problems}), "node")
    return f"; {many} not counted with the GPUs that may be there, the first: {first.node}: {first.message}"


def uncordoned(pools: Sequence[Pool]) -> str:
    """The simplest remedy, where nodes were only cordoned; empty where none is."""
    return "kubectl uncordon, " if any("cordoned" in pool.unavailable for pool in pools) else ""


def above_most(shown: PlanSet, demand: Demand, needed: int, most: int) -> Finding:
    """A finding that the declared load needs more replicas than the user's own limit allows."""
    load = (
        f"{demand.amount:,g} requests a second"
        if demand.unit == "rate"
        else f"{demand.amount:,.0f} requests in flight"
    )
    return Finding(
        severity=Severity.WARNING,
        reason=ABOVE_MOST,
        message=(
            f"{load} need about {counted(needed, 'replica')} like the {shown.layout} on {shown.hardware}, and scaling.max "
            f"allows {most:,}; what is beyond waits or misses the target"
        ),
        field="scaling.max",
        value=str(most),
        remedy=f"scaling.max: {needed}, or a smaller load",
    )


def replicas_reason(intent: Intent) -> str:
    """Who decides the number of replicas."""
    bounds = intent.bounds
    if bounds.fixed is not None:
        return "spec.replicas, obeyed exactly"
    most = f"at most scaling.max {bounds.most}" if bounds.most is not None else "without scaling.max"
    if intent.concurrency is not None:
        return f"as many as {counted(intent.concurrency, 'request')} in flight need, at least {bounds.least}, {most}"
    if intent.rate is not None:
        stretch = intent.lengths.stretch
        each = f", the mean {stretch:.2g} times as long as a typical one," if stretch >= STRETCHED else ""
        return (
            f"as many as {float(intent.rate):g} requests a second{each} need, at least {bounds.least}, {most}"
        )
    return f"no load is declared: scaling.min, at least {max(1, bounds.least)}, {most}"


def does_not_fit(intent: Intent, weighed: Weighed, nearest: PlanSet | None) -> tuple[Outcome, Finding]:
    """Why no layout is left: what the user fixed contradicts the model, or no device holds it."""
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
        field=next(iter(fixed)) if len(fixed) == 1 else "topology" if fixed else "model.source",
        value=_value(fixed) if fixed else intent.spec.model.source,
        remedy=f"{_unfix(fixed)}larger or more GPUs, a smaller workload.contextTokens, or a quantized checkpoint; "
        "`plimsoll plan` lists what each would save",
    )


def _words(fixed: dict[str, int | bool]) -> str:
    return ", ".join(f"{name} {str(value).lower()}" for name, value in fixed.items())


def _unfix(fixed: dict[str, int | bool]) -> str:
    return f"another {' or '.join(fixed)}, or none, " if fixed else ""


def _value(fixed: dict[str, int | bool]) -> str:
    """The value of the one field that is fixed, or of all that are, under the name of their group."""
    one = str(next(iter(fixed.values()))).lower()
    return one if len(fixed) == 1 else _words(fixed).replace("topology.", "")


def spanning(sets: Sequence[PlanSet], slots: Sequence[Slot]) -> tuple[Finding, ...]:
    """Findings about replicas that span nodes: unless one fabric joins these, they depend on a network that no node label describes well."""
    fabrics = {pool.key for slot in slots for pool in slot.pools if pool.fabric}
    found = []
    for chosen in sets:
        joined = bool(chosen.placements) and all(place.pool in fabrics for place in chosen.placements)
        if chosen.pods_per_replica == 1 or joined:
            continue
        cut = f"{chosen.shape.pods} pods of {counted(chosen.shape.devices, 'GPU')}"
        found.append(
            Finding(
                severity=Severity.INFO,
                reason="SpansNodes",
                message=(
                    f"a replica of {chosen.layout} on {chosen.hardware} is {cut} on several nodes; RDMA of 400 Gb/s a GPU "
                    f"between them is assumed"
                ),
                field="topology.interconnect",
                remedy="topology.interconnect: rdma to demand it",
            )
        )
    return tuple(found)


def to_be_made(sets: Sequence[PlanSet], slots: Sequence[Slot], owner: str) -> tuple[Finding, ...]:
    """Findings about replicas that wait for nodes of a declared class to be made."""
    declared = {pool.key: pool for slot in slots for pool in slot.pools if pool.declared_nodes}
    found = []
    for chosen in sets:
        for placement in chosen.placements:
            pool = declared.get(placement.pool)
            if pool is None:
                continue
            waiting = placement.replicas - room(pool.there, chosen.shape, chosen.layout, owner)
            if waiting > 0:
                found.append(_waiting(chosen, waiting, pool))
    return tuple(found)


def _waiting(chosen: PlanSet, replicas: int, pool: Pool) -> Finding:
    said = f"{counted(replicas, 'replica')} of {chosen.layout} on {chosen.hardware}"
    return Finding(
        severity=Severity.INFO,
        reason="NodeDeclared",
        message=(
            f"{said} {'waits' if replicas == 1 else 'wait'} for nodes of class {pool.node_class or pool.key} to be made"
        ),
    )


def fleet_findings(
    inventory: Inventory, intent: Intent, demand: Demand, *, unpriced: Sequence[str]
) -> tuple[Finding, ...]:
    """Findings about what is not known of the fleet and would matter for the choice."""
    found = []
    if inventory.nodes_unseen:
        found.append(
            Finding(
                severity=Severity.INFO,
                reason="NodesUnseen",
                message=_UNSEEN,
                remedy="an operator that watches the whole cluster, which may read nodes",
            )
        )
    elif inventory.free_is_assumed:
        found.append(
            Finding(
                severity=Severity.INFO,
                reason="FreeAssumed",
                message="pods were not seen, so every allocatable GPU is taken as free",
                remedy="a snapshot of the cluster",
            )
        )
    if unpriced:
        limit = demand.limits.per_hour
        have = "has" if len(unpriced) == 1 else "have"
        message = f"{_some_of(unpriced)} {have} no price, so costs are compared in {intent.hours}"
        if limit is not None:
            message += f", and where the price is unknown nothing holds them to {float(limit):g} an hour"
        found.append(
            Finding(
                severity=Severity.INFO if limit is None else Severity.WARNING,
                reason="PricesUnknown",
                message=message,
                field=None if limit is None else "cost.maxPerHour",
                remedy=f"prices.{'cpuCoreHour' if intent.on_cpu else 'gpuHour'} or nodeClasses with pricePerHour in the admin's config",
            )
        )
    return tuple(found)


def _some_of(names: Sequence[str]) -> str:
    """A, B and C; of more than a sentence may name the first, and how many more there are."""
    *first, last = (
        names if len(names) <= MOST_NAMED else (*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more")
    )
    return f"{', '.join(first)} and {last}" if first else last


def why_chosen(
    chosen: Chosen, intent: Intent, demand: Demand, *, money: bool, kinds: int, layouts: int
) -> str:
    """The objective of the choice, and among how many layouts it was made."""
    unit = "money" if money else intent.hours
    load = f"{demand.amount:g} requests a second"
    if demand.unit == "concurrency":
        load = f"{int(demand.amount):,} requests in flight"
    if demand.unit == "replicas":
        aim = f"the least {unit} for each {intent.work} at a modest load"
    elif chosen.covered < demand.amount - ROUNDING:
        share = floor(100 * chosen.covered / demand.amount)
        aim = f"as much of {load} as can be carried, {share}%, for the least {unit}"
    else:
        aim = f"the least {unit} that carries {load}"
    fitting = f"{counted(layouts, 'layout')} that {'fits' if layouts == 1 else 'fit'}"
    return f"{aim}, among {fitting} on {counted(kinds, 'kind')} of {intent.device}"
