"""From a template and values to an object, with no way for a value to become anything but a value.

A template is YAML of ours with holes; whatever goes into a hole is written as JSON, which is YAML too, and anything that
did not pass the filter is refused, so a value cannot end a line, open a mapping or be read as another type. What comes
out is parsed and compared with what was meant before it is handed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml
from jinja2 import FunctionLoader, StrictUndefined, Template, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from plimsoll.objects import Body, Manifest, manifest

# What YAML reads as the end of a line, or refuses, although JSON may hold it as it is.
_UNFIT: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotAsMeant(ValueError):
    """A rendered object is not the one that was asked for. A mistake of ours or an attempt of somebody: never used."""


def fill(template: str, /, **values: object) -> dict[str, Any]:
    """The filled template as data."""
    body = yaml.load(_template(template).render(values), Loader=_LOADER)  # noqa: S506 - both are safe
    if not isinstance(body, dict):
        raise NotAsMeant(f"template {template} gave {type(body).__name__}, no object")
    return body


def made(
    template: str, /, *, kind: str, metadata: Body, images: tuple[str, ...] = (), **values: object
) -> Manifest:
    """An object, held against its kind, its whole metadata and its images."""
    body = fill(template, metadata=metadata, **values)
    for what, found, meant in (
        ("kind", body.get("kind"), kind),
        ("metadata", body.get("metadata"), metadata),
        ("images", sorted(images_of(body)), sorted(images)),
    ):
        if found != meant:
            raise NotAsMeant(f"template {template}: {what} is {found!r} instead of {meant!r}")
    return manifest(body)


def images_of(value: object) -> Iterator[str]:
    """Every image that a container anywhere inside would run, or a volume would mount."""
    if isinstance(value, dict):
        for key, inside in value.items():
            if key in ("containers", "initContainers") and isinstance(inside, list):
                yield from (str(one.get("image", "")) for one in inside if isinstance(one, dict))
            yield from images_of(inside)
    elif isinstance(value, list):
        for item in value:
            yield from images_of(item)


def as_json(value: object) -> Markup:
    """The one filter: a value as JSON that YAML reads back as the same value."""
    if isinstance(value, Undefined):
        raise NotAsMeant(f"a template names {value._undefined_name}, which nobody gave")  # noqa: SLF001 - it has no other
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
    return Markup(_UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # noqa: S704 - this is the escaping


def _only_json(value: object) -> object:
    if not isinstance(value, Markup):
        raise NotAsMeant(f"a template puts {value!r} out without the json filter")
    return value


def _source(name: str) -> str:
    return resources.files("plimsoll.render").joinpath("templates", name).read_text(encoding="utf-8")


_ENVIRONMENT: Final = ImmutableSandboxedEnvironment(
    loader=FunctionLoader(_source),
    undefined=StrictUndefined,
    finalize=_only_json,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters = {"json": as_json}


@cache
def _template(name: str) -> Template:
    return _ENVIRONMENT.get_template(f"{name}.yaml.j2")
