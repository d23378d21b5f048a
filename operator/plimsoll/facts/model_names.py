"""Which catalogue entry a name means. Names are normalised, and must then be equal; a similar name is never enough.

First the whole repository is looked up, then its name without the organisation, then both again without a quantization suffix, which
then says the quantization. Sizes and generations are never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameMatch:
    """The catalogue entry that a name means."""

    entry: str
    quantization: str | None
    """The quantization that the name's suffix says; None where the entry's own holds."""
    note: str
    """Empty where the match is exact."""

    @property
    def exact(self) -> bool:
        return not self.note


_SUFFIX = re.compile(
    r"[-_. (]+(?P<name>fp8[-_]dynamic|fp8[-_]block|fp8|nvfp4|mxfp4|awq[-_](?:int4|4bit)|awq|gptq[-_]int4|gptq[-_]int8|gptq"
    r"|quantized[._-]w4a16|quantized[._-]w8a8|quantized[._-]w8a16|w4a16|w8a8|w8a16|autoround[-_ ]int4|int4[-_ ]autoround"
    r"|autoround|int8|int4|bnb[-_]4bit|4bit|8bit|bf16)(?:[-_](?:kv|g\d+|asym|sym))*\)?$",
    re.IGNORECASE,
)
_MEANING = {
    "4bit": "int4", "8bit": "int8", "awq-4bit": "awq", "awq-int4": "awq", "autoround-int4": "autoround",
    "int4-autoround": "autoround", "quantized-w4a16": "w4a16", "quantized-w8a8": "w8a8", "quantized-w8a16": "w8a16",
}  # fmt: skip
# How publishers store what they simply call FP8. It decides where scales are, and so which shards a kernel can cut.
_FP8_BY_PUBLISHER = {
    "qwen": "fp8-block",
    "deepseek-ai": "fp8-block",
    "zai-org": "fp8-block",
    "nvidia": "modelopt",
}


def match_name(name: str, entries: Sequence[str]) -> NameMatch | None:
    wanted = name.strip().removeprefix("hf://")
    if wanted in entries:
        return NameMatch(wanted, None, "")
    by_full = {_normal(entry): entry for entry in entries}
    by_name: dict[str, list[str]] = {}
    for entry in entries:
        by_name.setdefault(_normal(_bare(entry)), []).append(entry)
    if _normal(wanted) in by_full:
        return NameMatch(by_full[_normal(wanted)], None, "")
    found = _only(by_name.get(_normal(_bare(wanted))))
    if found is not None:
        return NameMatch(found, None, f"{found}, which has this name")
    suffix = _SUFFIX.search(wanted)
    if suffix is None:
        return None
    stem = wanted[: suffix.start()]
    found = by_full.get(_normal(stem)) or _only(by_name.get(_normal(_bare(stem))))
    if found is None:
        return None
    scheme = _scheme(suffix["name"], wanted)
    return NameMatch(found, scheme, f"{found} with quantization {scheme}, as the name says")


def _scheme(suffix: str, name: str) -> str:
    key = re.sub(r"[_. ]", "-", suffix.lower())
    if key == "fp8":
        return _FP8_BY_PUBLISHER.get(name.partition("/")[0].lower(), "fp8")
    return _MEANING.get(key, key)


def _only(found: list[str] | None) -> str | None:
    """The only entry found; None where there are several, as two organisations may use one name for different models."""
    return found[0] if found and len(found) == 1 else None


def _bare(name: str) -> str:
    return name.rpartition("/")[2]


def _normal(name: str) -> str:
    return re.sub(r"[-_. ]+", "-", name.strip().lower())
