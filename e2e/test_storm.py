"""Stories of random users, nodes and outages; `benchmarks/storms.py` plays as many as one has time for."""

from __future__ import annotations

import pytest

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from storm.steps import Story, draw


@pytest.mark.parametrize("seed", range(20))
def test_a_story_is_the_same_whenever_it_is_drawn_and_can_be_played_as_it_was_printed(seed: int) -> None:
    story = draw(seed)
    assert Story.read(story.text()) == story == draw(seed)


@pytest.mark.parametrize("seed", range(20))
def test_what_users_write_in_it_is_valid_by_the_schema(seed: int) -> None:
    for step in (step for burst in draw(seed).bursts for step in burst):
        if step.act == "apply":
            LLMDeploymentSpec.model_validate(step.value)
        elif step.act == "remake":
            LLMDeploymentSpec.model_validate(step.value["spec"])
