"""plan(): from a resource, an inventory and facts to one Plan. Pure: the same inputs give the same bytes.

Each step has a module: `reading` (what is asked, and contradictions in it), `fresh` (the plan if there were none), `pinning` (whether
what serves is kept). What a user wrote never raises: it ends in a plan whose findings say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import NOTHING, Learned
from plimsoll.planning.ask.reading import PlanFacts, Reading, read
from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.cheapest import Demand, demand_of, more_of, wanted_of
from plimsoll.planning.choice.outcomes import OF_SETS
from plimsoll.planning.choice.shortage import gone, shortage
from plimsoll.planning.fresh import findings_of_sets, fresh_plan, without_sets
from plimsoll.planning.pinning import Event, Wish, kept, replacing, undisturbed
from plimsoll.planning.placing.budgets import Limits, limits_of
from plimsoll.planning.placing.cost import rescaled
from plimsoll.planning.placing.occupancy import Ground
from plimsoll.planning.placing.placement import same_devices
from plimsoll.planning.plan import Finding, Outcome, Pinning, Plan, PlanSet, Severity
from plimsoll.planning.settle.changed import retained

__all__ = ["PlanFacts", "plan"]


def plan(
    deployment: LLMDeployment,
    inventory: Inventory,
    facts: PlanFacts,
    *,
    learned: Learned = NOTHING,
    config: OperatorConfig | None = None,
    pinned: Plan | None = None,
    event: Event | None = None,
    limits: Limits | None = None,
    wish: Wish | None = None,
) -> Plan:
    """The plan of one deployment: the pinned one where it stands, else a new one.

    `limits` is what others of the namespace leave of its budget; None is the whole budget of the config.

    `wish` is how many replicas live traffic asks for, in place of the declared load. A new plan gets at least as many, as nobody has
    seen yet what one replica of it carries.

    `config` is None where no admin's config is known: its defaults are used, but what it would have to allow is a warning, no error.
    """
    reading = read(deployment, inventory, facts, learned, config)
    config = config if config is not None else OperatorConfig()
    if pinned is not None and pinned.spec_digest == reading.digest_before:
        pinned = replace(pinned, spec_digest=reading.digest)
    if pinned is not None and pinned.spec_digest == reading.digest:
        reading = reading.of_what_stands()
    bounds = limits if limits is not None else limits_of(deployment.namespace, config)
    ground = Ground(reading.slots, reading.owner)

    def undisturbed_with(pinned: Plan, findings: tuple[Finding, ...]) -> Plan:
        fixed = deployment.spec.replicas
        return undisturbed(pinned, fixed, findings, wish=wish, ground=ground, limits=bounds)

    task = reading.task
    if task is None or reading.errs:
        ended = without_sets(reading, Outcome.INVALID)
        if pinned is None:
            return ended
        stands = undisturbed_with(pinned, ended.findings)
        return stands if pinned.spec_digest == reading.digest else _with_reasons_of(ended, stands)
    demand = demand_of(task.intent, bounds)
    least = 0 if wish is None else wish.replicas
    fresh = fresh_plan(reading, task, inventory, more_of(demand, least, task.intent.bounds.most))
    why = _why_replaced(pinned, fresh, event, ground)
    if pinned is not None and why is None:
        return _kept(reading, task, inventory, pinned, fresh, demand=demand, wish=wish, ground=ground)
    if pinned is not None and not fresh.sets:
        return _with_reasons_of(fresh, undisturbed_with(pinned, fresh.findings))
    made = replace(fresh, pinning=why)
    unedited = pinned is not None and pinned.spec_digest == fresh.spec_digest
    # Retuned settings are not taken over after a failed start, which they may have caused, nor after an edit, which has the last word.
    if pinned is None or not unedited or event is Event.SET_FAILED:
        return made
    return retained(made, pinned, named=task.intent.spec.tuning.allows_by_name)


def _why_replaced(pinned: Plan | None, fresh: Plan, event: Event | None, ground: Ground) -> Pinning | None:
    """Why the pinned plan is replaced by the fresh one, or None where it stands."""
    holdable = pinned is not None and all(ground.could_hold(chosen) for chosen in pinned.sets)
    why = replacing(pinned, fresh.spec_digest, event, holdable=holdable)
    unedited = pinned is not None and pinned.spec_digest == fresh.spec_digest
    if why is not None and why.reason == Event.LOST_HARDWARE and unedited and not fresh.sets:
        # No other hardware could hold it either, so the plan waits for what was lost, and what still serves of it may stay.
        return None
    return why


def _kept(
    reading: Reading,
    task: Task,
    inventory: Inventory,
    pinned: Plan,
    fresh: Plan,
    *,
    demand: Demand,
    wish: Wish | None,
    ground: Ground,
) -> Plan:
    """The pinned plan with as many replicas as are wanted now, and with findings about its own sets."""
    wanted = wanted_of(pinned, demand, task.intent, None if wish is None else wish.replicas)
    stands = kept(pinned, fresh, wanted=wanted, wish=wish, ground=ground, limits=demand.limits)
    if wish is not None and wish.further:
        beside = _further(reading, task, inventory, stands, demand.limits)
        stands = replace(stands, sets=(*stands.sets, *beside))
    # What the fresh plan says of its own sets is not true of the pinned ones.
    findings = [f for f in fresh.findings if f.reason not in OF_SETS or f.severity is Severity.ERROR]
    findings += [gone(chosen) for chosen in stands.sets if chosen.replicas and not ground.could_hold(chosen)]
    if stands.outcome is Outcome.SHORT:
        lead = stands.sets[0]
        findings.append(
            shortage(reading.slots, reading.owner, lead, demand, wanted=wanted, placed=stands.replicas)
        )
    return replace(stands, findings=(*findings, *findings_of_sets(reading, stands.sets)))


def _with_reasons_of(ended: Plan, stands: Plan) -> Plan:
    """A plan that stands, with all the reasons why an edit of the spec led to no plan: the edit takes down nothing that serves."""
    return replace(
        stands,
        outcome=ended.outcome,
        rejected=ended.rejected,
        advice=ended.advice,
        nearest=ended.nearest,
    )


def _further(
    reading: Reading, task: Task, inventory: Inventory, stands: Plan, limits: Limits
) -> Iterator[PlanSet]:
    """A set without replicas on the cheapest other devices that have room for a replica now, so that live traffic may grow onto them.
    There is none where it would miss the latency target."""
    ours = [chosen.hardware for chosen in stands.sets]
    others = tuple(
        slot for slot in reading.slots if not any(same_devices(slot.hardware, each) for each in ours)
    )
    if others:
        one = Demand(amount=1.0, unit="replicas", least=1, most=1, limits=limits)
        found = fresh_plan(replace(reading, slots=others), task, inventory, one).sets
        yield from (rescaled(chosen, 0) for chosen in found if chosen.meets_slo is not False)
