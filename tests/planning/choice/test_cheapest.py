"""The search for the cheapest sets, on options made by hand and against trying everything."""

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.choice.cheapest import NEAR, Demand, Option, choose
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.placing.budgets import Claim, Limits


def option(name, *, capacity, cost, room=99, devices=1, product_name=None):
    slot = SimpleNamespace(order=(0, name, name), hardware=SimpleNamespace(gpu=name))
    candidate = SimpleNamespace(
        slot=slot,
        layout=Layout(tensor=devices),
        devices=devices,
        claim=Claim(product=product_name or name, gpus=Fraction(devices), price=None),
    )
    return Option(candidate=candidate, capacity=float(capacity), cost=float(cost), room=room)  # type: ignore[arg-type]


def demand(amount, *, least=1, most=None, **limits):
    return Demand(amount=float(amount), unit="concurrency", least=least, most=most, limits=Limits(**limits))


def summary(chosen):
    return sorted((one.candidate.slot.order[1], count) for one, count in chosen.sets)


def test_a_mix_wins_where_it_is_cheaper_than_one_kind():
    big, small = option("big", capacity=4, cost=4), option("small", capacity=1, cost="1.2")
    assert summary(choose([big, small], demand(5))) == [("big", 1), ("small", 1)]


def test_one_kind_wins_a_tie_against_a_mix_and_the_simpler_one_among_equals():
    one, other = option("one", capacity=2, cost=2), option("other", capacity=1, cost=1, devices=2)
    assert summary(choose([one, other], demand(2))) == [("one", 1)]


def test_bounds_of_replicas_room_and_budget_hold():
    cheap = option("cheap", capacity=1, cost=1, room=3)
    dear = option("dear", capacity=5, cost=9)
    assert summary(choose([cheap, dear], demand(6, most=2))) == [("cheap", 1), ("dear", 1)]
    assert summary(choose([cheap], demand(2, least=3))) == [("cheap", 3)]
    assert summary(choose([cheap, dear], demand(20, devices=Fraction(2)))) == [("dear", 2)]


def test_what_cannot_be_covered_is_covered_as_far_as_it_goes():
    found = choose(
        [option("a", capacity=1, cost=1, room=2), option("b", capacity=1, cost=2, room=1)], demand(9)
    )
    assert found is not None
    assert (summary(found), found.covered) == ([("a", 2), ("b", 1)], 3)
    assert choose([option("a", capacity=1, cost=1, room=0)], demand(1)) is None


def slot_of(*options):
    for one in options:
        one.candidate.slot = options[0].candidate.slot
    return list(options)


LAYOUTS = [(2, 2, 32), (5, 6, 16), (9, 12, 8)]
"""Capacity, cost and room of three layouts on the same GPUs: the smaller, the cheaper for what it carries."""


@pytest.mark.parametrize(
    ("most", "limits", "chosen"),
    [
        # Of ten replicas the eight largest for which there are GPUs carry most.
        (10, {}, (12, 8)),
        # Of twenty, sixteen of the middle one; the smallest alone would be more than may be.
        (20, {}, (6, 16)),
        # Where GPUs are few, what carries most with them is what is cheapest for what it carries.
        (None, {"devices": Fraction(4)}, (2, 4)),
    ],
)
def test_what_carries_most_is_chosen_where_replicas_or_gpus_end_before_the_load_does(most, limits, chosen):
    sizes = {2: 1, 6: 3, 12: 6}
    layouts = slot_of(
        *(
            option("h", capacity=capacity, cost=cost, room=room, devices=sizes[cost])
            for capacity, cost, room in LAYOUTS
        )
    )
    found = choose(layouts, demand(100, most=most, **limits))
    assert found is not None
    ((one, count),) = found.sets
    assert (one.cost, count) == chosen


def test_the_cheaper_is_chosen_of_two_that_carry_about_as_much_of_a_load_that_is_too_large():
    layouts = slot_of(option("h", capacity=50, cost=10), option("h", capacity=51, cost=20, devices=2))
    found = choose(layouts, demand(1000, most=10))
    assert found is not None
    assert (found.covered, found.cost) == (500, 100)


@pytest.mark.parametrize(
    ("options", "amount", "bounds", "replicas"),
    [
        ([(6, 1, 3), (10, 2, 1)], 10, {"least": 4}, 3),
        ([(64, 1, 11), (250, 4, 2)], 100, {"least": 12}, 11),
        ([(9.7, 9, 40), (10, 12, 10), (20, 30, 1)], 100, {"most": 10}, 10),
        ([(6, 1, 3)], 0, {"least": 4}, 3),
    ],
    ids=["the least is out of reach", "far more than the load", "one alone carries it whole", "no load"],
)
def test_what_is_chosen_beyond_the_search_keeps_the_least_replicas_and_carries_all_where_it_can(
    options, amount, bounds, replicas
):
    offered = slot_of(*(option("h", capacity=each, cost=cost, room=room) for each, cost, room in options))
    found = choose(offered, demand(amount, **bounds))
    assert found is not None
    assert found.replicas == replicas
    assert found.covered >= amount


def test_with_replicas_of_several_sizes_the_largest_come_first_where_their_number_ends():
    small, large = option("small", capacity=1, cost=1, room=10), option("large", capacity=2, cost=5, room=3)
    found = choose([small, large], demand(20, most=10))
    assert found is not None
    assert (summary(found), found.covered) == ([("large", 3), ("small", 7)], 13)


@given(
    kinds=st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 6)), min_size=1, max_size=4
    ),
    most=st.integers(1, 12),
)
def test_of_a_load_that_is_too_large_nearly_as_much_is_carried_as_could_be(kinds, most):
    offered = [
        option(f"k{index}", capacity=capacity, cost=cost, room=room)
        for index, (capacity, cost, room) in enumerate(kinds)
    ]
    best = max(
        sum(count * capacity for count, (capacity, _, _) in zip(counts, kinds, strict=True))
        for counts in product(*(range(room + 1) for _, _, room in kinds))
        if sum(counts) <= most
    )
    found = choose(offered, demand(1000, most=most))
    assert (0 if found is None else found.covered) >= (1 - NEAR) * best


@given(
    kinds=st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=3
    ),
    amount=st.integers(1, 25),
)
def test_the_search_finds_what_trying_everything_finds(kinds, amount):
    offered = [
        option(f"k{index}", capacity=capacity, cost=cost, room=room)
        for index, (capacity, cost, room) in enumerate(kinds)
    ]
    best = min(
        (
            sum(count * cost for count, (_, cost, _) in zip(counts, kinds, strict=True))
            for counts in product(*(range(room + 1) for _, _, room in kinds))
            if sum(count * capacity for count, (capacity, _, _) in zip(counts, kinds, strict=True)) >= amount
        ),
        default=None,
    )
    found = choose(offered, demand(amount))
    if best is None:
        assert found is None or found.covered < amount
    else:
        assert found is not None
        assert found.cost == best


def test_a_product_budget_holds_for_a_mix_of_slots_that_have_it():
    offered = [option(name, capacity=1, cost=1, product_name="H100") for name in ("zone-a", "zone-b")]
    found = choose(offered, demand(9, by_product={"H100": Fraction(4)}))
    assert found is not None
    assert found.replicas == 4
