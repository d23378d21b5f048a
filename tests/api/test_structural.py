"""The converter knows a short list of forms and raises on everything else."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from plimsoll.api.base import ApiModel, Quantity, Rule, field, listing, owned
from plimsoll.api.structural import NotStructuralError, structural_schema

Text = Annotated[str, Field(max_length=8)]


def schema_of(annotation: Any, default: Any = None) -> dict[str, Any]:
    model = type(
        "Sample", (ApiModel,), {"__annotations__": {"some_field": annotation}, "some_field": default}
    )
    schema: dict[str, Any] = structural_schema(model)["properties"]["someField"]
    return schema


class Inner(ApiModel):
    """Inner things."""

    name: Text = Field(description="A name.")


@pytest.mark.parametrize(
    ("annotation", "default", "expected"),
    [
        pytest.param(Text | None, None, {"type": "string", "maxLength": 8}, id="optional means not required"),
        pytest.param(
            Literal["a"] | None, None, {"type": "string", "enum": ["a"]}, id="a single literal is an enum of one"
        ),
        pytest.param(
            int | None,
            Field(default=None, gt=0),
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            id="an exclusive bound is a flag",
        ),
        pytest.param(
            Inner | None,
            field("Mine."),
            {
                "description": "Mine.",
                "type": "object",
                "properties": {"name": {"description": "A name.", "type": "string", "maxLength": 8}},
                "required": ["name"],
            },
            id="a reference is inlined, and the field's own description wins",
        ),
        pytest.param(
            Annotated[dict[str, Text], Field(max_length=4)],
            Field(default_factory=dict),
            {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "string", "maxLength": 8}},
            id="a map",
        ),
        pytest.param(
            tuple[Inner, ...],
            listing("Some.", most=3, keys=("name",)),
            {
                "description": "Some.",
                "type": "array",
                "items": {
                    "description": "Inner things.",
                    "type": "object",
                    "properties": {"name": {"description": "A name.", "type": "string", "maxLength": 8}},
                    "required": ["name"],
                },
                "maxItems": 3,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            id="a list of named things is a map",
        ),
        pytest.param(
            Text, owned("x", "X."), {"description": "X.", "type": "string", "maxLength": 8, "default": "x"},
            id="a default that the user owns is the server's",
        ),
        pytest.param(Text, "x", {"type": "string", "maxLength": 8}, id="any other default stays inside"),
    ],
)  # fmt: skip
def test_it_converts(annotation: Any, default: Any, expected: dict[str, Any]) -> None:
    assert schema_of(annotation, default) == expected


def test_a_quantity_is_an_integer_or_a_string() -> None:
    schema = schema_of(Quantity | None)
    assert schema["x-kubernetes-int-or-string"] is True
    assert "type" not in schema
    assert schema["maxLength"] == 32


class Loop(ApiModel):
    """A model inside itself."""

    again: "Loop | None" = None


@pytest.mark.parametrize(
    ("annotation", "default", "trouble"),
    [
        pytest.param(str, "", "maxLength is missing", id="an unbounded string"),
        pytest.param(tuple[Text, ...], (), "maxItems is missing", id="an unbounded list"),
        pytest.param(
            tuple[Text, ...],
            Field(default=(), max_length=3),
            "x-kubernetes-list-type",
            id="a list of no kind",
        ),
        pytest.param(dict[str, Text], Field(default_factory=dict), "maxProperties", id="an unbounded map"),
        pytest.param(int | Text | None, None, "a union", id="a union"),
        pytest.param(float, 0.5, "type 'number'", id="a float"),
        pytest.param(tuple[int, Text], (1, "x"), "prefixItems", id="a tuple"),
        pytest.param(Any, None, "type None", id="anything"),
        pytest.param(int, Field(default=4, multiple_of=2), "multipleOf", id="a keyword it does not know"),
        pytest.param(
            Annotated[str, Field(max_length=8, json_schema_extra={"pattern": "(?=a)"})],
            "",
            "RE2",
            id="look-around",
        ),
        pytest.param(
            Annotated[str, Field(max_length=8, json_schema_extra={"pattern": r"(a)\1"})],
            "",
            "RE2",
            id="a reference back",
        ),
        pytest.param(
            Annotated[str, Field(max_length=8, json_schema_extra={"format": "uri"})],
            "",
            "format",
            id="a format",
        ),
        pytest.param(Loop | None, None, "recursive", id="a model inside itself"),
    ],
)
def test_it_raises_on_what_it_does_not_know(annotation: Any, default: Any, trouble: str) -> None:
    with pytest.raises(NotStructuralError, match=trouble):
        schema_of(annotation, default)


def test_rules_become_validations_beside_what_they_guard() -> None:
    class Guarded(ApiModel):
        rules = (
            Rule(name="r", cel="self.x > 0", holds=lambda m: m.x > 0, message="x is positive", field="x"),
        )
        x: int = 1

    assert structural_schema(Guarded)["x-kubernetes-validations"] == [
        {"rule": "self.x > 0", "message": "x is positive", "fieldPath": ".x"}
    ]


def test_required_fields_come_first() -> None:
    class Ordered(ApiModel):
        later: int | None = None
        needed: int

    assert list(structural_schema(Ordered)["properties"]) == ["needed", "later"]
