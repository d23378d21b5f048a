"""The figures that are told with a decision agree with the number that was decided."""

import pytest

from plimsoll.control.decision import Need
from plimsoll.control.need import whole_replicas
from plimsoll.control.situation import Role
from plimsoll.control.telling import figures
from tests.control.situations import serving, signals


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (1.0, "1.0"),
        (1.02, "1.1"),
        (2.04, "2.1"),
        (1.3, "1.3"),
        (0.61, "0.7"),
        (0.0, "0.0"),
        (4.1 + 1e-10, "4.1"),
    ],
)
def test_a_wish_is_told_so_that_the_number_of_replicas_follows_from_it(wanted: float, told: str):
    need = Need(forecast=wanted, lead_s=180.0)
    assert f"wanted are {told} by the load 180 s ahead" in figures(
        Role(sets=(serving(),), signals=signals(2)), need
    )
    assert whole_replicas(float(told)) == whole_replicas(wanted)
