"""The search for the cheapest sets, on options made by hand and against trying everything."""

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.choice.cheapest import Demand, Option, choose
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
    assert summary(choose([cheap, dear], demand(20, devices=Fraction(2)))) == [("cheap", 2)]


def test_what_cannot_be_covered_is_covered_as_far_as_it_goes():
    found = choose(
        [option("a", capacity=1, cost=1, room=2), option("b", capacity=1, cost=2, room=1)], demand(9)
    )
    assert found is not None
    assert (summary(found), found.covered) == ([("a", 2), ("b", 1)], 3)
    assert choose([option("a", capacity=1, cost=1, room=0)], demand(1)) is None


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
