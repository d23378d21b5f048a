"""Pods that are gone, or should be: ended by their nodes as a whole, or deleted on a node that does not answer."""

from __future__ import annotations

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import Object, look, overdue, serving_pod

LATELY, HOURS_AGO = "2027-01-15T07:50:00Z", "2027-01-15T04:00:00Z"


def ended_by_node(reason: str, ended: str) -> Object:
    ready = {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": ended}
    return serving_pod(
        "chat-1a2b3c4d-old", phase="Failed", reason=reason, message="low on memory", conditions=[ready]
    )


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        ((serving_pod(), ended_by_node("Evicted", LATELY)), [("warning", "Evicted")]),
        ((serving_pod(), ended_by_node("UnexpectedAdmissionError", LATELY)), [("warning", "EndedByNode")]),
        ((serving_pod(), ended_by_node("Evicted", HOURS_AGO)), []),
        # Each that is made in its place may end in the same way.
        ((ended_by_node("UnexpectedAdmissionError", LATELY),), [("error", "EndedByNode")]),
    ],
)
def test_a_pod_that_its_node_ended_is_told_for_an_hour_and_no_error_where_another_serves(
    pods: tuple[Object, ...], told: list[tuple[str, str]]
) -> None:
    assert [(one.severity, one.reason) for one in diagnose(look(pods=pods)).found] == told


def test_a_pod_that_does_not_go_is_no_error_where_another_serves() -> None:
    other = serving_pod("chat-1a2b3c4d-y")
    assert [(one.severity, one.reason) for one in diagnose(look(pods=(overdue(), other))).found] == [
        ("warning", "StuckLeaving")
    ]


def test_a_pod_that_is_given_time_to_end_is_not_spoken_of() -> None:
    leaves = overdue()
    leaves["metadata"]["deletionTimestamp"] = "2027-01-15T08:01:00Z"
    assert diagnose(look(pods=(leaves,))).found == ()
