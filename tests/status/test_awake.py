"""Why one that serves and may sleep does not is told with that it serves."""

from __future__ import annotations

from dataclasses import replace

from plimsoll import names
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.status.said import conditions_of
from plimsoll.status.story import Story
from plimsoll.status.told import status_after
from tests.status.stories import NOW, pod, story

ONCE = "it sleeps once nobody has asked for 15 minutes"


def ready_of(told: Story) -> str:
    return next(one.message for one in conditions_of(told) if one.type == names.READY)


def test_one_that_serves_and_may_sleep_is_told_why_it_does_not() -> None:
    told = ready_of(story(pod(), live=(), awake=ONCE))
    assert told == f"1 of 1 replicas serve; why it does not sleep: {ONCE}"
    assert ready_of(story(pod(), live=())) == "1 of 1 replicas serve"


def test_what_keeps_one_awake_stands_until_control_has_looked() -> None:
    """A program that begins would else write it out of every status and in again."""
    before = status_after(story(pod(), live=(), awake=ONCE), LLMDeploymentStatus(), NOW)
    again = story(pod())
    again = replace(again, deployment=again.deployment.model_copy(update={"status": before}))
    assert ready_of(again).endswith(ONCE)
    assert ready_of(replace(again, live=())) == "1 of 1 replicas serve"


def test_one_that_would_never_sleep_is_told_why_though_it_was_asked_to() -> None:
    spec = {"replicas": 1, "scaling": {"zero": {"wake": {"annotation": True}}}}
    assert ready_of(story(pod(), spec=spec)).endswith("scaling.zero has no effect: spec.replicas holds 1")
