"""Why no more replicas can be had, where each of several sets has another reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from inspect import getsource
from itertools import permutations
from pathlib import Path

import pytest

from plimsoll import names
from plimsoll.control import bounded, scaling
from plimsoll.control.decision import RISING
from plimsoll.control.pools import REASONS, Allotment, grown
from plimsoll.control.situation import ReplicaState, Role, Room
from plimsoll.control.telling import scaling_limited
from plimsoll.planning.placing.budgets import Limits
from plimsoll.reconcile.direction import Direction
from tests.control.situations import WIDE, replicas, serving, signals

PAGE = (Path(__file__).parents[2] / "docs" / "live-traffic.md").read_text()
DECIDING = (bounded, scaling)
FREE = {"a": 9.0, "b": 9.0, "c": 9.0}
ONES = {"a": 1.0, "b": 1.0, "c": 1.0}


def role(*fail: str, cheapest: str = "abc") -> Role:
    """Sets of two replicas each."""
    return Role(
        sets=tuple(
            serving(
                name=name,
                pool=name,
                product=name,
                price_per_hour=1.0 + cheapest.index(name),
                replicas=replicas(
                    2, ReplicaState.FAILED if name in fail else ReplicaState.READY, first=10 * place
                ),
            )
            for place, name in enumerate("abc")
        ),
        signals=signals(6),
        bounds=WIDE,
    )


def wanting(
    asked: Role, *, most: int = 40, free: Mapping[str, float] = FREE, blocked: tuple[str, ...] = ()
) -> Allotment:
    return grown(asked, ONES, 30.0, most=most, blocked=blocked, room=Room(gpus={**FREE, **free}))


@pytest.mark.parametrize("cheapest", [*map("".join, permutations("abc"))])
def test_the_maximum_is_the_reason_whichever_of_the_sets_found_no_gpus(cheapest: str) -> None:
    found = wanting(role(cheapest=cheapest), most=9, free={"b": 0.0, "c": 0.0})
    assert (sum(found.replicas.values()), found.limit, found.besides) == (9, "AtMax", ())


@pytest.mark.parametrize("cheapest", [*map("".join, permutations("abc"))])
def test_failing_replicas_that_hold_places_at_the_maximum_are_the_reason_whichever_of_the_sets_has_them(
    cheapest: str,
) -> None:
    found = wanting(role("c", cheapest=cheapest), most=9, free={"b": 0.0})
    assert (sum(found.replicas.values()), found.limit) == (9, "StartFailed")


@pytest.mark.parametrize("cheapest", [*map("".join, permutations("abc"))])
@pytest.mark.parametrize("blocked", [(), ("b",)], ids=["they are known to be taken", "it found none"])
def test_a_set_that_fails_is_the_reason_before_one_that_finds_no_gpus_which_is_told_beside_it(
    blocked: tuple[str, ...], cheapest: str
) -> None:
    found = wanting(role("c", cheapest=cheapest), free={"a": 0.0, "b": 0.0}, blocked=blocked)
    assert (found.limit, found.besides) == ("StartFailed", ("GPUsUnavailable",))
    (told,) = scaling_limited(role("c"), found, 36)
    assert (told.type, told.reason) == (names.SCALING, "StartFailed")
    assert Direction(told=(told,)).full, "so a further set may be planned, and free GPUs are waited for"
    assert "`plimsoll doctor` say why; besides, the fleet has no more GPUs" in told.message


def test_a_budget_that_ends_what_would_wait_for_gpus_is_the_only_reason() -> None:
    limits = Limits(devices=Fraction(3))
    room = Room(gpus=dict.fromkeys("abc", 0.0), limits=limits)
    found = grown(role(), ONES, 30.0, most=40, blocked=(), room=room, patient=True)
    assert (sum(found.replicas.values()), found.limit, found.besides) == (9, "BudgetExhausted", ())


def test_the_page_about_live_traffic_says_what_each_word_for_a_decision_means():
    said = {*REASONS, RISING}
    for module in DECIDING:
        said.update(
            re.findall(r"""(?:reason=|reason, message = |else )"([A-Z][A-Za-z]+)\"""", getsource(module))
        )
    assert {"LoadRose", "Panic", "AtMin", "AtMax", "Fixed"} <= said
    begins = PAGE.index("**The word beside each change**")
    part = PAGE[begins : PAGE.index("What is decided is done by", begins)]
    assert {word for word in said if f"`{word}`" not in part} == set()
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", part)) - said == {"MetricsAvailable"}
