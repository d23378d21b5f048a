"""The CRD is structural, bounded, small, and tells the story in its columns."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from plimsoll.api.crd import crd_yaml, custom_resource_definition

CRD = custom_resource_definition()
VERSION = CRD["spec"]["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]
KNOWN = {
    "type", "description", "properties", "required", "items", "additionalProperties", "enum", "default", "format",
    "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems", "maxProperties",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
}  # fmt: skip


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from schemas(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from schemas(schema[key], f"{path}[]")


ALL = [(path, schema) for path, schema in schemas(ROOT) if path not in (".apiVersion", ".kind", ".metadata")]


def test_it_uses_only_what_a_structural_schema_knows() -> None:
    assert {key for _, schema in ALL for key in schema} <= KNOWN


def test_every_string_list_and_map_is_bounded() -> None:
    for path, schema in ALL:
        match schema.get("type"):
            case "string":
                assert "maxLength" in schema or "enum" in schema, path
            case "array":
                assert "maxItems" in schema, path
                assert "x-kubernetes-list-type" in schema, path
            case "object" if "additionalProperties" in schema:
                assert "maxProperties" in schema, path
            case None:
                assert schema["x-kubernetes-int-or-string"], path


def test_lists_that_are_maps_have_keys_that_are_always_there() -> None:
    for path, schema in ALL:
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            assert key in schema["items"]["required"], path


def test_defaults_obey_their_own_schema() -> None:
    kinds = {"string": str, "integer": int, "boolean": bool}
    with_defaults = [(path, schema) for path, schema in ALL if "default" in schema]
    assert with_defaults
    for path, schema in with_defaults:
        default = schema["default"]
        assert isinstance(default, kinds[schema["type"]]), path
        assert default in schema.get("enum", [default]), path
        assert re.search(schema.get("pattern", ""), str(default)), path


def test_there_are_no_floats() -> None:
    assert "number" not in {schema.get("type") for _, schema in ALL}


def test_there_is_no_phase_no_pod_template_and_no_host_path() -> None:
    names = {name for _, schema in ALL for name in schema.get("properties", {})}
    assert not names & {"phase", "template", "podTemplate", "hostPath"}


def test_every_field_says_what_it_is_in_a_sentence() -> None:
    fields = [
        (f"{path}.{name}", child["description"])
        for path, schema in ALL
        for name, child in schema.get("properties", {}).items()
        if f"{path}.{name}" != ".metadata"
    ]
    assert len(fields) > 250
    for path, description in fields:
        assert description.endswith((".", "...)")), path


def test_patterns_are_the_same_in_both_languages() -> None:
    for path, schema in ALL:
        pattern = schema.get("pattern", "^$")
        assert pattern.startswith("^"), path
        assert pattern.endswith("$"), path
        assert not re.search(r"\(\?|\\[dDwWsSbBAZ]", pattern), path


def test_rules_have_a_message_and_guard_what_may_be_absent() -> None:
    rules = [(path, rule) for path, schema in ALL for rule in schema.get("x-kubernetes-validations", ())]
    assert len(rules) > 30
    by_path = dict(ALL)
    for path, rule in rules:
        assert rule["message"], path
        properties = by_path[path].get("properties", {})
        for name in re.findall(r"\bself\.([a-z][A-Za-z0-9]*)", rule["rule"]):
            if name in properties and name not in (*by_path[path].get("required", ()), "metadata"):
                assert f"has(self.{name})" in rule["rule"], (path, name)


def test_field_paths_of_rules_exist() -> None:
    for path, schema in ALL:
        for rule in schema.get("x-kubernetes-validations", ()):
            child = schema
            for part in filter(None, rule.get("fieldPath", "").split(".")):
                assert part in child["properties"], (path, rule)
                child = child["properties"][part]


SAID_BESIDE = {
    **dict.fromkeys(("p50", "p95", "p99"), "all of a length"),
    **dict.fromkeys(("ttftP99Ms", "itlP99Ms"), "by slo"),
    **dict.fromkeys(("tensor", "pipeline", "data"), "by topology.mode"),
    "annotation": "by the rule that asks for it or query",
}
"""Fields of which something else says what they are where nobody sets them."""


def test_every_number_switch_and_choice_that_may_be_absent_says_what_it_is_then() -> None:
    unsaid = []
    for path, schema in schemas(ROOT["properties"]["spec"], "spec"):
        for name, child in schema.get("properties", {}).items():
            plain = child.get("type") in ("boolean", "integer") or "enum" in child or "type" not in child
            told = "default" in child or "Absent" in child["description"] or name in SAID_BESIDE
            if plain and name not in schema.get("required", ()) and not told:
                unsaid.append(f"{path}.{name}")
    assert unsaid == []


def test_it_is_under_100_kib() -> None:
    assert len(crd_yaml().encode()) < 100 * 1024
    assert len(yaml.safe_dump(CRD).encode()) < 256 * 1024  # kubectl's own limit for client-side apply


def test_it_reads_back_as_the_same_object() -> None:
    assert yaml.safe_load(crd_yaml()) == CRD


def test_only_the_model_is_required() -> None:
    spec = ROOT["properties"]["spec"]
    assert ROOT["required"] == ["spec"]
    assert spec["required"] == ["model"]
    assert spec["properties"]["model"]["required"] == ["source"]


def test_columns_tell_the_story_in_a_line() -> None:
    columns = [column["name"] for column in VERSION["additionalPrinterColumns"] if not column.get("priority")]
    assert columns == ["Ready", "Replicas", "Model", "GPU", "Layout", "Reason", "Age"]


@pytest.mark.parametrize("column", VERSION["additionalPrinterColumns"], ids=lambda column: column["name"])
def test_columns_point_at_fields_that_exist(column: dict[str, Any]) -> None:
    path = column["jsonPath"].removeprefix(".")
    if path.startswith("metadata."):
        return
    schema = ROOT
    for part in re.sub(r"\[\?\(.*?\)\]", "", path).split("."):
        schema = schema.get("items", schema)["properties"][part]
    assert schema["type"] == column["type"]


def test_it_can_be_scaled_and_its_status_is_apart() -> None:
    assert VERSION["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def test_the_number_of_replicas_is_never_put_in_by_a_default() -> None:
    assert "default" not in ROOT["properties"]["spec"]["properties"]["replicas"]
