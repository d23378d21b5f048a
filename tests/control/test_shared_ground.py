"""Replicas of different sizes, or of different rights to nodes, that find their GPUs in one place: none is given away twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.control.fleet import Fleet, decide_fleet
from plimsoll.control.memory import Memory
from plimsoll.control.pools import grown
from plimsoll.control.scaling import decide
from plimsoll.control.situation import Role, Room, ServingSet, Situation
from plimsoll.planning.placing.budgets import Limits
from tests.control.situations import NOW, WIDE, known, serving, signals, situation

BUSY = signals(2, inflight=60, waiting=20, rate=8.0, kv=0.9)
PARTS: Mapping[str, frozenset[str]] = {
    "by four": frozenset({"east", "west"}),
    "by two": frozenset({"east"}),
    "elsewhere": frozenset({"north"}),
}


def asked(name: str, ground: str, gpus: float, priority: int) -> Situation:
    each = serving(2, name=f"{name}-set", pool=ground, gpus=gpus, wanted=2)
    return situation(BUSY, each, name=name, priority=priority)


def gained(free: Mapping[str, float], *situations: Situation) -> dict[str, int]:
    """After the second look, which is the first that may ask for more."""
    memories, fleet = {each.name: known() for each in situations}, Fleet(free=free, parts=PARTS)
    for tick in range(2):
        decisions = decide_fleet(now=NOW + 15 * tick, situations=situations, memories=memories, fleet=fleet)
        memories = {each.name: each.memory for each in decisions}
    return {each.name: each.replicas - 2 for each in decisions}


@pytest.mark.parametrize(
    ("ground", "gets"), [("by two", 0), ("elsewhere", 3)], ids=["the same nodes", "others"]
)
def test_what_the_more_important_takes_is_not_room_for_others_on_the_same_nodes(
    ground: str, gets: int
) -> None:
    free = {"by four": 8.0, "by two": 8.0, "elsewhere": 8.0}
    found = gained(free, asked("zoo/a", "by four", 4.0, 9), asked("zoo/b", ground, 2.0, 0))
    assert found == {"zoo/a": 2, "zoo/b": gets}


def test_nor_for_other_sets_of_its_own() -> None:
    sets = (
        serving(0, name="a", pool="by four", gpus=4.0, price_per_hour=1.0, wanted=0),
        serving(0, name="b", pool="by two", gpus=2.0, price_per_hour=9.0, wanted=0),
    )
    role = Role(sets=sets, signals=BUSY, bounds=WIDE)
    room = Room(gpus={"by four": 8.0, "by two": 8.0}, parts=PARTS)
    found = grown(role, {"a": 1.0, "b": 1.0}, 9.0, most=20, blocked=(), room=room)
    assert (dict(found.replicas), found.limit) == ({"a": 2, "b": 0}, "GPUsUnavailable")


def roles(*sets: ServingSet) -> Situation:
    first = situation(BUSY, sets[0])
    more = [replace(first.roles[0], name=each.name, sets=(each,)) for each in sets]
    return replace(first, roles=tuple(more))


@pytest.mark.parametrize(
    "room",
    [
        {"limits": Limits(replicas=2)},
        {"gpus": {"h100": 2.0}},
        {"gpus": {"h100": 2.0, "too": 2.0}, "parts": dict.fromkeys(("h100", "too"), frozenset({"east"}))},
    ],
    ids=["a budget", "a place", "one place by two names"],
)
def test_what_one_role_takes_the_next_does_not_find(room: dict[str, Any]) -> None:
    second = "too" if "parts" in room else "h100"
    both = roles(serving(2, name="prefill", wanted=2), serving(2, name="decode", pool=second, wanted=2))
    memory = Memory(roles={each.name: known().of("serve") for each in both.roles})
    for tick in range(2):
        decision = decide(now=NOW + 15 * tick, situation=both, memory=memory, room=Room(**room))
        memory = decision.memory
    assert {role.role: role.replicas for role in decision.roles} == {"prefill": 4, "decode": 2}
