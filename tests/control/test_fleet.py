"""Who gets what of a fleet whose GPUs and budgets do not suffice for all that is asked for, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.law import LAW
from plimsoll.control.memory import Memory
from plimsoll.control.situation import ReplicaState, Situation
from plimsoll.planning.placing.budgets import Limits
from tests.control.situations import NOW, known, replicas, serving, signals, situation

BUSY: dict[str, Any] = {"inflight": 60, "waiting": 20, "rate": 8.0, "kv": 0.9}
THERE = 2
ASKED = 3
"""More that each of three busy deployments asks for beside the two replicas that it has."""
NAMES = ("team/a", "team/b", "zoo/c")


@dataclass(frozen=True, kw_only=True)
class Case:
    limits: dict[str, Limits] = field(default_factory=dict)
    """Budgets by namespace."""
    free: dict[str, float] = field(default_factory=dict)
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is different of a deployment's set."""
    priority: dict[str, int] = field(default_factory=dict)
    gets: tuple[int, int, int] = (ASKED, ASKED, ASKED)
    """More replicas, in the order of NAMES."""


def devices(count: int) -> Limits:
    return Limits(devices=Fraction(count))


CASES = {
    "nothing is limited": Case(),
    "a budget is shared by the deployments of its namespace": Case(
        limits={"team": devices(6)}, gets=(2, 0, ASKED)
    ),
    "each namespace has its own": Case(limits={"team": devices(9), "zoo": devices(3)}, gets=(ASKED, 2, 1)),
    "one that is used up leaves all as they are": Case(limits={"team": devices(4)}, gets=(0, 0, ASKED)),
    "one that is overdrawn takes nothing away": Case(limits={"team": devices(1)}, gets=(0, 0, ASKED)),
    "a budget of nothing is no absent one": Case(limits={"zoo": devices(0)}, gets=(ASKED, ASKED, 0)),
    "replicas of two GPUs each take two": Case(
        limits={"team": devices(9)}, changed={"team/a": {"gpus": 2.0}}, gets=(1, 1, ASKED)
    ),
    "shared GPUs count in parts": Case(
        limits={"team": devices(4)}, changed={"team/a": {"gpus": 0.5}}, gets=(2, 0, ASKED)
    ),
    "a limit of one product is none of another": Case(
        limits={"team": Limits(by_product={"H100": Fraction(3)})},
        changed={"team/b": {"product": "L4"}},
        gets=(1, ASKED, ASKED),
    ),
    "a limit of both is the tighter one": Case(
        limits={"team": Limits(devices=Fraction(6), by_product={"H100": Fraction(9)})}, gets=(2, 0, ASKED)
    ),
    "money is shared as GPUs are": Case(
        limits={"team": Limits(per_hour=Fraction(15))},
        changed={name: {"price_per_hour": 3.0} for name in NAMES},
        gets=(1, 0, ASKED),
    ),
    "an unknown price cannot be held to a sum": Case(limits={"team": Limits(per_hour=Fraction(1))}),
    "the most replicas are those of one deployment": Case(
        limits={"team": Limits(replicas=3)}, gets=(1, 1, ASKED)
    ),
    "what leaves is held until it is gone": Case(
        limits={"team": devices(7)},
        changed={"team/b": {"replicas": (*replicas(2), *replicas(2, ReplicaState.LEAVING, first=2))}},
        gets=(1, 0, ASKED),
    ),
    "free devices of a pool go to the first by name": Case(free={"h100": 4.0}, gets=(ASKED, 1, 0)),
    "or to the most important": Case(free={"h100": 4.0}, priority={"team/b": 5}, gets=(1, ASKED, 0)),
    "a pool that nobody names has no limit": Case(free={"l4": 0.0}),
    "what was promised and has no pod yet is taken out of what is free already": Case(
        free={"h100": 5.0}, changed={"team/b": {"wanted": 5}}, gets=(ASKED, 0, 2)
    ),
    "the tighter of pool and budget binds": Case(
        limits={"team": devices(6)}, free={"h100": 4.0}, gets=(2, 0, 2)
    ),
}


def asked(case: Case, name: str) -> Situation:
    there = serving(THERE, **({"name": f"{name}-set", "wanted": THERE} | case.changed.get(name, {})))
    return situation(signals(THERE, **BUSY), there, name=name, priority=case.priority.get(name, 0))


def gained(case: Case) -> Mapping[str, int]:
    """After the second look, which is the first that may ask for more."""
    situations = [asked(case, name) for name in NAMES]
    fleet, memories = Fleet(free=case.free, limits=case.limits), {name: known() for name in NAMES}
    for tick in range(2):
        decisions = decide_fleet(now=NOW + 15 * tick, situations=situations, memories=memories, fleet=fleet)
        memories = {each.name: each.memory for each in decisions}
    told = {each.name: each.roles[0].sets[0].told for each in situations}
    return {each.name: each.replicas - told[each.name] for each in decisions}


@pytest.mark.parametrize("name", CASES)
def test_what_each_deployment_gets_of_budgets_and_pools(name: str):
    case = CASES[name]
    assert tuple(gained(case)[name] for name in NAMES) == case.gets


def test_whoever_gets_less_than_was_asked_for_is_told_what_was_in_the_way():
    situations = [
        asked(CASES["a budget is shared by the deployments of its namespace"], name) for name in NAMES
    ]
    fleet = Fleet(limits={"team": devices(6)})
    memories: Mapping[str, Memory] = {name: known() for name in NAMES}
    for tick in range(2):
        decisions = decide_fleet(now=NOW + 15 * tick, situations=situations, memories=memories, fleet=fleet)
        memories = {each.name: each.memory for each in decisions}
    reasons = {each.name: [told.reason for told in each.conditions] for each in decisions}
    assert "BudgetExhausted" in reasons["team/a"]
    assert "BudgetExhausted" in reasons["team/b"]
    assert "BudgetExhausted" not in reasons["zoo/c"]


@pytest.mark.parametrize(
    ("before", "ago_s", "left"),
    [({"team/b-set": 3}, 15, 0), ({}, 15, 1), ({"team/b-set": 3}, LAW.unplaced_s, 1)],
    ids=["asked for just now", "not asked for", "asked for in vain for longer than a turn takes"],
)
@pytest.mark.parametrize(
    "fleet", [Fleet(free={"h100": 1.0}), Fleet(limits={"team": devices(5)})], ids=["a pool", "a budget"]
)
def test_what_the_plan_does_not_have_yet_of_a_more_important_deployment_is_left_to_it_at_every_look(
    fleet: Fleet, before: dict[str, int], ago_s: float, left: int
) -> None:
    """It asks anew only once its window is over, and the less important one asks now."""
    important = asked(Case(priority={"team/b": 5}), "team/b")
    important = replace(important, roles=(replace(important.roles[0], asked=before),))
    memories = {"team/a": known(over_since=NOW - 60), "team/b": known(up_at=NOW - ago_s)}
    decisions = decide_fleet(
        now=NOW, situations=[asked(Case(), "team/a"), important], memories=memories, fleet=fleet
    )
    assert [each.replicas - THERE for each in decisions] == [left, 0]
