"""How long control waits between two looks, where somebody asks for the next one and where nobody does."""

import pytest

from plimsoll.reconcile.loop.controlling import pauses


@pytest.mark.parametrize(
    ("took", "asked", "unasked"),
    [
        (0.0, 3.0, 15.0),
        (0.5, 3.0, 14.5),
        (1.5, 6.0, 13.5),  # else looks that alerts ask for would take a third of all time
        (4.0, 11.0, 11.0),
        (14.0, 3.0, 3.0),
        (60.0, 3.0, 3.0),
    ],
)
def test_the_longer_a_look_takes_the_longer_the_next_one_waits_that_is_asked_for(
    took: float, asked: float, unasked: float
) -> None:
    assert pauses(took, 15.0) == pytest.approx((asked, unasked))
