"""A pydantic JSON schema turned into a Kubernetes structural schema.

Kubernetes takes a subset of OpenAPI with additions of its own, and prunes or rejects the rest without much of a
word. So this converter knows a short list of forms and raises on everything else, and on every string, list and
map without a bound: the API server's cost estimate for CEL rules assumes the worst of them and refuses the CRD.
"""

from typing import Any, Final

from pydantic import BaseModel

from plimsoll.api.base import INT_OR_STRING, LIST_KEYS, LIST_TYPE, SERVER_DEFAULT, VALIDATIONS

Schema = dict[str, Any]

_DROPPED: Final = {"title", "examples", "default", SERVER_DEFAULT}
_COMMON: Final = {"description", VALIDATIONS}
_BY_TYPE: Final[dict[str, set[str]]] = {
    "boolean": set(),
    "integer": {"enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "string": {"enum", "minLength", "maxLength", "pattern", "format"},
    "array": {"items", "minItems", "maxItems", LIST_TYPE, LIST_KEYS},
    "object": {
        "properties",
        "required",
        "additionalProperties",
        "maxProperties",
        "patternProperties",
        "propertyNames",
    },
}
_FORMATS: Final = {"date-time"}
_NOT_RE2: Final = ("(?=", "(?!", "(?<=", "(?<!", "(?P=", *(rf"\{digit}" for digit in range(1, 10)))


class NotStructuralError(TypeError):
    """A model uses something that no structural schema can say; raised while generating, never for users."""

    def __init__(self, path: str, trouble: str) -> None:
        super().__init__(f"{path or 'the root'}: {trouble}")


def structural_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of a model, everything inlined."""
    schema = model.model_json_schema(by_alias=True)
    return _convert(schema, schema.pop("$defs", {}), "")


def _convert(schema: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    schema = _resolve(schema, definitions, path)
    if "const" in schema:
        schema = {key: value for key, value in schema.items() if key != "const"} | {"enum": [schema["const"]]}
    if schema.get(INT_OR_STRING) is True:
        _demand(schema, "maxLength", path)
        return _take(schema, _COMMON | {INT_OR_STRING, "minimum", "maximum", "maxLength", "pattern"}, path)
    kind = schema.get("type")
    if kind not in _BY_TYPE:
        raise NotStructuralError(path, f"type {kind!r} in {sorted(schema)}")
    result = _take(schema, _COMMON | _BY_TYPE[kind] | {"type"}, path)
    match kind:
        case "integer":
            _exclusive_bounds(result)
        case "string":
            _check_string(result, path)
        case "array":
            _demand(result, "maxItems", path)
            _demand(result, LIST_TYPE, path)
            result["items"] = _convert(result["items"], definitions, f"{path}[]")
        case "object":
            _convert_object(result, definitions, path)
    if SERVER_DEFAULT in schema:
        result["default"] = schema["default"]
    return result


def _resolve(schema: Schema, definitions: dict[str, Schema], path: str) -> Schema:
    """Follow references and unwrap optional values; what stands at the field wins over what stands at its type."""
    if path.count(".") > 20:
        raise NotStructuralError(path, "recursive or nested too deep")
    own = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return {**_resolve(definitions[name], definitions, path), **own}
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        if len(kinds) != 1:
            raise NotStructuralError(path, "a union; use one object with optional members and a rule")
        return {**_resolve(kinds[0], definitions, path), **own}
    return schema


def _take(schema: Schema, known: set[str], path: str) -> Schema:
    unknown = set(schema) - known - _DROPPED
    if unknown:
        raise NotStructuralError(path, f"no structural form for {', '.join(sorted(unknown))}")
    ordered = ("description", "type", *sorted(known))
    return {key: schema[key] for key in dict.fromkeys(ordered) if key in schema}


def _demand(schema: Schema, key: str, path: str) -> None:
    if key not in schema:
        raise NotStructuralError(path, f"{key} is missing")


def _exclusive_bounds(schema: Schema) -> None:
    """JSON Schema's exclusive bounds are numbers; OpenAPI's are flags beside the bound."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema:
            schema[bound] = schema[exclusive]
            schema[exclusive] = True


def _check_string(schema: Schema, path: str) -> None:
    if "enum" not in schema:
        _demand(schema, "maxLength", path)
    if any(form in schema.get("pattern", "") for form in _NOT_RE2):
        raise NotStructuralError(path, f"pattern {schema['pattern']!r} is not RE2")
    if schema.get("format", "date-time") not in _FORMATS:
        raise NotStructuralError(path, f"format {schema['format']!r}")


def _convert_object(schema: Schema, definitions: dict[str, Schema], path: str) -> None:
    """Fields, or a map; closed objects are left open, since the server prunes what it does not know."""
    # Keys of a map cannot be constrained in a structural schema; files are checked, and the operator says it.
    schema.pop("propertyNames", None)
    patterns = schema.pop("patternProperties", None)
    values = schema.pop("additionalProperties", None) or None
    if patterns:
        (values,) = patterns.values()
    if "properties" in schema:
        if values:
            raise NotStructuralError(path, "both properties and a map")
        schema["properties"] = {
            name: _convert(child, definitions, f"{path}.{name}" if path else name)
            for name, child in _required_first(schema)
        }
        return
    if values:
        _demand(schema, "maxProperties", path)
        schema["additionalProperties"] = _convert(values, definitions, f"{path}{{}}")
        return
    if schema.get("required"):
        raise NotStructuralError(path, "required without properties")


def _required_first(schema: Schema) -> list[tuple[str, Schema]]:
    """A person reads what must be written before what may be."""
    required = schema.get("required", ())
    return sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
