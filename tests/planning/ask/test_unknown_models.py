"""What is told of a model that nobody could read, or of its draft."""

from __future__ import annotations

from plimsoll.api.problems import INLINE
from plimsoll.facts.models import lookup
from plimsoll.facts.resolve import ModelUnknown
from plimsoll.planning.planner import PlanFacts, plan
from tests.planning.asking import LLAMA, deployment, finding, inventory, pool


def test_what_is_not_known_of_a_model_is_told_in_the_resolvers_words():
    made = plan(deployment(), inventory(pool()), PlanFacts(model=None, problem="the hub is not reachable"))
    told = finding(made, "ModelUnreadable")
    assert told.message == "the hub is not reachable"
    assert told.remedy


def test_what_a_resolver_says_would_help_is_the_remedy_and_is_said_once():
    unknown = ModelUnknown("hf://a/b", "nobody knows it", ("ask again", "write it down"))
    told = finding(
        plan(deployment(), inventory(pool()), PlanFacts(model=None, problem=str(unknown))), "ModelUnreadable"
    )
    assert told.message == "model hf://a/b: nobody knows it"
    assert told.remedy == "ask again; or write it down"


def test_the_config_of_the_model_is_no_place_for_that_of_its_draft():
    asked = deployment(speculative={"method": "draft", "model": "example/nobody-knows-this"})
    unknown = ModelUnknown(
        "example/nobody-knows-this", "the hub may not be asked", (INLINE, "allow the network")
    )
    known = PlanFacts(model=lookup(LLAMA), problem=str(unknown))
    told = finding(plan(asked, inventory(pool()), known), "ModelUnreadable")
    assert (told.field, told.remedy) == ("speculative.model", "allow the network")
