"""Model facts as compact JSON and back, for status and snapshots.

Layers repeat, so each distinct mixer and feed-forward part is written once, and the layers as runs of their numbers. What is read comes
from outside, so types and ranges are checked, and the digest is made anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from plimsoll.facts.architecture import Architecture, Ffn, Layer, Mixer
from plimsoll.facts.model import ModelFacts, WeightBytes

_ARCHITECTURE: TypeAdapter[Architecture] = TypeAdapter(Architecture)
_WEIGHTS: TypeAdapter[WeightBytes] = TypeAdapter(WeightBytes)
_MIXER: TypeAdapter[Mixer] = TypeAdapter(Mixer)
_FFN: TypeAdapter[Ffn] = TypeAdapter(Ffn)
_TEXT = TypeAdapter(str)
_OPTIONAL_TEXT: TypeAdapter[str | None] = TypeAdapter(str | None)
_MOST_LAYERS = 4096
_POSITIVE = frozenset(
    [
        "hidden",
        "vocab",
        "max_positions",
        "heads",
        "kv_heads",
        "head_dim",
        "v_head_dim",
        "kv_lora_rank",
        "key_heads",
        "value_heads",
        "key_dim",
        "value_dim",
        "experts",
        "top_k",
        "intermediate",
        "pool",
    ]
)
"""Fields of the architecture that must not be zero, since something is divided by them or their part would have no size."""
_ONLY_ALLOW: Final[Mapping[str, Any]] = {
    "rope_others": None,
    "rope_by_layer": False,
    "supports_adapters": True,
    "only_bfloat16": False,
}
"""Fields of the architecture that decide what may be planned, and of what runs neither memory nor speed; each as if nothing were known."""
_MOST = 1 << 50
"""The largest number that is read."""


class ModelCodecError(ValueError):
    """Text that is no exported model."""


def digest_of(architecture: Architecture, weights: WeightBytes) -> str:
    """A hash of all that memory and speed depend on, by which is remembered what was learned of a model. It must not change with a release
    that reads more of the same config."""
    sees = architecture.vision
    architecture = dataclasses.replace(
        architecture, vision=sees and dataclasses.replace(sees, heads=()), **_ONLY_ALLOW
    )
    text = json.dumps(
        [_packed(architecture), _plain(_WEIGHTS, weights)], sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def model_facts(
    *, source: str, revision: str | None, architecture: Architecture, weights: WeightBytes, origin: str
) -> ModelFacts:
    """Makes facts with their digest. They are made nowhere else."""
    return ModelFacts(
        source=source,
        revision=revision,
        architecture=architecture,
        weights=weights,
        origin=origin,
        digest=digest_of(architecture, weights),
    )


def export_model(facts: ModelFacts) -> str:
    """One line of JSON with sorted keys: the same facts give the same bytes."""
    body = {
        "source": facts.source,
        "revision": facts.revision,
        "origin": facts.origin,
        "architecture": _packed(facts.architecture),
        "weights": _plain(_WEIGHTS, facts.weights),
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def import_model(text: str) -> ModelFacts:
    try:
        body = json.loads(text)
        architecture = _unpacked(body["architecture"])
        weights = _WEIGHTS.validate_python(body["weights"])
        facts = model_facts(
            source=_TEXT.validate_python(body["source"]),
            revision=_OPTIONAL_TEXT.validate_python(body.get("revision")),
            architecture=architecture,
            weights=weights,
            origin=_TEXT.validate_python(body["origin"]),
        )
    except (KeyError, TypeError, IndexError, AttributeError, ValidationError, json.JSONDecodeError) as error:
        raise ModelCodecError(f"model facts cannot be read: {type(error).__name__}: {error}") from error
    return checked(facts)


def checked(facts: ModelFacts) -> ModelFacts:
    """The facts, once every number is one that a model can have, so that working with them neither fails nor takes for ever. Raises
    ModelCodecError otherwise."""
    try:
        others = json.loads(facts.architecture.rope_others or "{}")
    except ValueError as error:
        raise ModelCodecError(f"model facts: rope_others is no JSON: {error}") from error
    if not isinstance(others, dict):
        raise ModelCodecError(f"model facts: rope_others is {others!r}; it must be an object")
    parts = (*_numbers(facts.architecture, "architecture"), *_numbers(facts.weights, "weights"))
    for name, number in parts:
        least = 1 if name.startswith("architecture") and name.rpartition(".")[2] in _POSITIVE else 0
        if not least <= number <= _MOST:
            raise ModelCodecError(f"model facts: {name} is {number}; it must be between {least} and {_MOST}")
    return facts


def _plain(adapter: TypeAdapter[Any], value: object) -> Any:
    return adapter.dump_python(value, mode="json", exclude_defaults=True)


def _packed(architecture: Architecture) -> dict[str, object]:
    mixers = list(dict.fromkeys(layer.mixer for layer in architecture.layers))
    ffns = list(dict.fromkeys(layer.ffn for layer in architecture.layers))
    pairs = [(mixers.index(layer.mixer), ffns.index(layer.ffn)) for layer in architecture.layers]
    packed: dict[str, object] = _plain(_ARCHITECTURE, dataclasses.replace(architecture, layers=()))
    packed["mixers"] = [None if mixer is None else _plain(_MIXER, mixer) for mixer in mixers]
    packed["ffns"] = [None if ffn is None else _plain(_FFN, ffn) for ffn in ffns]
    packed["layers"] = [[*pair, len(list(run))] for pair, run in groupby(pairs)]
    return packed


def _unpacked(packed: dict[str, Any]) -> Architecture:
    mixers = [None if mixer is None else _MIXER.validate_python(mixer) for mixer in packed["mixers"]]
    ffns = [None if ffn is None else _FFN.validate_python(ffn) for ffn in packed["ffns"]]
    runs: Sequence[Sequence[int]] = packed["layers"]
    if not 0 < sum(run[2] for run in runs) <= _MOST_LAYERS or min(min(run) for run in runs) < 0:
        raise ModelCodecError(f"model facts: layers must be runs of numbers, {_MOST_LAYERS} layers at most")
    layers = [Layer(mixer=mixers[mixer], ffn=ffns[ffn]) for mixer, ffn, length in runs for _ in range(length)]
    rest = {key: value for key, value in packed.items() if key not in {"mixers", "ffns"}}
    bare = _ARCHITECTURE.validate_python({**rest, "layers": ()})
    return dataclasses.replace(bare, layers=tuple(layers))


def _numbers(value: object, name: str) -> Iterator[tuple[str, float]]:
    """Every number inside, with the path to it."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield name, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for part in dataclasses.fields(value):
            yield from _numbers(getattr(value, part.name), f"{name}.{part.name}")
    elif isinstance(value, tuple):
        for inner in dict.fromkeys(value):
            yield from _numbers(inner, name)
