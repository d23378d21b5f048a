"""A draft model beside the model that it guesses for: the engine starts only with one vocabulary, and cuts both over the same ranks."""

import pytest

from plimsoll.facts.models import lookup
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import PlanFacts, plan
from tests.planning.asking import deployment, finding, inventory, pool

LARGE = "Qwen/Qwen2.5-72B-Instruct"
LESS_WIDE = "Qwen/Qwen2.5-3B-Instruct"
DRAFT = "Qwen/Qwen2.5-0.5B-Instruct"


def planned(source, draft, method="draft", **speculative):
    asked = deployment(
        source,
        speculative={"method": method, "model": draft, **speculative},
        replicas=1,
        topology={"tensor": 2},
    )
    return plan(asked, inventory(pool()), PlanFacts(model=lookup(source), draft=lookup(draft)))


def test_a_draft_of_another_vocabulary_is_refused_with_both_sizes():
    made = planned(LARGE, DRAFT)
    assert made.outcome is Outcome.INVALID
    told = finding(made, "DraftVocabulary")
    assert told.field == "speculative.model"
    assert "151,936" in told.message
    assert "152,064" in told.message


@pytest.mark.parametrize(("source", "method"), [(LARGE, "eagle3"), (LESS_WIDE, "draft")])
def test_a_head_may_have_a_vocabulary_of_its_own_and_a_draft_the_models(source, method):
    made = planned(source, DRAFT, method)
    assert made.sets, made.findings


def test_a_draft_cut_over_other_ranks_than_one_or_the_models_is_refused():
    made = planned(LESS_WIDE, DRAFT, tensor=4)
    assert not made.sets
    assert any("speculative.tensor asks for 4" in one.message for one in made.findings), made.findings
