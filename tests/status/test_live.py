"""What control keeps, as status tells it: bounded, newest first, and without what is over."""

from __future__ import annotations

from dataclasses import replace

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.api.v1alpha1.workload import TokenPercentiles, Workload
from plimsoll.control.decision import Told
from plimsoll.control.record import EMPTY, Act, Record
from plimsoll.control.retune import Past, Phase, RetuneMemory, Step
from plimsoll.control.retune.figures import Figures
from plimsoll.control.workload import Lengths, Observed
from plimsoll.status.live import live_status, retuning
from plimsoll.status.told import news, status_after
from tests.status.stories import story

NOW = "2026-11-21T10:00:00Z"
STEP = Step(
    id="watermark-1", set="d", setting="watermark", before="0", after="31", symptom="preemptions", why="30% are preempted",
    phase=Phase.JUDGING, began=1_800_000_000.0, since=1.0, deadline=1_800_000_600.0, replicas=2, surge=True, spec="s",
    baseline=Figures(), said="no gain",
)  # fmt: skip


def scaled(number: int) -> Act:
    return Act(
        at=1_800_000_000.0 + number,
        what="scale",
        before=str(number),
        after=str(number + 1),
        reason="LoadRose",
        message="m",
    )


def test_the_last_five_changes_of_replicas_are_told_newest_first() -> None:
    record = Record(replicas=9)
    for number in range(8):
        record = record.with_act(scaled(number))
    found = live_status(record)
    assert [one.after for one in found["scaling_history"]] == [8, 7, 6, 5, 4]
    assert found["last_scale_time"] == "2027-01-15T08:00:07Z"


def test_a_retune_stands_in_status_while_it_lasts_and_in_its_history_after() -> None:
    going = replace(EMPTY, retune=RetuneMemory(step=STEP))
    during = status_after(replace(story(), control=going), LLMDeploymentStatus(), NOW)
    assert during.tuning is not None
    assert (during.tuning.state, during.tuning.reason) == ("Judging", "30% are preempted; no gain")
    past = Past(
        id=STEP.id, setting="watermark", before="0", after="31", symptom="preemptions", outcome=Phase.FAILED,
        began=STEP.began, ended=STEP.began + 60, reason="no gain",
    )  # fmt: skip
    over = status_after(
        replace(story(), control=replace(EMPTY, retune=RetuneMemory(past=(past,)))), during, NOW
    )
    assert over.tuning is None
    assert [one.state for one in over.tuning_history] == ["Failed"]
    said = [get_condition(status.conditions, names.RETUNING) for status in (during, over)]
    assert [(one.status, one.reason, one.message) for one in said if one is not None] == [
        ("True", "Judging", "watermark 0 to 31: 30% are preempted"),
        ("False", "RolledBack", "watermark 0 to 31: no gain"),
    ]


def test_a_retune_that_stays_is_over_also_while_it_is_taken_into_the_plan() -> None:
    past = Past(
        id=STEP.id, setting="watermark", before="0", after="31", symptom="preemptions", outcome=Phase.DONE,
        began=1.0, ended=2.0, reason="fewer are preempted",
    )  # fmt: skip
    said = retuning(RetuneMemory(step=replace(STEP, phase=Phase.DONE), past=(past,)))
    assert said is not None
    assert (said.status, said.reason) == ("False", "Done")


def test_nothing_is_said_of_retunes_where_none_was_tried() -> None:
    assert retuning(RetuneMemory()) is None


def test_a_dry_run_is_told_as_one() -> None:
    wish = Past(
        id="maxSequences-1", setting="maxSequences", before="64", after="30", symptom="preemptions",
        outcome=Phase.PLANNED, began=1.0, ended=1.0, reason="why", tried=False,
    )  # fmt: skip
    found = live_status(replace(EMPTY, retune=RetuneMemory(suggested=wish)))
    assert [one.state for one in found["tuning_history"]] == ["DryRun"]


def test_what_a_dry_run_said_and_was_then_tried_is_told_once_as_what_became_of_it() -> None:
    wish = Past(
        id="maxSequences-1", setting="maxSequences", before="32", after="8", symptom="preemptions",
        outcome=Phase.PLANNED, began=1, ended=1, reason="a wish", tried=False,
    )  # fmt: skip
    tried = replace(wish, outcome=Phase.FAILED, reason="no gain", tried=True)
    found = live_status(replace(EMPTY, retune=RetuneMemory(suggested=wish, past=(tried,))))
    assert [(one.id, one.state) for one in found["tuning_history"]] == [("maxSequences-1", "Failed")]
    LLMDeploymentStatus(**found)


def test_traffic_is_told_once_something_was_seen() -> None:
    assert "observed" not in live_status(EMPTY)
    seen = Observed(since=1_800_000_000.0, at=1.0, prompt=Lengths(p50=10, p95=20, p99=30), requests=5.0)
    found = live_status(replace(EMPTY, observed=seen))["observed"]
    assert (found.input_tokens.p99, found.since) == (30, "2027-01-15T08:00:00Z")


def test_what_is_declared_stands_beside_it_in_the_same_fields() -> None:
    seen = replace(EMPTY, observed=Observed(since=1_800_000_000.0, at=1.0, peak_rate=9.0, requests=5.0))
    declared = Workload(
        preset="chat",
        context_tokens=8192,
        input_tokens=TokenPercentiles(p50=100, p95=900),
        requests_per_second="12.5",
    )
    found = status_after(replace(story(), control=seen, declared=declared), LLMDeploymentStatus(), NOW)
    assert found.observed is not None
    assert found.observed.to_dict()["declared"] == {
        "inputTokens": {"p50": 100, "p95": 900},
        "requestsPerSecond": "12.5",
    }
    assert "declared" not in live_status(seen, Workload())["observed"].to_dict()


def metrics(status: str, reason: str) -> tuple[Told, ...]:
    return (Told(type=names.METRICS, status=status, reason=reason, message="m"),)  # type: ignore[arg-type]


def test_conditions_of_live_traffic_stay_until_control_has_looked_and_go_when_it_says_nothing() -> None:
    first = status_after(replace(story(), live=metrics("False", "Missing")), LLMDeploymentStatus(), NOW)
    kinds = {one.type: one.reason for one in first.conditions}
    assert kinds[names.METRICS] == "Missing"
    restarted = status_after(replace(story(), live=None), first, NOW)
    assert {one.type: one.reason for one in restarted.conditions} == kinds
    silent = status_after(replace(story(), live=()), first, NOW)
    assert names.METRICS not in {one.type for one in silent.conditions}


def test_metrics_that_go_are_an_event_and_those_that_are_there_from_the_start_are_none() -> None:
    fresh = status_after(replace(story(), live=metrics("True", "Fresh")), LLMDeploymentStatus(), NOW)
    assert names.METRICS not in {one.about for one in news((), fresh.conditions)}
    gone = status_after(replace(story(), live=metrics("False", "PrometheusUnreachable")), fresh, NOW)
    (found,) = [one for one in news(fresh.conditions, gone.conditions) if one.about == names.METRICS]
    assert (found.type, found.reason) == ("Warning", "PrometheusUnreachable")
