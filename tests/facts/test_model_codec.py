"""Model facts through JSON and back, small enough for a pod's answer, and never trusted."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.model_codec import ModelCodecError, digest_of, export_model, import_model
from plimsoll.facts.models import catalogue_names
from tests.facts.known_models import known


@pytest.mark.parametrize("name", catalogue_names())
def test_every_model_survives_the_round_trip_within_four_kib(name):
    facts = known(name)
    text = export_model(facts)
    assert import_model(text) == facts
    assert len(text) <= 4096
    assert export_model(import_model(text)) == text


BODY = json.loads(export_model(known("Qwen/Qwen3-30B-A3B")))


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "not json", '{"architecture": {}}',
        json.dumps({**BODY, "weights": {}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "layers": [[9, 0, 1]]}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "layers": [[0, 0, 10**9]]}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "layers": [[-1, 0, 1]]}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "layers": []}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "hidden": 0}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "hidden": 10**30}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "vocab": -5}}),
        json.dumps({**BODY, "weights": {**BODY["weights"], "experts": -1}}),
        json.dumps({**BODY, "revision": 7}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "rope_others": "{"}}),
        json.dumps({**BODY, "architecture": {**BODY["architecture"], "rope_others": "[]"}}),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(text):
    with pytest.raises(ModelCodecError, match="model facts"):
        import_model(text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda x: st.lists(x) | st.dictionaries(st.text(max_size=5), x),
    )
)
def test_no_text_breaks_the_reader(value):
    with pytest.raises(ModelCodecError):
        import_model(json.dumps({**BODY, "architecture": value}))


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("google/gemma-3-27b-it", {"only_bfloat16": False, "rope_by_layer": False}),
        ("databricks/dbrx-instruct", {"supports_adapters": True}),
        ("nvidia/Qwen3.6-27B-NVFP4", {"rope_others": None}),
    ],
)
def test_facts_that_say_only_what_may_be_planned_leave_the_digest_by_which_is_learned(source, changes):
    facts = known(source)
    less = replace(facts.architecture, **changes)
    assert all(getattr(facts.architecture, name) != value for name, value in changes.items())
    assert digest_of(less, facts.weights) == facts.digest


def test_heads_of_an_encoder_leave_the_digest_by_which_is_learned():
    facts = known("zai-org/GLM-4.5V")
    vision = facts.architecture.vision
    assert vision is not None
    assert vision.heads
    less = replace(facts.architecture, vision=replace(vision, heads=()))
    assert digest_of(less, facts.weights) == facts.digest


def test_a_digest_from_outside_is_not_believed():
    assert import_model(json.dumps({**BODY, "digest": "0000"})).digest == known("Qwen/Qwen3-30B-A3B").digest
