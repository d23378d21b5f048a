"""Reads long files that machines wrote (lists of nodes, snapshots) as plain data, with the fast native readers.

What people write is read by `api.loading`, which is strict, and too slow for the 30 MB of ten thousand nodes. This reader takes what
kubectl prints, and still trusts nothing: no tags, a bound on depth (without which the native YAML reader could end the process), and no
aliases that contain themselves or stand for more than the text itself could hold.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from plimsoll.api.plainyaml import BoundedMerges, nesting
from plimsoll.api.problems import Problem, SpecError, show

_DEEPEST = 500
"""The most levels of nesting that are read; real objects have some twenty."""
_LONGEST_BY_ALIASES = 1_000_000


class _Loader(BoundedMerges, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    most_merged = _LONGEST_BY_ALIASES


def load_machine_text(text: str | bytes) -> Any:
    """The one document of a JSON or YAML text; raises SpecError."""
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        if text.lstrip().startswith("{"):
            return json.loads(text)
        if _depth(text) > _DEEPEST:
            raise SpecError(Problem("", "", f"nested deeper than {_DEEPEST} levels"))
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - safe, whichever it stands on
        if "*" in text and _size(document, {}) > _LONGEST_BY_ALIASES + len(text):
            raise SpecError(
                Problem("", "", "aliases that stand for more than the text could hold; write less")
            )
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SpecError(Problem(line, "", error.problem or "not YAML")) from None
    except (yaml.YAMLError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SpecError(Problem("", "", f"neither YAML nor JSON: {show(str(error))}")) from None
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(Problem("", "", f"a value that is no value: {show(str(error))}")) from None
    return document


def _depth(text: str) -> int:
    """About how deep a text nests: by brackets that are open at once, and by the widest indentation or row of dashes."""
    # Indented lines of texts in block scalars count too, which does no harm.
    widest = max((len(match[0]) for match in re.finditer(r"^[ \-?]+", text, re.MULTILINE)), default=0)
    return nesting(text) + widest // 2


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values a tree has if every alias is written out. Each object is counted once and then remembered."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in known:
        if not known[id(value)]:
            raise SpecError(Problem("", "", "an alias contains itself"))
        return known[id(value)]
    known[id(value)] = 0
    children = value.values() if isinstance(value, dict) else value
    known[id(value)] = 1 + sum(_size(child, known) for child in children)
    return known[id(value)]
