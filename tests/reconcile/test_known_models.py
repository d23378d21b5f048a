"""What pods told turns before counts for those who only ask, and for nothing that it was not told of."""

import pytest

from plimsoll import names
from plimsoll.facts.models import lookup
from plimsoll.reconcile.kept import KeptModel
from plimsoll.reconcile.known_models import known_models
from plimsoll.reconcile.models import Missing
from plimsoll.render.facts_pod import asked_of
from plimsoll_runtime.model import Model, told
from tests.render.building import config, resource
from tests.runtime.test_model import DENSE

CLAIM = "pvc://models/tiny"
MISSING = {"model.source": Missing("only a pod sees it", elsewhere=True)}


def kept(source=CLAIM):
    asked = asked_of(resource(source).spec, config())["model.source"]
    return (KeptModel(asked=asked.digest, source=source, revision=None, text=told(Model(DENSE, {}))),)


def known(one, found=None, kept=()):
    return known_models(one, MISSING if found is None else found, kept, config())


@pytest.mark.parametrize("replan", [None, "again"])
def test_a_model_that_a_pod_told_of_is_known(replan):
    one = resource(CLAIM)
    if replan:
        one.metadata.annotations[names.ANNOTATION_REPLAN] = replan
    facts = known(one, kept=kept())
    assert facts.model is not None
    assert (facts.model.source, facts.problem, facts.reading) == (CLAIM, None, None)


@pytest.mark.parametrize("kept", [(), kept("pvc://models/other")], ids=["nothing", "another model"])
def test_one_that_no_pod_told_of_is_missing_as_it_was(kept):
    facts = known(resource(CLAIM), kept=kept)
    assert (facts.model, facts.problem, facts.reading) == (None, "only a pod sees it", None)


def test_what_one_knows_oneself_needs_no_pod():
    model = lookup("Qwen/Qwen3-8B")
    assert known(resource(), {"model.source": model}, kept()).model == model


def test_a_draft_that_is_missing_is_told_of_and_no_pod_is_promised():
    one = resource(CLAIM, speculative={"method": "draft", "model": "pvc://models/draft"})
    facts = known(one, {**MISSING, "speculative.model": Missing("not there", elsewhere=True)}, kept())
    assert facts.problem == "only a pod sees it"
    assert facts.reading is None
