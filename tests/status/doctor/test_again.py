"""What the doctor says of an engine that ended and serves again: the count of its restarts never goes back."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from tests.status.doctor.shown import Object, look, serving_pod

RECENTLY, LONG_AGO = "2027-01-15T07:30:00Z", "2027-01-15T06:30:00Z"


def came_back(since: str = RECENTLY, reason: str = "Error", code: int = 1, ready: str = "True") -> Object:
    ended = {"terminated": {"reason": reason, "exitCode": code, "finishedAt": LONG_AGO}}
    engine: Object = {"name": "engine", "ready": ready == "True", "state": {"running": {}}}
    return serving_pod(
        phase="Running",
        conditions=[{"type": "Ready", "status": ready, "lastTransitionTime": since}],
        containerStatuses=[engine | {"restartCount": 1, "lastState": ended}],
    )


@pytest.mark.parametrize(
    ("how", "severity"),
    [
        ({}, "warning"),
        ({"ready": "False"}, "error"),
        ({"since": LONG_AGO}, None),
        ({"reason": "Unknown", "code": 255}, None),
        ({"reason": "Unknown", "code": 255, "ready": "False"}, None),
    ],
    ids=["it serves", "it does not serve", "it serves for long", "its node began anew", "its node began anew and it loads"],
)  # fmt: skip
def test_an_engine_that_ended_is_an_error_only_while_nothing_serves_in_its_place(
    how: dict[str, Any], severity: str | None
) -> None:
    found = diagnose(look(pods=(came_back(**how),))).found
    assert [one.severity for one in found] == ([severity] if severity else [])
