"""Judges adapters: reads the list that declares them, checks their files before an engine loads them, and explains the engine's answers. When
to fetch and to load them is decided by `adapters`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plimsoll_runtime.failure import Failure, plain

SCHEMA = 1
RANK = 16
"""The highest rank that an engine takes by default."""
MOST = 256
MOST_CONFIG = 1 << 20
CONFIG = "adapter_config.json"
TENSORS = ("adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt")
_ITEMS = "spec.adapters.items"
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
_TRACE = re.compile(r"^\s*(File |Traceback|\^)")


class ListUnreadable(ValueError):
    """A list that does not have the form that this release knows."""


class Wanted(NamedTuple):
    """One adapter as declared."""

    name: str
    id: str
    """It differs where source or revision differ."""
    source: str
    revision: str | None = None
    path: str | None = None
    """Its folder in a pod that has the volume with it; None where it must be fetched."""


def wanted_of(text: bytes) -> list[Wanted]:
    """The adapters of a list, in its order. Unknown fields, which a later release may add, are ignored."""
    try:
        body = json.loads(text)
        if body["schema"] != SCHEMA:
            raise ListUnreadable(f"its schema is {body['schema']}, and this release reads {SCHEMA}")
        found = [
            Wanted(
                str(one["name"]),
                str(one["id"])[:64],
                str(one["source"]),
                _text(one.get("revision")),
                _text(one.get("path")),
            )
            for one in body["adapters"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ListUnreadable(f"the list of adapters cannot be read: {error}") from None
    if len(found) > MOST or len({one.name for one in found}) < len(found):
        raise ListUnreadable(f"the list of adapters has a name twice, or more than {MOST} of them")
    return found


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def judged(wanted: Wanted, folder: Path, max_rank: int) -> Failure | None:
    """The failure where the engine is certain to refuse the adapter; None where it is left to the engine."""
    where = f"{_ITEMS}[{wanted.name}].source"
    if not folder.is_dir():
        return Failure(
            "NotMounted",
            f"{folder} is not in this pod",
            f"{where}: a folder that is there; what lies on a claim that the pods do not have comes with the pods of a new set",
        )
    try:
        about = _config(folder / CONFIG)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Failure(
            "NotAnAdapter",
            f"{wanted.source} has no {CONFIG} that can be read: {why}",
            f"{where}: a folder or repository that peft wrote",
        )
    kind = about.get("peft_type", "LORA")
    if kind != "LORA":
        return Failure(
            "NotAnAdapter", f"its kind is {kind}, and engines load LORA", f"{where}: a LoRA adapter"
        )
    rank = rank_of(about)
    if rank is not None and rank > max_rank:
        return rank_failure(rank, max_rank)
    if not any((folder / name).is_file() for name in TENSORS):
        return Failure(
            "NotAnAdapter",
            f"{wanted.source} has no {TENSORS[0]}",
            f"{where}: a folder with the adapter's tensors",
        )
    return None


def _config(file: Path) -> Mapping[str, Any]:
    if file.stat().st_size > MOST_CONFIG:
        raise ValueError(f"it is longer than {MOST_CONFIG} bytes")
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deep to be read") from error
    if not isinstance(about, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - the file's, not a caller's
    return about


def rank_of(about: Mapping[str, Any]) -> int | None:
    """The highest rank of any module; None where the config does not say it."""
    pattern = about.get("rank_pattern")
    ranks = [about.get("r"), *(pattern.values() if isinstance(pattern, dict) else ())]
    return max((rank for rank in ranks if type(rank) is int), default=None)


def rank_failure(rank: int, max_rank: int) -> Failure:
    enough = next((one for one in _RANKS if one >= rank), None)
    helps = (
        f"spec.adapters.maxRank: {enough}, which makes a new set"
        if enough is not None
        else f"an adapter of rank {_RANKS[-1]} or less"
    )
    return Failure(
        "AdapterRank", f"its rank is {rank}, and the engine was started for {max_rank} at most", helps
    )


def refused(wanted: Wanted, status: int, text: str) -> Failure:
    """Why the engine did not load an adapter, in its own words where the cause is not a known one."""
    said, where = _said(text), f"{_ITEMS}[{wanted.name}]"
    if status in (401, 403):
        return Failure(
            "EngineKey",
            f"the engine does not take the key that the supervisor has ({status})",
            "spec.networking.apiKeySecret, and no --api-key in spec.engine.extraArgs",
        )
    if status == 404 and "adapter" not in said.lower():
        return Failure(
            "NoRuntimeLoading",
            "this engine has no /v1/load_lora_adapter",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING in spec.engine.env left as it is, or spec.adapters.runtimeLoading: false",
        )
    if (ranks := re.search(r"rank (\d+) is greater than max_lora_rank (\d+)", said)) is not None:
        return rank_failure(int(ranks[1]), int(ranks[2]))
    if "conflicts with a served base model" in said:
        return Failure(
            "NameTaken", "the model itself is served under this name", f"{where}.name: another one"
        )
    if _OTHER_MODEL.search(said) is not None:
        return Failure(
            "OtherBaseModel",
            f"its tensors do not fit the model that is served: {said}",
            f"{where}.source: an adapter that was trained on spec.model.source",
        )
    return Failure(
        "AdapterRefused", f"the engine refuses it ({status}): {said}", f"{where}.source: see the reason"
    )


_OTHER_MODEL = re.compile(
    r"size of tensor|size mismatch|shape mismatch|must match the size|expected target modules|unexpected modules|"
    r"is unsupported LoRA weight|invalid for input of size|not divisible",
    re.IGNORECASE,
)


def _said(text: str) -> str:
    """The message in an error's answer, or the last line of a traceback."""
    try:
        body = json.loads(text)
        text = str((body.get("error") or body).get("message") or body.get("detail") or text)
    except (ValueError, AttributeError, RecursionError):
        pass
    lines = [line for line in text.splitlines() if line.strip() and not _TRACE.match(line)]
    return plain(lines[-1] if lines else text)
