"""A condition that comes and goes from tick to tick reaches the status once it has lasted."""

from __future__ import annotations

from plimsoll import names
from plimsoll.control.decision import Told
from plimsoll.control.law import Law
from plimsoll.reconcile.loop.patience import LIMITED_S, MISSED_S, MISSES_S, MISSING_S, UNANSWERED_S, Patience

LAW = Law(tick_s=15.0)
MISSING = Told(names.METRICS, "False", "Missing", "2 of 4 ready replicas have metrics of the last minute")
FRESH = Told(names.METRICS, "True", "Fresh", "all ready replicas have fresh metrics")
LIMITED = Told(names.SCALING, "True", "AtMax", "9 replicas are wanted, 4 can be had")


def told(
    patience: Patience, *found: Told, last: tuple[Told, ...] = (), now: float, same: bool = True
) -> set[str]:
    after = patience.told(found, last, now=now, law=LAW, same_number=same)
    return {one.reason for one in after}


def test_metrics_that_are_missing_for_a_moment_leave_what_was_told_before():
    patience = Patience()
    assert told(patience, MISSING, last=(FRESH,), now=100.0) == {"Fresh"}
    assert told(patience, MISSING, last=(FRESH,), now=99.0 + MISSING_S) == {"Fresh"}
    assert told(patience, MISSING, last=(FRESH,), now=100.0 + MISSING_S) == {"Missing"}


def test_metrics_that_come_back_begin_the_wait_anew():
    patience = Patience()
    told(patience, MISSING, last=(FRESH,), now=100.0)
    assert told(patience, FRESH, last=(FRESH,), now=130.0) == {"Fresh"}
    assert told(patience, MISSING, last=(FRESH,), now=100.0 + MISSING_S) == {"Fresh"}


UNREACHABLE = Told(names.METRICS, "False", "PrometheusUnreachable", "the source of metrics does not answer")
UNANSWERED = Told(names.METRICS, "False", "QueryUnanswered", "spec.scaling.zero.wake.query finds nothing")


def test_a_moment_without_prometheus_changes_nothing_where_a_query_has_long_found_nothing():
    patience = Patience()
    told(patience, UNANSWERED, now=100.0)
    assert told(patience, UNANSWERED, now=100.0 + UNANSWERED_S) == {"QueryUnanswered"}
    assert told(patience, UNREACHABLE, last=(UNANSWERED,), now=500.0) == {"QueryUnanswered"}
    assert told(patience, UNANSWERED, last=(UNANSWERED,), now=515.0) == {"QueryUnanswered"}
    assert told(patience, UNREACHABLE, last=(UNANSWERED,), now=530.0) == {"QueryUnanswered"}
    assert told(patience, UNREACHABLE, last=(UNANSWERED,), now=590.0) == {"PrometheusUnreachable"}


FAILED = Told(names.METRICS, "False", "QueryFailed", "spec.scaling.zero.wake.query has no answer")


def test_a_query_that_now_finds_nothing_and_now_fails_is_told_as_one_of_both():
    patience, last = Patience(), (FRESH,)
    seen = set()
    for tick in range(80):
        found = UNANSWERED if tick % 3 else FAILED
        (reason,) = told(patience, found, last=last, now=100.0 + 15 * tick)
        last = (Told(names.METRICS, "True" if reason == "Fresh" else "False", reason, ""),)
        seen.add(reason)
    assert seen == {"Fresh", "QueryUnanswered"}


def test_a_query_on_which_prometheus_fails_for_minutes_is_told_and_one_that_finds_nothing_then_has_its_time():
    patience = Patience()
    assert told(patience, FAILED, last=(FRESH,), now=100.0) == {"Fresh"}
    assert told(patience, FAILED, last=(FRESH,), now=100.0 + UNANSWERED_S) == {"QueryFailed"}
    assert told(patience, UNANSWERED, last=(FAILED,), now=500.0) == {"Fresh"}
    assert told(patience, FAILED, last=(UNREACHABLE,), now=515.0) == {"Fresh"}


def test_a_program_that_begins_goes_on_telling_of_a_query_that_still_finds_nothing():
    assert told(Patience(), UNANSWERED, last=(UNANSWERED,), now=100.0) == {"QueryUnanswered"}


