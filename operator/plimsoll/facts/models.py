"""The built-in catalogue: architectures of public models, so that plans work without a network.

Entries are fragments of the models' own config.json and go through the same parser as everything else. A name is matched
by `model_names`; a match that is not the exact repository says so in `origin`, since a plan rests on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources

from plimsoll.facts.hf_config import parse_config
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.model_names import Match, match_name
from plimsoll.facts.weights import weights_from_architecture


def lookup(name: str) -> ModelFacts | None:
    """Facts of a model the catalogue knows by this name, by its name without organisation, or as a quantized variant."""
    match = match_name(name, tuple(_entries()))
    return None if match is None else _facts(name, match)


def catalogue_names() -> tuple[str, ...]:
    return tuple(sorted(_entries()))


@cache
def _entries() -> Mapping[str, Mapping[str, object]]:
    text = resources.files("plimsoll.facts").joinpath("data/models.json").read_text("utf-8")
    found = json.loads(text)["models"]
    return {name: _resolved(name, found) for name in sorted(found)}


def _resolved(name: str, entries: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    """An entry that is `like` another is that one with its own keys on top; a null takes a key away."""
    entry = entries[name]
    base = entry.get("like")
    if not isinstance(base, str):
        return entry
    merged = _merged(_resolved(base, entries), entry)
    return {key: value for key, value in merged.items() if key != "like"}


def _merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
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


@cache
def _facts(name: str, match: Match) -> ModelFacts:
    entry = _entries()[match.entry]
    config = entry["config"]
    assert isinstance(config, dict)
    if match.quantization is not None:
        config = {key: value for key, value in config.items() if key != "quantization_config"}
    arch = parse_config(config, quantization_hint=match.quantization)
    stated = entry.get("assumed", [])
    assert isinstance(stated, list)
    arch = replace(arch, assumed=tuple(dict.fromkeys((*stated, *arch.assumed))))
    weights = weights_from_architecture(arch)
    digest = hashlib.sha256(repr((arch, weights)).encode()).hexdigest()[:16]
    return ModelFacts(
        source=f"hf://{match.entry if match.exact else name}",
        revision=None,
        architecture=arch,
        weights=weights,
        origin="catalogue" if match.exact else f"catalogue: {match.note}",
        digest=digest,
    )
