"""When a difference is taken for chance: the odds against a count of all draws, and how they go with each number."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from random import Random

import pytest

from plimsoll.control.retune.chance import CHANCE, RARE, Share, odds, rare


def counted(bad: int, of: int, others: int, of_others: int) -> Fraction:
    """The same odds, of all draws that there are."""
    together = bad + others
    draws = sum(
        comb(of, many) * comb(of_others, together - many) for many in range(bad, min(of, together) + 1)
    )
    return Fraction(draws, comb(of + of_others, together))


def drawn(random: Random) -> tuple[int, int, int, int]:
    of, of_others = random.choice((1, 7, 40, 200, 3000)), random.choice((0, 1, 12, 200, 5000))
    most = random.choice((6, 60, 3000))
    return random.randint(0, min(of, most)), of, random.randint(0, min(of_others, most)), of_others


@pytest.mark.parametrize("seed", range(100))
def test_the_odds_are_those_of_all_draws_counted(seed):
    bad, of, others, of_others = drawn(Random(seed))
    exact = float(counted(bad, of, others, of_others))
    assert odds(Share(bad, of), Share(others, of_others)) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("seed", range(200))
def test_the_more_go_badly_the_smaller_the_odds_and_the_more_of_the_others_do_the_larger(seed):
    bad, of, others, of_others = drawn(Random(seed))
    mine, theirs = Share(bad, of), Share(others, of_others)
    now, same = odds(mine, theirs), 1 + 1e-9
    if bad < of:
        assert odds(Share(bad + 1, of), theirs) <= now * same, "one that went well went badly"
    assert odds(Share(bad + 1, of + 1), theirs) <= now * same, "one more came, and went badly"
    assert 0.0 <= now <= 1.0
    assert now <= odds(Share(bad, of + 1), theirs) * same, "one more came, and went well"
    if others < of_others:
        assert now <= odds(mine, Share(others + 1, of_others)) * same, "one of the others' went badly"
    assert odds(mine, theirs) == now, "of the same numbers the odds are the same"


@pytest.mark.parametrize(("mine", "theirs"), [
    (Share(0, 0), Share(0, 0)),
    (Share(0, 40), Share(3, 40)),
    (Share(1, 1), Share(0, 600)),
    (Share(40, 40), Share(0, 0)),  # nothing is known of the others
    (Share(1, 40), Share(0, 80)),
    (Share(20, 1000), Share(20, 1000)),
    (Share(10, 1e6), Share(1e5, 1e6)),  # far fewer
    (Share(0, 5000), Share(5000, 5000)),
    (Share(5000, 5000), Share(5000, 5000)),
])  # fmt: skip
def test_what_chance_gives_is_not_rare(mine, theirs):
    assert not rare(mine, theirs)


def test_the_level_is_the_one_of_shares_that_are_told_by_their_deviations():
    assert pytest.approx(0.00135, rel=1e-3) == RARE
    for of in (100_000, 1_000_000):
        apart = CHANCE * (2 * 0.1 * 0.9 * of) ** 0.5
        assert not rare(Share(0.1 * of + 0.95 * apart, of), Share(0.1 * of, of))
        assert rare(Share(0.1 * of + 1.05 * apart, of), Share(0.1 * of, of))


def test_of_large_numbers_the_odds_are_told_at_once():
    assert odds(Share(5e6, 1e8), Share(5e6, 1e8)) == pytest.approx(0.5, abs=0.01)
    assert odds(Share(6e6, 1e8), Share(5e6, 1e8)) == 0.0
