"""What is wrong with something a person wrote: which field, which value, and what would be right."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from plimsoll.api.elsewhere import field_meant, number_meant
from plimsoll.api.passwords import without_passwords
from plimsoll.api.spellings import SPELLINGS

WHAT_HELPS: Final = ". What helps: "
"""Between what is wrong and what would be right, where both are one text."""
OR: Final = "; or "
"""Between several things that help."""
INLINE: Final = "write the model's config.json into spec.model.architecture.config"
"""One of these, for a model and not for its draft."""
SHOWN: Final = 80
MIN_STEM: Final = 3
"""Letters by which the beginning of a field's name can be told."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right: the field as the user spells it, the value found there, and what would be right."""

    field: str
    value: str
    message: str
    cure: str = ""
    """What helps, where the message does not say it."""

    def __str__(self) -> str:
        found = f" (found {self.value})" if self.value else ""
        return f"{self.field}: {self.message}{found}" if self.field else f"{self.message}{found}"


class SpecError(ValueError):
    """Something that a person wrote cannot be used; carries every problem that was found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems: tuple[Problem, ...] = problems


def show(value: object) -> str:
    """A value for a message: short, on one line, as YAML has it, with every unprintable character spelled out."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    text = without_passwords(text)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def problems_of(error: ValidationError, model: type[BaseModel]) -> tuple[Problem, ...]:
    """The problems that a failed validation found, in the order of the file's fields."""
    return tuple(_problem(detail, model) for detail in error.errors(include_url=False))


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    path = _path(detail["loc"])
    context: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"] in ("rule", "duplicate") and context.get("field"):
        path = f"{path}.{context['field']}" if path else context["field"]
        return Problem(
            path, _found(detail["input"], context["field"], detail["msg"]), _message(detail, model)
        )
    value = "" if detail["type"] in ("missing", "rule", "extra_forbidden") else show(detail["input"])
    return Problem(path, value, _message(detail, model))


def _found(group: Any, field: str, message: str) -> str:
    """The value of a field that broke a rule, and the values of the fields beside it that the rule names."""
    found = _dig(group, field)
    if found is None:
        return ""
    others = {
        word: group[word]
        for word in re.findall(r"[A-Za-z]+", message)
        if word != field and isinstance(group.get(word), int | float)
    }
    return ", and ".join([show(found), *(f"{name} {show(value)}" for name, value in others.items())])


def _path(location: Sequence[str | int]) -> str:
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":
            path += f".{part}" if path else part
    return path


def _dig(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


_BOOLEAN: Final[Mapping[bool, tuple[str, ...]]] = {False: ("off", "no"), True: ("on", "yes")}
_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "must be set",
    "string_pattern_mismatch": "has not the form {pattern}",
    "literal_error": "must be one of {expected}",
    "int_type": "must be a whole number, written without quotes or a point",
    "bool_type": "must be true or false, written without quotes",
    "string_type": "must be text; put it in quotes",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must have at least {min_length} entries",
    "tuple_type": "must be a list",
    "value_error": "{error}",
}


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    said = _said(detail, model)
    if detail["type"] in ("missing", "model_type", "dict_type"):
        forms = _forms(_group_at(model, detail["loc"]))
        return f"{said}; write {' or '.join(forms)}" if forms else said
    return said


def _forms(group: type[BaseModel] | None) -> tuple[str, ...]:
    """In which forms a group is written that has several; of one around such a group, with only that in it."""
    forms: tuple[str, ...] = getattr(group, "forms", ())
    required = _required(group)
    if forms or len(required) != 1:
        return forms
    (name,) = required
    inner = model_of(_by_alias(group)[name].annotation)
    return tuple(f"{{{name}: {form}}}" for form in _forms(inner))


