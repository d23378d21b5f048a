"""The engine's own configuration file (`--config FILE.yaml`): keys are long flags, so it becomes a command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plimsoll.facts.engine_flags import FlagTable


def is_config(document: Any, flags: FlagTable) -> bool:
    """Whether most keys of a map are flags of the engine."""
    if not isinstance(document, Mapping) or not document or "kind" in document or "services" in document:
        return False
    known = sum(1 for key in document if _flag(key) in flags or key == "model")
    return known * 2 >= len(document)


def words_of(document: Mapping[str, Any]) -> list[str]:
    """The file as words: false is --no-x, lists are several words, maps are JSON."""
    words: list[str] = []
    model = document.get("model")
    if isinstance(model, str):
        words.append(model)
    for key, value in document.items():
        flag = _flag(key)
        if flag == "--model" or value is None:
            continue
        if value is True:
            words.append(flag)
        elif value is False:
            words.append(f"--no-{flag.removeprefix('--')}")
        elif isinstance(value, list):
            words += [flag, *(item if isinstance(item, str) else json.dumps(item) for item in value)]
        else:
            words += [flag, json.dumps(value) if isinstance(value, Mapping) else str(value)]
    return words


def _flag(key: Any) -> str:
    return f"--{str(key).replace('_', '-')}"
