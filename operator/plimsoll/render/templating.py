"""Makes an object of a template and values, so that no value can ever become anything but a value.

A template is our own YAML with holes. Whatever goes into a hole has to pass one filter, which takes what JSON can express and leaves
only a number in the text. The value is put in place of its number after the text is parsed. So no value is ever read as YAML: it cannot
end a line, open a mapping or change its type. The result is compared with what was meant before anybody uses it. This is fast as well,
since the text of a template is one of a few, each of which is parsed once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final

import yaml
from jinja2 import FunctionLoader, StrictUndefined, Template, Undefined, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from plimsoll.objects import Body, Manifest, manifest

HOLES: Final = "__holes__"
_NUMBERED_HOLE: Final = re.compile(r"⟦(\d+)⟧")
_CONTAINER_TYPES: Final = frozenset({dict, list})
_CONTAINER_FIELDS: Final = ("containers", "initContainers")
_SCALAR_TYPES: Final = frozenset({type(None), bool, int, str})


class NotAsMeant(ValueError):
    """A rendered object is not the one that was asked for, by a mistake of ours or an attack. It is never used."""


def fill(template: str, /, **values: object) -> dict[str, Any]:
    """The filled template as data, which the caller may change."""
    holes: list[Any] = []
    text = _template(template).render({**values, HOLES: holes})
    body = _filled(_parsed(text), holes)
    if not isinstance(body, dict):
        raise NotAsMeant(f"template {template} gave {type(body).__name__}, no object")
    return body


def made(
    template: str, /, *, kind: str, metadata: Body, images: tuple[str, ...] = (), **values: object
) -> Manifest:
    """An object from a template. Raises NotAsMeant where its kind, its metadata or its images are not the given ones."""
    body = fill(template, metadata=metadata, **values)
    for what, found, meant in (
        ("kind", body.get("kind"), kind),
        ("metadata", body.get("metadata"), metadata),
        ("images", sorted(images_of(body)), sorted(images)),
    ):
        if found != meant:
            raise NotAsMeant(f"template {template}: {what} is {found!r} instead of {meant!r}")
    return manifest(body)


def images_of(value: object) -> list[str]:
    """Every image that a container anywhere inside would run."""
    found: list[str] = []
    _add_images(value, found)
    return found


def _add_images(value: Any, found: list[str]) -> None:
    """Types are compared exactly, which is faster than isinstance, and JSON has no subtypes: the largest objects of a turn pass here, each
    several times."""
    if type(value) is list:
        for item in value:
            _add_images(item, found)
    elif type(value) is dict:
        for key, inside in value.items():
            if type(inside) not in _CONTAINER_TYPES:
                continue
            if key in _CONTAINER_FIELDS and type(inside) is list:
                found += (str(one.get("image", "")) for one in inside if type(one) is dict)
            _add_images(inside, found)


def plain(value: object) -> Any:
    """The value in JSON's types, with sorted keys. Raises NotAsMeant where JSON cannot express it."""
    if type(value) in _SCALAR_TYPES:
        return value
    if isinstance(value, Mapping):
        return {
            str(key): item if type(item) in _SCALAR_TYPES else plain(item)
            for key, item in sorted(value.items())
        }
    if isinstance(value, list | tuple):
        return [item if type(item) in _SCALAR_TYPES else plain(item) for item in value]
    if isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Undefined):
        raise NotAsMeant(f"a template names {value._undefined_name}, which nobody gave")  # noqa: SLF001 - it has no other
    raise NotAsMeant(f"{value!r} is nothing that JSON can say")


@pass_context
def _into_hole(context: Context, value: object) -> Markup:
    holes: list[Any] = context[HOLES]
    holes.append(plain(value))
    return Markup(f'"⟦{len(holes) - 1}⟧"')  # noqa: S704 - a number of ours


@lru_cache(maxsize=512)
def _parsed(text: str) -> Any:
    """The result is shared, so nobody may change it."""
    return yaml.safe_load(text)


def _filled(value: Any, holes: list[Any]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, holes): _filled(item, holes) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, holes) for item in value]
    if isinstance(value, str) and value.startswith("⟦") and (found := _NUMBERED_HOLE.fullmatch(value)):
        return holes[int(found[1])]
    return value


def _only_json(value: object) -> object:
    if not isinstance(value, Markup):
        raise NotAsMeant(f"a template puts {value!r} out without the json filter")
    return value


def _template_text(name: str) -> str:
    return resources.files("plimsoll.render").joinpath("templates", name).read_text(encoding="utf-8")


_ENVIRONMENT: Final = ImmutableSandboxedEnvironment(
    loader=FunctionLoader(_template_text),
    undefined=StrictUndefined,
    finalize=_only_json,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters = {"json": _into_hole}


@cache
def _template(name: str) -> Template:
    return _ENVIRONMENT.get_template(f"{name}.yaml.j2")