def test_a_query_is_given_its_time_after_an_outage():
    patience = Patience()
    told(patience, UNREACHABLE, now=100.0)
    assert told(patience, UNREACHABLE, now=1000.0) == {"PrometheusUnreachable"}
    assert told(patience, UNANSWERED, last=(UNREACHABLE,), now=1015.0) == {"Fresh"}
    assert told(patience, FRESH, last=(FRESH,), now=1030.0) == {"Fresh"}
    assert told(patience, UNANSWERED, last=(FRESH,), now=1045.0) == {"Fresh"}


def test_a_clock_that_is_put_back_does_not_make_the_wait_longer():
    patience = Patience()
    told(patience, MISSING, last=(FRESH,), now=10_000.0)
    told(patience, MISSING, last=(FRESH,), now=100.0)
    assert told(patience, MISSING, last=(FRESH,), now=100.0 + MISSING_S) == {"Missing"}


def test_a_limit_that_has_just_gone_is_still_told_while_the_number_of_replicas_stays():
    patience = Patience()
    assert told(patience, LIMITED, now=100.0) == {"AtMax"}
    assert told(patience, last=(LIMITED,), now=115.0) == {"AtMax"}
    assert told(patience, last=(LIMITED,), now=115.0, same=False) == set()
    assert told(patience, last=(LIMITED,), now=100.0 + LIMITED_S) == set()


MISSED = Told(names.SLO, "False", "Unattainable", "p99 latency is at 104% of its limit")
ATTAINED = Told(names.SLO, "True", "Attainable", "the prediction is within spec.slo")


def test_a_minute_in_which_answers_were_late_is_not_told_as_more_than_the_plan_can_do():
    patience = Patience()
    assert told(patience, MISSED, now=100.0) == set()
    assert told(patience, MISSED, now=99.0 + MISSED_S) == set()
    assert told(patience, now=115.0 + MISSED_S) == set()
    assert told(patience, MISSED, now=100.0 + MISSED_S + MISSES_S) == set(), "later it begins anew"


def test_latencies_that_waver_about_their_limit_are_told_of_once():
    patience, said = Patience(), list[set[str]]()
    last: tuple[Told, ...] = (ATTAINED,)
    for tick in range(240):
        found = (MISSED,) if tick % 10 < 3 else ()
        after = patience.told(found, last, now=15.0 * tick, law=LAW, same_number=True)
        last = after
        said.append({one.reason for one in after})
    begun = said.index({"Unattainable"})
    assert begun * 15.0 == MISSED_S
    assert all(each == {"Unattainable"} for each in said[begun:])
    assert not any(said[:begun])


def test_latencies_that_are_kept_again_are_told_of_for_a_while_and_then_no_more():
    patience = Patience()
    told(patience, MISSED, now=100.0)
    told(patience, MISSED, now=100.0 + MISSED_S)
    assert told(patience, last=(MISSED,), now=99.0 + MISSED_S + MISSES_S) == {"Unattainable"}
    assert told(patience, last=(MISSED,), now=100.0 + MISSED_S + MISSES_S) == set()


def test_latencies_of_another_number_of_replicas_or_another_spec_are_to_be_seen_anew():
    for another in ("number", "spec"):
        patience = Patience()
        told(patience, MISSED, now=100.0)
        assert told(patience, MISSED, now=100.0 + MISSED_S) == {"Unattainable"}
        if another == "spec":
            patience.asked_anew()
        last, now = (MISSED,), 115.0 + MISSED_S
        assert told(patience, last=last, now=now, same=another == "spec") == set()
        assert told(patience, MISSED, now=now + 15.0) == set()


def test_gaps_that_no_number_of_replicas_would_shorten_are_told_of_however_often_the_number_changes():
    patience = Patience()
    for tick in range(21):
        found = told(patience, MISSED, now=15.0 * tick, same=tick % 2 == 0)
    assert found == {"Unattainable"}


def test_what_the_status_says_already_is_told_at_once_by_an_operator_that_has_just_begun():
    assert told(Patience(), MISSED, last=(MISSED,), now=100.0) == {"Unattainable"}
    assert told(Patience(), MISSED, last=(ATTAINED,), now=100.0) == set()
