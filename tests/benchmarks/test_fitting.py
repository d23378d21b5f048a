"""The fit finds what made the points, keeps its head where they say nothing, and always ends in the same numbers."""

from __future__ import annotations

import pytest

from fitting import START, Fit, Point, inverse_diagonal, solve
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Load
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.speed.performance import Case, Replica
from plimsoll.planning.speed.rates import Constant, Constants, Dimension, Fitted, Spread, committed, rates_for
from plimsoll.planning.speed.roofline import TimeCost

SETTINGS = EngineSettings(
    max_model_len=9_000, max_num_seqs=1_024, max_num_batched_tokens=8_192, utilization=0.9
)


def cases() -> list[Case]:
    found = []
    for name, gpu in (("Qwen/Qwen3-32B", "H100-SXM-80GB"), ("openai/gpt-oss-120b", "B200-SXM")):
        model = lookup(name)
        assert model is not None
        for tensor in (1, 2, 8):
            replica = Replica.of(
                model=model,
                gpu=gpu_named(gpu),
                layout=Layout(tensor=tensor),
                engine=engine_facts(),
                settings=SETTINGS,
                kv_tokens=None,
            )
            found += [
                replica.case(Load(input_tokens=tokens, output_tokens=500, concurrency=running))
                for tokens in (500, 8_000)
                for running in (1, 8, 64)
            ]
    return found


def wrapped(constants: dict[TimeCost, Constant]) -> Constants:
    return Constants(
        fitted=Fitted(files=(), rows=0, pairs=(), in_sample={}, left_out={}),
        spread=Spread(tpot=1, ttft=1, unfitted_class=1),
        constants=constants,
    )


def points(constants: Constants) -> list[Point]:
    made = []
    for case in cases():
        tpot, ttft = case.times(rates_for(constants, case.classes))
        made.append(Point(case=case, tpot=tpot, ttft=ttft))
    return made


def test_points_made_by_known_constants_are_predicted_again():
    made = points(committed())
    fitted = wrapped(Fit(made).run())
    for point in made:
        tpot, ttft = point.case.times(rates_for(fitted, point.case.classes))
        assert tpot == pytest.approx(point.tpot, rel=0.05)
        assert ttft == pytest.approx(point.ttft, rel=0.2)


def test_one_wild_point_moves_little():
    made = points(committed())
    wild = [*made[1:], Point(case=made[0].case, tpot=20 * made[0].tpot, ttft=made[0].ttft)]
    calm, moved = Fit(made).run(), Fit(wild).run()
    assert moved[TimeCost.DENSE_WEIGHTS].value == pytest.approx(calm[TimeCost.DENSE_WEIGHTS].value, rel=0.1)


def test_what_no_point_contains_keeps_its_start_and_says_how_unsure_it_is():
    fitted = Fit(points(committed())).run()
    assert fitted[TimeCost.UNPACKING].value == pytest.approx(START[TimeCost.UNPACKING])
    assert fitted[TimeCost.UNPACKING].sd_pct == pytest.approx(100)
    assert fitted[TimeCost.DENSE_WEIGHTS].sd_pct < 20


def test_factors_count_the_points_of_their_class():
    fitted = Fit(points(committed())).run()
    assert {name: found.rows for name, found in fitted[TimeCost.LAUNCH].by[Dimension.GPU].items()} == {
        "hopper": 18,
        "blackwell": 18,
    }


def test_the_same_points_give_the_same_constants():
    assert Fit(points(committed())).run() == Fit(points(committed())).run()


def test_normal_equations_are_solved():
    matrix = [[4.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]]
    assert solve(matrix, [8.0, 15.0, 11.0]) == pytest.approx([1.0, 2.0, 3.0])
    assert inverse_diagonal([[4.0, 0.0], [0.0, 2.0]]) == pytest.approx([0.25, 0.5])


def test_the_committed_constants_cover_every_cost():
    assert set(committed().constants) == set(TimeCost)
