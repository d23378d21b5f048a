from statistics import fmean

import pytest

from plimsoll.simulate.interference import NONE, Interference, Standstills


def test_a_machine_with_nothing_else_to_do_never_stands_still():
    assert Standstills(NONE).during(1e6) == 0.0


@pytest.mark.parametrize("step_s", [0.001, 0.3])
def test_so_much_time_is_lost_for_each_second_of_work_however_long_the_steps_are(step_s: float):
    stops = Standstills(Interference(rate=3.0, length_s=0.02))
    stood = fmean(stops.during(step_s) for _ in range(int(3000 / step_s))) / step_s
    assert stood == pytest.approx(0.06, rel=0.1)


def test_a_long_step_meets_more_of_it_than_a_short_one():
    interference = Interference(rate=3.0, length_s=0.02)
    short, long = (
        fmean(stops.during(step_s) > 0 for _ in range(2000))
        for stops, step_s in ((Standstills(interference), 0.005), (Standstills(interference), 0.05))
    )
    assert short == pytest.approx(0.015, abs=0.01)
    assert long == pytest.approx(0.14, abs=0.03)


def test_the_same_moments_come_every_time():
    first, second = (Standstills(Interference(rate=5.0, length_s=0.01)) for _ in range(2))
    assert [first.during(0.1) for _ in range(100)] == [second.during(0.1) for _ in range(100)]
