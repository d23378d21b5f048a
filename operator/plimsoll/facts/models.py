"""The built-in catalogue: architectures of public models, so that plans work without a network.

Entries are fragments of the models' own config.json and are read by the same parser as all others. `model_names` matches names; where a
match is not the exact repository, `origin` says so, since the plan depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.model_codec import model_facts
from plimsoll.facts.model_names import NameMatch, match_name
from plimsoll.facts.weights import weights_from_architecture


def lookup(name: str) -> ModelFacts | None:
    """Facts of a model the catalogue knows by this name, by its name without organisation, or as a quantized variant."""
    match = match_name(name, tuple(_entries()))
    return None if match is None else _facts(name, match)


def catalogue_names() -> tuple[str, ...]:
    return tuple(sorted(_entries()))


def catalogue_config(name: str) -> Mapping[str, object]:
    """The fragment of config.json the catalogue holds for a model, by its exact name."""
    return _entries()[name].config


@dataclass(frozen=True, slots=True)
class _Entry:
    config: Mapping[str, object]
    assumed: tuple[str, ...]


@cache
def _entries() -> Mapping[str, _Entry]:
    text = resources.files("plimsoll.facts").joinpath("data/models.json").read_text("utf-8")
    found = json.loads(text)["models"]
    return {name: _resolved(name, found) for name in sorted(found)}


def _resolved(name: str, entries: Mapping[str, Mapping[str, Any]]) -> _Entry:
    """An entry with what it takes from the entry that it is `like`; its own keys come first."""
    entry = entries[name]
    own = _Entry(entry.get("config", {}), tuple(entry.get("assumed", ())))
    if "like" not in entry:
        return own
    base = _resolved(entry["like"], entries)
    return _Entry(_merged(base.config, own.config), (*base.assumed, *own.assumed))


def _merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Two configs as one, of which the second comes first. Objects are merged key by key, but a quantization is taken whole; a null takes a
    key away."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(under, dict) and key != "quantization_config":
            result[key] = _merged(under, value)
        else:
            result[key] = value
    return result


def _unquantized(config: Mapping[str, object]) -> dict[str, object]:
    """The config without a quantization, which multimodal configs may have inside that of the language model."""
    return {
        key: _unquantized(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key != "quantization_config"
    }


@cache
def _facts(name: str, match: NameMatch) -> ModelFacts:
    entry = _entries()[match.entry]
    config = entry.config
    if match.quantization is not None:
        config = _unquantized(config)
    arch = parse_config(config, quantization_hint=match.quantization)
    arch = replace(arch, assumed=tuple(dict.fromkeys((*entry.assumed, *arch.assumed))))
    return model_facts(
        source=f"hf://{match.entry if match.exact else name}",
        revision=None,
        architecture=arch,
        weights=weights_from_architecture(arch),
        origin="catalogue" if match.exact else f"catalogue: {match.note}",
    )
