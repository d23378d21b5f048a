"""What a report tells its reader to do: the price beside a constant number, what held the law back, what to declare."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from plimsoll.control.record import Act
from plimsoll.simulate.advice import conclusions
from plimsoll.simulate.causes import Late
from plimsoll.simulate.compare import Result
from plimsoll.simulate.outcome import Figures, Outcome, Point
from plimsoll.simulate.policies.static import Static
from plimsoll.simulate.run import Run
from plimsoll.simulate.scenario import Scenario
from tests.simulate.worlds import SCENARIO, steady, world

DAY_S = 86400.0
PLENTY = replace(SCENARIO, most=4, hardware=replace(SCENARIO.hardware, ready=9, growing=0))
BEFORE = Run(world=world(), arrivals=steady(0.1, 300.0), policy=Static(1), initial=1).outcome()
"""A story whose figures are replaced by those of a case."""


def figures(slo_pct: float | None, gpu_hours: float) -> Figures:
    return replace(
        BEFORE.figures, slo_pct=slo_pct, gpu_hours=gpu_hours, requests=1000, failed=0, unanswered=0
    )


def minute(at: float, told: int, starting: int) -> Late:
    return Late(at=at, told=told, starting=starting)


def result(
    policy: str,
    slo_pct: float | None,
    gpu_hours: float,
    *,
    replicas: float = 0.7,
    late: Sequence[Late] = (),
) -> Result:
    outcome = Outcome(figures=figures(slo_pct, gpu_hours), points=(), served=(), actions=(), late=tuple(late))
    return Result(policy=policy, parameter=replicas, second=0.0, settings={}, outcome=outcome)


def constant(slo_pct: float | None, gpu_hours: float) -> Result:
    return result("static_peak", slo_pct, gpu_hours, replicas=3)


def held_back(scenario: Scenario, ours: Result) -> str:
    """What stands after the answer."""
    _, said = conclusions(scenario, [ours], DAY_S)
    return said


@pytest.mark.parametrize(
    ("ours", "other", "said"),
    [
        (
            (99.5, 48.0),
            (99.1, 96.0),
            "plimsoll keeps slo for 99.50% with 48.0 GPU-hours, 50% fewer than the smallest",
        ),
        ((99.5, 96.0), (99.1, 48.0), "96.0 GPU-hours, 100% more than the smallest"),
        ((99.5, 48.1), (99.1, 48.0), "48.1 GPU-hours, as many as the smallest"),
        ((99.5, 0.02), (99.1, 0.04), "0.02 GPU-hours, 50% fewer"),
        ((99.5, 1.235), (99.1, 0.679), "1.24 GPU-hours, 82% more"),
        (
            (99.5, 48.0),
            (80.0, 96.0),
            "even 3 replicas all the time, the most there may be, 80.00% with 96.0 GPU-hours",
        ),
    ],
)
def test_the_answer_is_what_the_law_takes_beside_the_smallest_constant_number(
    ours: tuple[float | None, float], other: tuple[float | None, float], said: str
):
    three = replace(PLENTY, most=3)
    (answer,) = conclusions(three, [result("plimsoll", *ours), constant(*other)], DAY_S)
    assert said in answer


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (PLENTY, "the smallest constant number that keeps 99%, found in hindsight: 3 replicas, 99.10%"),
        (
            replace(PLENTY, least=3),
            "the smallest constant number within scaling.min that keeps 99%, found in hindsight: 3 replicas, 99.10%",
        ),
        (
            replace(PLENTY, least=3, most=3, fixed=True),
            "as many as the 3 replicas of spec.replicas all the time, 99.10%",
        ),
    ],
    ids=["any number", "scaling.min", "spec.replicas"],
)
def test_the_constant_number_is_told_with_what_left_no_smaller_one(scenario: Scenario, said: str):
    (answer,) = conclusions(scenario, [result("plimsoll", 99.5, 96.0), constant(99.1, 96.0)], DAY_S)
    assert said in answer
    assert ("scaling.min" in answer) is ("scaling.min" in said)


def test_a_constant_number_below_the_most_that_comes_nearest_is_not_called_the_most_there_may_be():
    """Of several sets, where slower replicas beside it only make it worse."""
    few = result("static_peak", 98.0, 48.0, replicas=2)
    (answer,) = conclusions(PLENTY, [result("plimsoll", 98.5, 24.0), few], DAY_S)
    assert "; no constant number keeps 99%, the nearest is 2 replicas, 98.00% with 48.0 GPU-hours" in answer


@pytest.mark.parametrize("beside", [True, False])
def test_without_slo_nothing_is_called_better(beside: bool):
    others = [constant(None, 24.0)] if beside else [result("hpa", None, 24.0)]
    (answer,) = conclusions(PLENTY, [result("plimsoll", None, 48.0), *others], DAY_S)
    assert answer.startswith(
        "plimsoll answers 100.00% with 48.0 GPU-hours and half of the first tokens within 0."
    )
    assert ("3 replicas all the time 100.00% with 24.0 GPU-hours and half" in answer) is beside
    assert answer.endswith(
        "who waited too long is not told, so neither is which is better: declare slo.ttftP99Ms"
    )


OURS = "plimsoll keeps slo for 99.50% with 48.0 GPU-hours"
NOT_PLAYED = "; the smallest constant number that keeps 99% was not played (--policy static_peak)"


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ((), OURS),
        (
            (("hpa", 99.2, 60.0), ("keda", 99.1, 64.0), ("kpa", 80.0, 20.0), ("oracle", 99.9, 40.0)),
            f"{OURS}, 20% fewer than hpa, the cheapest of the others here that keeps 99%: 99.20% with 60.0 GPU-hours",
        ),
        (
            (("kpa", 80.0, 20.0),),
            f"{OURS}; none of the others here keeps 99%",
        ),
    ],
)
def test_without_the_constant_number_the_answer_is_what_can_be_said_and_how_to_have_it(
    others: Sequence[tuple[str, float, float]], said: str
):
    played = [result("plimsoll", 99.5, 48.0), *(result(*one) for one in others)]
    assert list(conclusions(PLENTY, played, DAY_S)) == [said + NOT_PLAYED]


def test_money_is_told_where_a_price_is_known():
    priced = replace(PLENTY, price_per_gpu_hour=2.5)
    (answer,) = conclusions(priced, [result("plimsoll", 99.5, 40.0), constant(99.1, 80.0)], DAY_S, "EUR")
    assert "40.0 GPU-hours, 100.00 EUR" in answer
    assert "80.0 GPU-hours, 200.00 EUR" in answer


def test_what_held_the_law_back_is_told_by_its_share_of_the_time_with_what_may_be_changed():
    late = (minute(300, 4, 2), minute(600, 4, 0), minute(660, 4, 0), minute(900, 2, 0))
    ours = result("plimsoll", 90.0, 48.0, late=late)
    _, said = conclusions(PLENTY, [ours], DAY_S)
    assert "50% with all 4 replicas that there may be: raise scaling.max; the fleet has room for 9" in said
    assert "25% while replicas were starting: a higher scaling.min" in said
    assert "25% with every replica that was asked for ready" in said
    poor = replace(PLENTY, budget_binds=True)
    assert "raise the budget; the fleet has room for 9" in held_back(poor, ours)
    full = replace(PLENTY, hardware=replace(PLENTY.hardware, ready=4))
    assert "the fleet has no room for more" in held_back(full, ours)
    fixed = replace(PLENTY, fixed=True)
    assert "spec.replicas holds their number: raise it" in held_back(fixed, ours)
    kept = result("plimsoll", 99.0, 48.0, late=late)
    assert len(list(conclusions(PLENTY, [kept], DAY_S))) == 1, "the answer alone"


def seen(minutes: int, told: int, begin: int = 0) -> tuple[Point, ...]:
    return tuple(
        replace(
            BEFORE.points[0], at=60.0 * (begin + one), told=told, ready=told, starting=0, arrivals_per_s=1.0
        )
        for one in range(minutes)
    )


@pytest.mark.parametrize(("late_before", "told"), [(10, True), (4, False)])
def test_more_replicas_are_no_cure_alone_where_minutes_with_fewer_of_them_were_late_too(
    late_before: int, told: bool
):
    late = [minute(60.0 * one, 2, 0) for one in range(late_before)]
    late += [minute(60.0 * one, 4, 0) for one in range(10, 20)]
    ours = result("plimsoll", 80.0, 48.0, late=late)
    ours = replace(ours, outcome=replace(ours.outcome, points=(*seen(10, 2), *seen(10, 4, 10))))
    said = held_back(PLENTY, ours)
    assert "raise scaling.max; the fleet has room for 9" in said
    assert ("though minutes with fewer replicas and less to do were late too" in said) == told


@pytest.mark.parametrize(
    ("most", "said"),
    [(4, ""), (5, "; to try them a replica came beside those that may be, so that there were up to 5")],
)
def test_a_replica_that_tries_a_setting_beside_all_that_there_may_be_is_told(most: int, said: str):
    ours = result("plimsoll", 99.5, 48.0)
    act = Act(at=1.0, what="watermark", before="0", after="42", reason="RetuneDone", message="")
    outcome = replace(ours.outcome, figures=replace(ours.outcome.figures, replicas_most=most), acts=(act,))
    _, told = conclusions(PLENTY, [replace(ours, outcome=outcome)], DAY_S)
    assert told == (
        f"of the engines' settings, watermark 0 to 42 was kept{said} (tuning.mode 'off' leaves them as planned)"
    )


def test_where_no_layout_keeps_the_limits_for_a_single_request_no_number_of_replicas_is_said_to():
    hopeless = replace(PLENTY, attainable=False)
    said = held_back(hopeless, result("plimsoll", 0.0, 48.0, late=[minute(300, 4, 0)]))
    assert "100% with all 4 replicas that there may be: raise scaling.max" in said
    assert said.endswith(
        "; whatever their number, no layout on these GPUs keeps all of slo even for a single request, as the plan warns"
    )


def test_one_replica_is_called_one():
    one = replace(PLENTY, most=1)
    ours = result("plimsoll", 90.0, 48.0, late=[minute(300, 1, 0)])
    answer, held = conclusions(one, [ours, result("static_peak", 80.0, 48.0, replicas=1)], DAY_S)
    assert "even 1 replica all the time" in answer
    assert "100% with the one replica that there may be: raise scaling.max" in held


@pytest.mark.parametrize(("span_s", "told"), [(100.0, True), (816.0, True), (3600.0, False)])
def test_a_trace_of_less_than_an_hour_says_little_of_scaling(span_s: float, told: bool):
    said = list(conclusions(PLENTY, [constant(99.5, 1.0)], span_s))
    assert len(said) == told
    assert all(f"the trace lasts {span_s:.0f} s and one start in ten takes longer" in one for one in said)
    assert all(
        "; what is told a day is extrapolated from it; replay hours, better days" in one for one in said
    )


def test_replicas_are_counted_to_the_end_of_the_trace_and_not_of_the_last_scrape():
    outcome = Run(world=world(), arrivals=steady(0.5, 61.0), policy=Static(2), initial=2).outcome()
    assert outcome.figures.replicas_mean == pytest.approx(2.0)
    assert outcome.figures.replicas_most == 2
