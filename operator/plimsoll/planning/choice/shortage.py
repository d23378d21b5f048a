"""Why fewer replicas than wanted have found a place: the budget, the hosts, or the devices."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll import names
from plimsoll.api.quantity import format_gib
from plimsoll.facts.inventory import Pool
from plimsoll.planning.ask.values import counted
from plimsoll.planning.choice.cheapest import Demand
from plimsoll.planning.choice.outcomes import MOST_NAMED, uncordoned
from plimsoll.planning.placing.budgets import claim_of
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.placing.placement import Slot, has_memory, room_when_empty, same_devices
from plimsoll.planning.plan import Finding, PlanSet, Severity


def shortage(
    slots: Sequence[Slot], owner: str, shown: PlanSet, demand: Demand, *, wanted: int, placed: int
) -> Finding:
    """The reason that holds back a set of which `placed` replicas have a place and more are wanted."""
    ground = Ground(slots, owner)
    allowed = demand.limits.allows(claim_of(shown))
    if allowed is not None and allowed < min(wanted, ground.room(shown)):
        return _over_budget(shown, demand, wanted, placed)
    hosts = ground.hosts(shown)
    if not hosts:
        return _no_host(shown, slots)
    return _no_room(shown, hosts, wanted, placed, owner)


def _over_budget(shown: PlanSet, demand: Demand, wanted: int, placed: int) -> Finding:
    """Devices are there, but the namespace's budget, or the user's own limit of money, allows no more of them."""
    limits, claim = demand.limits, claim_of(shown)
    product = limits.by_product.get(claim.product)
    said, fields = [], []
    for limit, each, words, field in (
        (limits.devices, claim.gpus, "{:g} GPUs", "gpus"),
        (product, claim.gpus, f"{{:g}} {claim.product}", "gpusByProduct"),
        (limits.per_hour, claim.price, "{:g} an hour", "costPerHour"),
    ):
        if limit is not None and each and limit < each * wanted:
            said.append(words.format(float(limit)))
            fields.append(f"budgets.{field}")
    money = "budgets.costPerHour" in fields
    if limits.replicas is not None and limits.replicas < wanted:
        said.append(counted(limits.replicas, "replica"))
        fields.append("budgets.maxReplicas")
    return Finding(
        severity=Severity.WARNING,
        reason="BudgetExhausted",
        message=(
            f"the budget leaves {' and '.join(said) or 'nothing more'}, which is enough for {placed:,} of "
            f"{counted(wanted, 'replica')} of {shown.layout} on {shown.hardware}"
        ),
        field="cost.maxPerHour" if money else "replicas",
        remedy=f"{'a higher cost.maxPerHour, ' if money else ''}a larger {' and '.join(fields) or 'budget'} in the admin's config, or fewer replicas",
    )


def _no_host(shown: PlanSet, slots: Sequence[Slot]) -> Finding:
    """Devices are there, but on hosts with too little memory or disk for a pod; or the devices of a pinned set are gone."""
    asked = shown.resources
    pools = [pool for slot in slots if same_devices(slot.hardware, shown.hardware) for pool in slot.pools]
    if not pools:
        return gone(shown)
    large = [pool for pool in pools if has_memory(pool, asked)]
    if large:
        free = [pool.host_free_disk_bytes for pool in large if pool.host_free_disk_bytes is not None]
        most = (
            f"no node with free {shown.hardware} has more than {format_gib(max(free))} of ephemeral-storage left"
            if free
            else f"no node with {shown.hardware} has more than {format_gib(max(pool.host_disk_bytes or 0 for pool in large))}"
        )
        return Finding(
            severity=Severity.WARNING,
            reason="NoHostDisk",
            message=f"a pod of {shown.layout} needs {format_gib(asked.disk_bytes)} of local disk, and {most}",
            field="storage",
            remedy="nodes with more disk, or a volume for the weights: storage.weights.claim or storage.weights.claimTemplate",
        )
    largest = max(pool.host_memory_bytes or 0 for pool in pools)
    return Finding(
        severity=Severity.WARNING,
        reason="NoHostMemory",
        message=(
            f"a pod of {shown.layout} needs {format_gib(asked.memory_bytes)} of host memory, and no node with {shown.hardware} "
            f"gives more than {format_gib(largest)}"
        ),
        field="topology",
        remedy="nodes with more memory, a smaller memory.kvOffload or memory.cpuOffload, or other GPUs",
    )


def gone(stands: PlanSet) -> Finding:
    """The hardware of a pinned set has left the fleet. The caller, who keeps the time, has the plan replaced if it does not come back."""
    return Finding(
        severity=Severity.WARNING,
        reason="HardwareGone",
        message=(
            f"no node that is there or declared could hold {stands.layout} on {stands.hardware}, which is planned; if none "
            f"comes back the plan is made anew"
        ),
        field="topology",
        remedy=f"bring those nodes back, or give the annotation {names.ANNOTATION_REPLAN} a new value to plan anew at once",
    )


def _no_room(shown: PlanSet, pools: Sequence[Pool], wanted: int, placed: int, owner: str) -> Finding:
    """Not all replicas find free devices now, or there are too few devices at all."""
    empty = sum(room_when_empty(pool, shown.shape, shown.layout) for pool in pools)
    free = sum(pool.free_devices for pool in pools)
    found = f"{placed:,} of {counted(wanted, 'replica')} find"
    if empty >= wanted:
        holders = sorted(
            {name for pool in pools for name, count in pool.held.items() if count and name != owner}
        )
        others = f"; held by {', '.join(holders[:MOST_NAMED])}" if holders else ""
        reason = "NoFreeGPUs"
        # Tensor ranks on several nodes reach one another over NVLink alone.
        joined = shown.layout.tensor > shown.shape.devices
        together = f", and all {shown.shape.pods} of a replica nodes of one NVLink domain" if joined else ""
        message = (
            f"{found} free GPUs: {free:,} {shown.hardware} are free, each pod of {shown.layout} needs {shown.shape.devices} on one node"
            f"{together}{others}"
        )
        remedy = "free those GPUs, a higher priority, or fewer replicas"
    else:
        reason = "NoGPUs"
        message = f"{found} GPUs: all {shown.hardware} together would hold {empty:,} of {shown.layout}"
        remedy = f"{uncordoned(pools)}more nodes, or fewer replicas"
    return Finding(
        severity=Severity.WARNING,
        reason=reason,
        message=message,
        field="replicas",
        value=str(wanted),
        remedy=remedy,
    )
