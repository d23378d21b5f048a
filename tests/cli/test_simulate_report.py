"""How the figures of a simulation are written, so that nobody reads another number."""

import pytest

from plimsoll.cli.simulate_report import LISTED, in_one_cell, whole_list
from plimsoll.simulate.compare import percent


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (100.0, "100.00"),
        (99.9973, "99.99"),
        (98.9996, "98.99"),
        (99.0, "99.00"),
        (99.97, "99.97"),
        (0.0, "0.00"),
    ],
)
def test_a_share_is_never_said_to_be_more_than_it_is(value: float, said: str):
    assert percent(value) == said


def test_numbers_beside_one_another_have_no_commas_of_their_own():
    assert in_one_cell("57", "85,175") == "57, 85175"


def test_a_page_is_not_said_to_list_more_than_it_does():
    assert whole_list(LISTED) == "-o json and --html have them all"
    assert whole_list(LISTED + 1) == "-o json has them all"