def _said(detail: ErrorDetails, model: type[BaseModel]) -> str:
    if detail["type"] == "extra_forbidden":
        return _unknown_field(detail["loc"], model)
    if detail["type"] in ("model_type", "dict_type"):
        return _not_a_group(detail["input"], _group_at(model, detail["loc"]))
    if detail["type"] == "missing" and (group := _group_at(model, detail["loc"])) is not None:
        return f"must be set: a group with {', '.join(_required(group)) or ' or '.join(_fields(group))}"
    if detail["type"] == "string_type" and isinstance(detail["input"], dict | list):
        return "must be text; write it as one block behind '|'"
    if detail["type"] == "string_pattern_mismatch" and (words := SPELLINGS.get(detail["ctx"]["pattern"])):
        return words
    if detail["type"] == "literal_error" and isinstance(detail["input"], bool):
        # What YAML makes of a word: off, on, yes and no are none to it unless they are quoted.
        read = [word for word in _BOOLEAN[detail["input"]] if f"'{word}'" in detail["ctx"]["expected"]]
        quoted = f"; YAML reads {read[0]} as a boolean: write it in quotes" if read else ""
        return f"must be one of {detail['ctx']['expected']}{quoted}"
    if detail["type"] == "int_type" and (meant := number_meant(str(detail["loc"][-1]), detail["input"])):
        return f"must be a whole number; write it {meant}"
    if detail["type"] in _MESSAGES:
        return _MESSAGES[detail["type"]].format(**detail.get("ctx", {}))
    return detail["msg"][0].lower() + detail["msg"][1:]


def _unknown_field(location: Sequence[str | int], model: type[BaseModel]) -> str:
    """An unknown field, with the nearest known one: of the same group, else of the whole resource."""
    *parents, name = location
    known = _fields(_group_at(model, parents))
    near = get_close_matches(str(name), known, n=1, cutoff=0.6)
    stem = str(name).removesuffix("s").casefold()
    begun = [one for one in known if len(stem) >= MIN_STEM and one.casefold().startswith(stem)]
    near = begun[:1] or near  # gpus means gpuProducts rather than groups
    meant = "" if begun or parents[:1] != ["spec"] else field_meant(str(name))
    if meant:
        return f"is no known field; {meant}"
    if near:
        return f"is no known field; did you mean {near[0]}?"
    elsewhere = [
        path
        for path in all_fields(model)
        if path.rpartition(".")[2] == name and not path.startswith("status.")
    ]
    if elsewhere:
        return f"is no field of this group; did you mean {min(elsewhere, key=lambda p: (p.count('.'), p))}?"
    return f"is no known field; known here: {', '.join(sorted(known)) or 'none'}"


def _not_a_group(given: Any, group: type[BaseModel] | None) -> str:
    """With how to write what was given in its place: a text, where only one field must be set, or one length for all requests."""
    inside = _fields(group)
    said = f"must be a group of fields{': ' if inside else ''}{', '.join(inside)}"
    required = _required(group)
    if "p50" in inside and isinstance(given, int) and not isinstance(given, bool):
        return f"{said}; write {{p50: {given}}}"
    if not isinstance(given, str) or len(required) != 1 or _forms(group):
        return said
    return f"{said}; write {{{required[0]}: {json.dumps(given, ensure_ascii=False)}}}"


def _group_at(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    """The group at a place of the resource; None where there is none."""
    found: type[BaseModel] | None = model
    for part in location:
        if isinstance(part, str) and found is not None:
            child = _by_alias(found).get(part)
            found = None if child is None else model_of(child.annotation)
    return found


def _by_alias(group: type[BaseModel] | None) -> Mapping[str, FieldInfo]:
    fields = {} if group is None else group.model_fields
    return {info.alias or name: info for name, info in fields.items()}


def _required(group: type[BaseModel] | None) -> list[str]:
    return [name for name, info in _by_alias(group).items() if info.is_required()]


def _fields(group: type[BaseModel] | None) -> list[str]:
    return list(_by_alias(group))


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation: itself, or within an optional, a list or an annotated type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_of(part)) is not None), None)


def all_fields(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Every field of a model and of the models inside it, by the path that a user would write."""
    paths = []
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        paths.append(path)
        inner = model_of(info.annotation)
        if inner is not None:
            paths += all_fields(inner, f"{path}.")
    return paths
