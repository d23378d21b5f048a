"""A limit that nobody tells is found from what is answered and what is refused."""

from __future__ import annotations

import math

import pytest

from plimsoll.prometheus.lengths import Limit, packed


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (Limit(), math.inf),
        (Limit().after_answer(900), math.inf),
        (Limit().after_refusal(1000), 500),
        (Limit().after_answer(5000).after_refusal(1000), 500),
        (Limit().after_answer(600).after_refusal(1000), 800),
        (Limit().after_refusal(1000).after_answer(900), 900),
        (Limit().after_refusal(1000).after_refusal(2000), 500),
        (Limit().after_refusal(1000).after_answer(1200), 1800),
    ],
)
def test_questions_grow_towards_what_is_known_to_be_refused_and_stop_near_it(
    limit: Limit, most: float
) -> None:
    assert limit.most == most


@pytest.mark.parametrize(
    ("most", "packs"),
    [(math.inf, ["abcd"]), (7, ["ab", "c", "d"]), (4, ["a", "b", "c", "d"]), (12, ["abc", "d"])],
)
def test_packs_are_full_and_in_order_and_one_that_is_too_long_goes_alone(
    most: float, packs: list[str]
) -> None:
    found = packed({"a": 3, "b": 4, "c": 5, "d": 9}, most)
    assert ["".join(pack) for pack in found] == packs
