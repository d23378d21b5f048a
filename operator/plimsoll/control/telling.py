"""The sentences that travel with a decision, in one voice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll import names
from plimsoll.control.decision import Need, Told
from plimsoll.control.pools import Spread
from plimsoll.control.situation import Role

_MORE_GPUS: Final = "free GPUs, add nodes, or lower scaling.max"
LIMITS: Final[Mapping[str, str]] = {
    "AtMax": "scaling.max is {max}; raise it where the fleet has room",
    "GPUsUnavailable": f"the fleet has no more GPUs for it now; {_MORE_GPUS}",
    "BudgetExhausted": "the namespace's budget allows no more; end something of the namespace, or have its budgets raised in the "
    "admin's config",
    "StartFailed": "replicas of the set fail to start, so no more are asked for; Ready and `plimsoll doctor` say why",
}


def figures(need: Need) -> str:
    """What each view asks for, in replicas."""
    parts = [
        f"{value:.1f} by {words}"
        for value, words in (
            (need.tokens, "tokens in the pool"),
            (need.running, "requests in flight"),
            (need.prompts, "first tokens in time"),
            (need.latency, "latency"),
            (need.forecast, f"the load {need.lead_s:.0f} s ahead"),
        )
        if value is not None
    ]
    return "wanted are " + ", ".join(parts) if parts else "nothing says how many are wanted"


def limited(role: Role, spread: Spread, wanted: int) -> tuple[Told, ...]:
    if spread.limit is None:
        return ()
    why = LIMITS.get(spread.limit, spread.limit).format(max=role.bounds.max)
    message = f"{wanted} replicas are wanted, {sum(spread.replicas.values())} can be had: {why}"
    return (Told(type=names.SCALING, status="True", reason=spread.limit, message=message),)


def stuck(count: int) -> tuple[Told, ...]:
    if not count:
        return ()
    message = f"{count} replicas find no GPUs; no more are asked for until they do; {_MORE_GPUS}"
    return (Told(type=names.SCALING, status="True", reason="GPUsUnavailable", message=message),)


def together(told: Iterable[Told]) -> tuple[Told, ...]:
    """One of each type, sorted; where roles differ, the one that objects."""
    best: dict[str, Told] = {}
    for each in told:
        calm = "False" if each.type == names.SCALING else "True"
        if each.type not in best or best[each.type].status == calm:
            best[each.type] = each
    return tuple(best[kind] for kind in sorted(best))
