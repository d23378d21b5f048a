"""Predicted against measured, and starts on their way, as status tells them."""

from __future__ import annotations

import json
from dataclasses import replace

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus, Progress
from plimsoll.facts.failure import Failure
from plimsoll.facts.report import Fetching, Report, read_report
from plimsoll.facts.serving import Stage
from plimsoll.status.story import Story
from plimsoll.status.told import status_after
from plimsoll_runtime.fetching import Progress as Fetched
from tests.status.stories import NOW, pod, story

BEFORE = LLMDeploymentStatus()


def telling(*pods, **reports: Report) -> Story:
    made = story(*pods)
    assert made.plan is not None
    return replace(made, entries={"chat-aaaa": made.plan.sets[0]}, reports=reports)


def predicted(made: Story) -> int:
    assert made.plan is not None
    capacity = made.plan.sets[0].ledger.capacity
    assert capacity is not None
    return int(capacity.tokens.mid)


def test_the_smallest_cache_is_held_against_what_was_predicted():
    made = telling(pod(), pod(number=1))
    tokens = predicted(made)
    made = replace(
        made,
        reports={
            "0": Report(state="serving", kv_tokens=tokens),
            "1": Report(state="serving", kv_tokens=round(tokens / 1.1)),
        },
    )
    status = status_after(made, BEFORE, NOW)
    assert status.accuracy is not None
    assert (status.accuracy.kv_tokens_predicted, status.accuracy.error_percent) == (tokens, "10.0")
    fits = get_condition(status.conditions, names.FITS)
    assert fits is not None
    assert (fits.status, fits.reason) == ("True", "Measured")
    assert "(10.0%)" in fits.message


def test_a_cache_that_is_told_in_blocks_alone_counts_as_well():
    made = telling(pod())
    assert made.plan is not None
    capacity = made.plan.sets[0].ledger.capacity
    assert capacity is not None
    blocks = Report(state="serving", blocks=int(capacity.blocks.mid), block_size=capacity.block_size)
    status = status_after(replace(made, reports={"0": blocks}), BEFORE, NOW)
    assert status.accuracy is not None
    assert status.accuracy.error_percent == "0.0"


def test_an_engine_that_tells_nothing_of_its_cache_is_not_said_to_have_none():
    status = status_after(telling(pod(), **{"0": Report(state="serving")}), BEFORE, NOW)
    assert status.accuracy is None


def test_what_was_measured_stays_told_while_its_plan_does():
    made = telling(pod())
    first = status_after(
        replace(made, reports={"0": Report(state="serving", kv_tokens=predicted(made))}), BEFORE, NOW
    )
    silent = status_after(made, first, NOW)
    assert silent.accuracy == first.accuracy
    assert first.plan is not None
    other = first.model_copy(update={"plan": first.plan.model_copy(update={"digest": "other"})})
    assert status_after(made, other, NOW).accuracy is None


def test_the_start_that_is_furthest_from_its_end_is_told():
    loading = (pod(Stage.LOADING), pod(Stage.LOADING, number=1))
    made = telling(
        *loading,
        **{
            "0": Report(state="starting", phase="compile"),
            "1": Report(state="fetching", phase="download", fetching=Fetching(done=30, total=90, rate=20)),
        },
    )
    status = status_after(made, BEFORE, NOW)
    assert status.progress == Progress(
        step="download", bytes_done=30, bytes_total=90, bytes_per_second=20, seconds_left=3
    )
    assert status_after(telling(pod()), status, NOW).progress is None


RETRIED = (
    "chat-old failed to start (NoKvRoom); since then spec.engine.maxSequences counts as 32 instead of 64"
)


def test_a_smaller_setting_since_a_failed_start_is_told_while_it_serves_and_when_it_fails_too():
    serves = status_after(replace(story(pod()), safe_retry=RETRIED), BEFORE, NOW)
    degraded = get_condition(serves.conditions, names.DEGRADED)
    assert degraded is not None
    assert (degraded.status, degraded.reason, degraded.message) == ("True", "SafeRetry", RETRIED)
    assert serves.safe_retry is True
    no_room = Failure("NoKvRoom", "no room", "fewer sequences")
    dying = story(pod(Stage.FAILED, reason="Error", restarts=4, failure=no_room))
    stalled = get_condition(
        status_after(replace(dying, safe_retry=RETRIED), serves, NOW).conditions, names.STALLED
    )
    assert stalled is not None
    assert stalled.reason == "NoKvRoom"
    assert RETRIED in stalled.message
    assert status_after(story(pod()), serves, NOW).safe_retry is None


def test_what_a_supervisor_says_of_a_download_is_told_whole_in_status_and_condition():
    said = Fetched(11 * 2**37, 12 * 2**37, 1400 << 20).text()
    report = read_report(json.dumps({"schema": 1, "state": "fetching", "phase": said}).encode())
    status = status_after(telling(pod(Stage.LOADING), **{"0": report}), BEFORE, NOW)
    assert status.progress is not None
    assert status.progress.step == said
    progressing = next(one for one in status.conditions if one.type == "Progressing")
    assert progressing.message.endswith(f"; a replica starts: {said}")
