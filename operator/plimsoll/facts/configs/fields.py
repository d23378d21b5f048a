"""Typed access to a config.json, whatever a family calls its keys, with errors that name the key and what would be right.

Every reader below this one goes through `Fields`, so a missing or absurd value is said the same way everywhere, and a
value that a rule had to fill in is remembered in one list that ends up in `Architecture.assumed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.facts.configs.defaults import DEFAULTS
from plimsoll.facts.dtypes import Dtype

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "text_model_config")

_DTYPES = {
    "float32": Dtype.FLOAT32, "float": Dtype.FLOAT32, "fp32": Dtype.FLOAT32,
    "bfloat16": Dtype.BFLOAT16, "bf16": Dtype.BFLOAT16,
    "float16": Dtype.FLOAT16, "half": Dtype.FLOAT16, "fp16": Dtype.FLOAT16,
    "float8_e4m3fn": Dtype.FP8, "fp8": Dtype.FP8,
}  # fmt: skip


_LARGEST = 1 << 36


def _first_other(entries: Sequence[object]) -> object:
    return next(entry for entry in entries if isinstance(entry, bool) or not isinstance(entry, int))


class ConfigError(ValueError):
    """A config.json that cannot be read; the message names the key, its value and what would be right."""


@dataclass(slots=True)
class Fields:
    raw: Mapping[str, object]
    assumed: list[str] = field(default_factory=list)
    outer: Mapping[str, object] = field(default_factory=dict)
    """The whole file, where `raw` is the language model inside a multimodal one."""

    @property
    def model_type(self) -> str:
        return self.text("model_type") or ""

    def value(self, *names: str) -> object:
        """The first of these keys that is there and not null."""
        for name in names:
            found = self.raw.get(name)
            if found is not None:
                return found
        return None

    def integer(self, *names: str, least: int = 0) -> int | None:
        for name in names:
            found = self.raw.get(name)
            if found is None:
                continue
            if isinstance(found, float) and found.is_integer():
                found = int(found)
            if isinstance(found, bool) or not isinstance(found, int) or found < least:
                raise ConfigError(
                    f"config.json: {name} is {found!r}; it must be a whole number of at least {least}"
                )
            if found > _LARGEST:
                raise ConfigError(f"config.json: {name} is {found:.3g}; no model is that large")
            return found
        return None

    def required(self, *names: str) -> int:
        found = self.integer(*names, least=1)
        if found is None:
            others = f" (also read as {', '.join(names[1:])})" if len(names) > 1 else ""
            raise ConfigError(
                f"config.json: {names[0]} is missing{others}; without it the model's size is unknown"
            )
        return found

    def integers(self, name: str) -> list[int] | None:
        """A list of whole numbers; None where the key holds no list."""
        found = self.sequence(name)
        if found is None:
            return None
        numbers = [entry for entry in found if isinstance(entry, int) and not isinstance(entry, bool)]
        if len(numbers) < len(found):
            raise ConfigError(
                f"config.json: {name} holds {_first_other(found)!r}; it must hold whole numbers only"
            )
        return numbers

    def number(self, *names: str) -> float | None:
        """A finite number that may have a fraction."""
        found = self.value(*names)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < _LARGEST:
            raise ConfigError(f"config.json: {names[0]} is {found!r}; it must be a number of at least 0")
        return float(found)

    def assume(self, key: str, value: int) -> int:
        self.assumed.append(key)
        return value

    def flag(self, *names: str) -> bool | None:
        found = self.value(*names)
        if found is None or isinstance(found, bool):
            return found
        raise ConfigError(f"config.json: {names[0]} is {found!r}; it must be true or false")

    def text(self, *names: str) -> str | None:
        found = self.value(*names)
        return found if isinstance(found, str) else None

    def mapping(self, *names: str) -> Mapping[str, object] | None:
        found = self.value(*names)
        return found if isinstance(found, Mapping) else None

    def sequence(self, *names: str) -> Sequence[object] | None:
        found = self.value(*names)
        return found if isinstance(found, Sequence) and not isinstance(found, str) else None

    def within(self, *names: str) -> Fields:
        """The object under one of these keys, empty where there is none. What is assumed in it is added to the list of the whole config."""
        return Fields(self.mapping(*names) or {}, self.assumed, self.outer)

    def objects(self, name: str) -> list[Fields] | None:
        """A list of objects; None where the key holds no list."""
        found = self.sequence(name)
        if found is None:
            return None
        if not found or not all(isinstance(entry, Mapping) for entry in found):
            raise ConfigError(f"config.json: {name} must hold one object a layer")
        return [Fields(entry, self.assumed, self.outer) for entry in found if isinstance(entry, Mapping)]

    def dtype(self, *names: str) -> Dtype | None:
        found = self.text(*names)
        if found is None:
            return None
        return _DTYPES.get(found.removeprefix("torch."))


def language_model(config: Mapping[str, object]) -> Fields:
    """The fields of the language model, with those that only the object around it has (dtype, tying, quantization), and where there is one,
    with its class's defaults."""
    raw: Mapping[str, object] = config
    outer: dict[str, object] = {}
    while True:
        inner = next((raw[name] for name in _NESTED if isinstance(raw.get(name), Mapping)), None)
        if not isinstance(inner, Mapping):
            break
        outer.update({key: value for key, value in raw.items() if value is not None})
        raw = inner
    inherited = {key: outer[key] for key in _INHERITED if key in outer}
    own = {key: value for key, value in raw.items() if value is not None}
    grouped = {
        key: value
        for group in _GROUPS
        if isinstance(inner := own.get(group), Mapping)
        for key, value in inner.items()
        if value is not None
    }
    silent = DEFAULTS.get(str(own.get("model_type")), {}) if raw is not config else {}
    filled = {key: value for key, value in silent.items() if key not in raw and key not in inherited}
    sizes = [key for key, value in filled.items() if not isinstance(value, bool)]
    return Fields({**filled, **grouped, **inherited, **own}, assumed=sizes, outer=config)


_GROUPS = ("attn_config", "ffn_config")
"""Objects that hold some of the model's own keys (DBRX, MPT)."""


_INHERITED = (
    "model_type",
    "tie_word_embeddings",
    "torch_dtype",
    "dtype",
    "quantization_config",
    "compression_config",
    "max_position_embeddings",
    "architectures",
)
