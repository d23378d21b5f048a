"""Words and spellings that other tools have for what an LLMDeployment says: a slip that is not one of letters, told with what is meant here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

_GPU: Final = "spec.topology.gpuProducts, a list of names as `plimsoll gpus` has them"
_DECIDED: Final = "the plan decides what a pod asks for, and spec.podPatches can change it"
_FIELDS: Final[Mapping[str, str]] = {
    "accelerator": _GPU,
    "accelerators": _GPU,
    "args": "spec.engine.extraArgs",
    "command": "spec.engine.extraArgs",
    "dtype": "spec.engine.extraArgs with --dtype",
    "enforceEager": "spec.engine.eager",
    "gpu": _GPU,
    "gpuMemoryUtilization": "spec.memory.utilizationPercent, in percent",
    "gpuType": _GPU,
    "gpus": _GPU,
    "hardware": _GPU,
    "instanceType": _GPU,
    "maxModelLen": "spec.workload.contextTokens",
    "maxNumBatchedTokens": "spec.engine.maxBatchedTokens",
    "maxNumSeqs": "spec.engine.maxSequences",
    "maxReplicas": "spec.scaling.max",
    "minReplicas": "spec.scaling.min",
    "modelUri": "spec.model.source",
    "parallelism": "spec.topology",
    "pipelineParallelSize": "spec.topology.pipeline",
    "resources": _DECIDED,
    "storageUri": "spec.model.source",
    "tensorParallelSize": "spec.topology.tensor",
}
"""Fields of KServe, KAITO, llm-d, production-stack and of vLLM's own flags, and what says the same here."""

_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(k|K|m|M|ms|s|min|h|%)")
_TOKENS: Final = {"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2}
_SECONDS: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "min": Decimal(60), "h": Decimal(3600)}  # fmt: skip


def field_meant(name: str) -> str:
    """Where that stands here what a field of this name says elsewhere, as a clause; empty where that is unknown."""
    meant = _FIELDS.get(name, "")
    return f"here it is {meant}" if meant.startswith("spec.") else meant


def number_meant(field: str, value: object) -> str:
    """How a number with a unit or as a share is written in a field that takes whole numbers, as `in percent, as 90`; empty where that is unknown."""
    if field.endswith("Percent") and isinstance(value, float) and 0 < value < 1:
        return _written("in percent, ", Decimal(str(value)) * 100)
    if field.endswith("Ms") and isinstance(value, float) and 0 < value < 1:
        return _written("in milliseconds, ", Decimal(str(value)) * 1000)
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return ""
    number, unit = Decimal(match[1]), match[2]
    if unit == "%":
        return _written("in percent, ", number) if field.endswith("Percent") else ""
    if field.endswith("Ms"):
        return _written("in milliseconds, ", number * _SECONDS[unit] * 1000) if unit in _SECONDS else ""
    if field.endswith("Seconds"):
        return _written("in seconds, ", number * _SECONDS[unit]) if unit in _SECONDS else ""
    return _written("", number * _TOKENS[unit]) if unit in _TOKENS else ""


def _written(unit: str, number: Decimal) -> str:
    return f"{unit}as {int(number)}" if number == int(number) else ""
