"""The sentences that travel with a decision, in one voice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, floor
from typing import Final

from plimsoll import names
from plimsoll.control.decision import Need, Told
from plimsoll.control.placing import Placing
from plimsoll.control.pools import ROUNDING, Allotment
from plimsoll.control.situation import Role, ServingSet

_MORE_GPUS: Final = "free GPUs, add nodes, or lower scaling.max"
_MINUTES_FROM_S: Final = 300.0
"""Times from here on are told in minutes."""
LIMITS: Final[Mapping[str, str]] = {
    "AtMax": "scaling.max is {max}; raise it where the fleet has room",
    "GPUsUnavailable": f"the fleet has no more GPUs for it now; {_MORE_GPUS}",
    "BudgetExhausted": "the namespace's budget allows no more; end something of the namespace, or have its budgets raised in the "
    "admin's config",
    "StartFailed": "replicas of the set fail to start, so no more are asked for now; Ready and `plimsoll doctor` say why",
}


def figures(role: Role, need: Need) -> str:
    """What each view asks for, in replicas of the first set."""
    unit = _unit(role)
    parts = [
        f"{_tenths(value):.1f} by {words}"
        for value, words in (
            (need.tokens, "tokens in the pool"),
            (need.running, "requests in flight"),
            (need.prompts, "first tokens in time"),
            (need.latency, "latency"),
            (need.forecast, f"the load {need.lead_s:.0f} s ahead"),
            (need.gateway, "those who wait at the gateway"),
        )
        if value is not None
    ]
    if not parts:
        return "nothing says how many are wanted"
    return f"wanted are {', '.join(parts)}" + (f" (in replicas of {unit})" if unit else "")


def _tenths(value: float) -> float:
    """Up, as replicas are whole: where 2.04 are wanted there are to be 3, which nobody would see from 2.0."""
    return ceil(10 * (value - ROUNDING)) / 10


def _unit(role: Role) -> str:
    """The set in whose replicas loads are counted; empty where a role has one set, so that there is nothing to tell apart."""
    if len(role.sets) < 2:
        return ""
    return _called(role.sets[0])


def _called(each: ServingSet) -> str:
    return f"{each.name} on {each.product}" if each.product else each.name


def unmet(role: Role, allotted: Allotment, wanted: int) -> tuple[Told, ...]:
    """ScalingLimited for what the load wants. Where a role has several sets, what is wanted is counted in replicas of the first
    set, and what can be had in replicas of any."""
    if unit := _unit(role):
        return scaling_limited(role, allotted, wanted, of=f" of {unit}", among=" of all sets")
    return scaling_limited(role, allotted, wanted)


def scaling_limited(
    role: Role, allotted: Allotment, wanted: int, *, of: str = "", among: str = ""
) -> tuple[Told, ...]:
    """The condition ScalingLimited; nothing where everything that was wanted found a place."""
    if allotted.limit is None:
        return ()
    reasons = (allotted.limit, *allotted.besides)
    why = "; besides, ".join(LIMITS.get(one, one).format(max=role.bounds.max) for one in reasons)
    had = sum(allotted.replicas.values()) - sum(max(each.unmade, each.lost) for each in role.sets)
    message = f"{wanted} replicas{of} are wanted, {had}{among} can be had: {why}"
    return (
        Told(
            type=names.SCALING,
            status="True",
            reason=allotted.limit,
            message=message,
            besides=allotted.besides,
        ),
    )


def stuck(role: Role, placed: Placing) -> tuple[Told, ...]:
    """ScalingLimited for replicas that find no GPUs; it names their sets where there are several, as the others may still grow."""
    if not placed.stuck:
        return ()
    count = sum(placed.stuck.values())
    finds, they = ("1 replica finds", "it does") if count == 1 else (f"{count} replicas find", "they do")
    no_more, remedy = "no more are asked for", _MORE_GPUS
    if len(role.sets) > 1:
        names_of = {each.name: _called(each) for each in role.sets}
        finds, _, verb = finds.rpartition(" ")
        of = ", ".join(names_of[name] for name in placed.stuck)
        finds, no_more = f"{finds} of {of} {verb}", "no more are asked for there"
    message = f"{finds} no GPUs; {no_more} until {they}; {remedy}"
    return (Told(type=names.SCALING, status="True", reason="GPUsUnavailable", message=message),)


def made_way(role: Role, after: Mapping[str, int], seconds: float) -> str:
    """A clause about replicas that had failed, or could not be made, for so long and go, and those of other sets in their place."""
    gone = {_called(each): fewer for each in role.sets if (fewer := each.told - after[each.name]) > 0}
    unmade = sum(min(each.unmade, gone.get(_called(each), 0)) for each in role.sets)
    come = {_called(each): more for each in role.sets if (more := after[each.name] - each.told) > 0}
    count, of = sum(gone.values()), ", ".join(gone)
    of, their = (f"replica of {of}", "its") if count == 1 else (f"replicas of {of}", "their")
    failed = "" if unmade == count else "has failed" if count == 1 else "have failed"
    how = " or ".join(filter(None, (failed, "could not be made" if unmade else "")))
    others = ", ".join(f"{more} of {name}" for name, more in come.items())
    return f"{count} {of} {how} for {seconds / 60:.0f} minutes or more; {others} in {their} place"


def long(seconds: float) -> str:
    """A time in the unit that people count it in."""
    return f"{ceil(seconds)} seconds" if seconds < _MINUTES_FROM_S else f"{ceil(seconds / 60)} minutes"


def not_over(passed: float, least: float) -> str:
    """How much of a time has passed that is not over: so it is never told as all of it."""
    return f"{floor(passed) if least < _MINUTES_FROM_S else floor(passed / 60)} of {long(least)}"


def together(told: Iterable[Told]) -> tuple[Told, ...]:
    """One of each type, sorted; where roles differ, the one that objects."""
    best: dict[str, Told] = {}
    for each in told:
        calm = "False" if each.type == names.SCALING else "True"
        if each.type not in best or best[each.type].status == calm:
            best[each.type] = each
    return tuple(best[kind] for kind in sorted(best))
