"""An edit names what is not there, so that no pod of it finds a node: what serves stays, and in the end the edit is given up by itself."""

from __future__ import annotations

from typing import Any

import pytest

from common import LONG_SECONDS, eventually
from turns.running import Desk

ROLLOUT = {"deadlineSeconds": 60}


@pytest.mark.parametrize(
    ("edit", "waits", "why"),
    [
        ({"storage": {"weights": {"claim": {"name": "nope"}}}}, "StartFailed", 'persistentvolumeclaim "nope" not found'),
        ({"scheduling": {"schedulerName": "nope"}}, "RollingOut", "spec.scheduling.schedulerName"),
    ],
    ids=["claim", "scheduler"],
)  # fmt: skip
def test_an_edit_that_names_what_is_not_there_takes_nothing_down_and_is_given_up(
    desk: Desk, edit: dict[str, Any], waits: str, why: str
) -> None:
    desk.apply(replicas=1, rollout=ROLLOUT)
    assert desk.says("Ready", "True", "Serving")
    (serves,) = desk.pods()
    desk.apply(replicas=1, rollout=ROLLOUT, **edit)
    assert desk.says("Ready", "False", waits)
    assert eventually(lambda: why in desk.message("Ready"))
    assert len(desk.pods()) == 2
    assert desk.get()["status"]["replicaStatus"].get("waitingForGpus", 0) == 0

    assert desk.says("Stalled", "True", "StartFailed", patience=LONG_SECONDS)
    assert why in desk.message("Stalled")
    assert desk.condition("Progressing") == ("False", "RolledBack")
    assert eventually(lambda: uids(desk) == [serves["metadata"]["uid"]]), "the one that served before"

    desk.apply(replicas=1, rollout=ROLLOUT)
    assert desk.says("Ready", "True", "Serving")
    assert uids(desk) == [serves["metadata"]["uid"]]


def uids(desk: Desk) -> list[str]:
    return [one["metadata"]["uid"] for one in desk.pods()]
