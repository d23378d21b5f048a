"""Serving sets in the status: no more of them than it takes, and first those that matter."""

from __future__ import annotations

import pytest

from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.control.rollout import Rollout, Target
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.status.story import Story
from plimsoll.status.told import status_after
from tests.status.stories import NOW, asked


def told(*targets: Target, ready: str = "") -> list[str]:
    pods = (PodSeen(name="p", uid="p", stage=Stage.READY),)
    serving = Serving(sets=(SetSeen(name=ready, replicas=0, pods=pods),) if ready else ())
    rollout = Rollout(targets=targets, reason="RollingOut", message="")
    story = Story(deployment=asked(), plan=None, rollout=rollout, serving=serving)
    return [one.name for one in status_after(story, LLMDeploymentStatus(), NOW).sets]


SPENT = tuple(Target(name=f"chat-{number:02}", replicas=0, state="Draining") for number in range(40))


def test_as_many_as_it_takes_are_told_by_name() -> None:
    assert told(*reversed(SPENT[:32])) == [one.name for one in SPENT[:32]]


@pytest.mark.parametrize(
    ("last", "ready"),
    [
        (Target(name="zz", replicas=0, state="Failed", planned=True), ""),
        (Target(name="zz", replicas=1, state="Starting"), ""),
        (Target(name="zz", replicas=0, state="Failed"), ""),
        (Target(name="zz", replicas=0, state="Draining"), "zz"),
    ],
    ids=["the plan asks for it", "it has replicas", "it failed", "it still serves"],
)
def test_of_more_those_that_matter_are_told(last: Target, ready: str) -> None:
    found = told(*SPENT, last, ready=ready)
    assert found == [*(one.name for one in SPENT[:31]), "zz"]
