"""Whether an adapter was made for the model that is served, as far as widths and numbers of layers show.

This has to be checked here, as an engine copies tensors that are too narrow into wider ones without an error (vLLM 0.32 loaded an adapter of
width 64 for a model of width 256). Two models of the same shape cannot be told apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.fetching import folder_of
from plimsoll_runtime.lora import Wanted
from plimsoll_runtime.model import ModelUnreadable, header

TENSORS = "adapter_model.safetensors"
_MOST_CONFIG = 1 << 20
_MODULE = re.compile(
    r"\.layers\.(\d+)\.(?:self_attn|mlp)\.(q|k|v|gate|up|o|down)_proj\.lora_(A|B)(?:\.default)?\.weight$"
)
_ELSEWHERE = re.compile(r"vision|visual|audio|tower|encoder|mtp")
_READS, _WRITES = frozenset("qkv") | {"gate", "up"}, frozenset(["o", "down"])
"""Projections that read, or write, the hidden state that layers hand on, so that their width is the model's."""


class Base(NamedTuple):
    """Width and layers of the model that is served; None where its config does not say them."""

    width: int | None
    layers: int | None


def base_of(argv: Sequence[str], environment: Mapping[str, str]) -> Base | None:
    """The served model's measures; None where its config.json is not found here."""
    for file in _configs(argv, environment):
        try:
            if file.stat().st_size > _MOST_CONFIG:
                continue
            config = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(config, dict):
            inner = config.get("text_config")
            about = inner if isinstance(inner, dict) else config
            return Base(_count(about.get("hidden_size")), _count(about.get("num_hidden_layers")))
    return None


def _configs(argv: Sequence[str], environment: Mapping[str, str]) -> list[Path]:
    named = [
        Path(word) / "config.json"
        for word in argv
        if word.startswith("/") and (Path(word) / "config.json").is_file()
    ]
    cache = folder_of(argv, environment)
    return named[:1] or ([] if cache is None else sorted((cache / "snapshots").glob("*/config.json")))


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def misfit(wanted: Wanted, folder: Path, base: Base | None) -> Failure | None:
    """The failure where the adapter does not fit; None where it does, or where that is not known."""
    if base is None:
        return None
    try:
        with (folder / TENSORS).open("rb") as stream:
            shapes = {name: shape for name, (_, shape) in header(TENSORS, stream).items()}
    except (OSError, ModelUnreadable):
        return None
    widths, deepest = _measures(shapes)
    if base.width is not None and widths and base.width not in widths:
        return _of_another(wanted, f"it is {min(widths)} wide, and the model is {base.width}")
    if base.layers is not None and deepest is not None and deepest >= base.layers:
        return _of_another(wanted, f"it has a layer {deepest + 1}, and the model has {base.layers}")
    return None


def _measures(shapes: Mapping[str, Any]) -> tuple[set[int], int | None]:
    """Widths that an adapter reads and writes, and the number of its last layer."""
    widths: set[int] = set()
    deepest = None
    for name, shape in shapes.items():
        found = None if _ELSEWHERE.search(name) else _MODULE.search(name)
        if found is None or len(shape) != 2:
            continue
        deepest = max(int(found[1]), deepest or 0)
        if found[2] in _READS and found[3] == "A":
            widths.add(shape[1])
        elif found[2] in _WRITES and found[3] == "B":
            widths.add(shape[0])
    return widths, deepest


def _of_another(wanted: Wanted, how: str) -> Failure:
    return Failure(
        "OtherBaseModel",
        f"it is of another model: {how}",
        f"spec.adapters.items[{wanted.name}].source: an adapter that was trained on spec.model.source",
    )
