"""Every reason that the tables allow is given by some story, and by the code that gives it in a cluster."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plimsoll.api.conditions import REASONS
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.control.decision import Told
from plimsoll.status.said import conditions_of
from plimsoll.status.told import status_after, status_after_failure
from tests.status.every_reason import STORIES
from tests.status.stories import NOW


def said(story: str) -> Mapping[str, Told]:
    return {one.type: one for one in conditions_of(STORIES[story])}


def test_every_reason_of_every_condition_has_a_story() -> None:
    given = {(one.type, one.reason) for story in STORIES.values() for one in conditions_of(story)}
    given |= {
        (one.type, one.reason)
        for one in status_after_failure(KeyError(), LLMDeploymentStatus(), 1, NOW).conditions
    }
    assert given == {(kind, reason) for kind, reasons in REASONS.items() for reason in reasons}


@pytest.mark.parametrize("story", STORIES)
def test_every_story_can_be_told_with_a_sentence_for_each_condition(story: str) -> None:
    status = status_after(STORIES[story], LLMDeploymentStatus(), NOW)
    assert all(one.message.strip() for one in status.conditions)
    assert status_after(STORIES[story], status, NOW) == status


@pytest.mark.parametrize("story", STORIES)
def test_what_does_not_serve_either_moves_or_stands_until_a_person_acts_or_is_not_wanted_to(
    story: str,
) -> None:
    found = said(story)
    why = {kind for kind in ("Reconciling", "Stalled") if kind in found}
    if found["Ready"].status == "True":
        assert "Stalled" not in why or found["Stalled"].reason == "NameConflict"
    elif found["Ready"].reason not in ("Paused", "Stopped"):
        assert len(why) == 1, found["Ready"]


def test_a_plan_that_found_no_gpus_at_all_waits_for_them_and_nothing_loads() -> None:
    ready = said("GPUs are held by others")["Ready"]
    assert (ready.status, ready.reason) == ("False", "WaitingForGPUs")
    assert "held by b/other" in ready.message
    assert "loads the model" not in ready.message
