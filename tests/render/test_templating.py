import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.render import templating
from plimsoll.render.templating import NotAsMeant, fill, images_of, made

TEMPLATES = Path(templating.__file__).parent / "templates"
# What no JSON of the API can hold: halves of characters.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_passes_the_filter_is_the_same_value_of_the_same_type_afterwards(value):
    assert json.dumps(fill("resourceclaimtemplate", metadata={}, spec=value)["spec"]) == json.dumps(
        value, sort_keys=True
    )


@pytest.mark.parametrize(
    "text",
    ["\x7f", "\x85", "\u2028x", "\ufeff", "a\nb: c", "'\"\\", "{{ 7 * 7 }}", "{% raw %}", "!!python/object:os.system", "&a",
     "*a", "yes", "1e3", "0x1f", "~", "", " ", "# no", "- x", "a: b", "\U0001f600", "\t", "%YAML 1.1", "---", "...", "⟦0⟧"],
)  # fmt: skip
def test_text_that_yaml_or_jinja_would_read_otherwise_stays_text(text):
    assert fill("serviceaccount", metadata={"name": text})["metadata"] == {"name": text}


def test_a_value_that_is_missing_is_an_error_and_no_empty_text():
    with pytest.raises(NotAsMeant, match="names metadata, which nobody gave"):
        fill("serviceaccount")


def test_nothing_gets_into_an_object_past_the_filter():
    template = templating._ENVIRONMENT.from_string("name: {{ name }}")
    with pytest.raises(NotAsMeant, match="without the json filter"):
        template.render(name="x")


@pytest.mark.parametrize("file", sorted(TEMPLATES.iterdir()), ids=lambda file: file.name)
def test_every_hole_of_every_template_is_filled_through_the_filter(file):
    text = file.read_text()
    assert file.name.endswith(".yaml.j2")
    assert text.count("{{") == text.count("| json }}")
    assert text.startswith("{# ")


def test_an_object_that_is_not_the_one_that_was_meant_is_refused():
    with pytest.raises(NotAsMeant, match="kind is 'ServiceAccount' instead of 'Secret'"):
        made("serviceaccount", kind="Secret", metadata={"name": "x", "namespace": "y"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1}, 1j], ids=repr)
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(NotAsMeant, match="nothing that JSON can say"):
        fill("resourceclaimtemplate", metadata={}, spec={"x": [value]})


def test_an_object_is_the_caller_s_own():
    given = {"name": "x", "labels": {}}
    one = fill("service", metadata=given, protocol="http", port=80, selector={}, type="ClusterIP")
    one["metadata"]["labels"]["changed"] = one["spec"]["ports"].pop()
    other = fill("service", metadata=given, protocol="http", port=80, selector={}, type="ClusterIP")
    assert (given["labels"], len(other["spec"]["ports"])) == ({}, 1)


def test_images_are_found_wherever_containers_are():
    pod = {"initContainers": [{"image": "b"}], "containers": [{"image": "a"}, {"name": "none"}]}
    assert sorted(images_of({"spec": {"template": [{"spec": pod}]}})) == ["", "a", "b"]
