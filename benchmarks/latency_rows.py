"""Measured latency points as the product's own values: model, device, layout, settings and load of each row.

What a row does not state is assumed here, once and aloud: the engine's defaults of its version, and the cache format
(`assumed_cache`). Rows that cannot be read are returned with the reason, never dropped in silence.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.facts.architecture import Part
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import EngineFacts, engine_facts
from plimsoll.facts.gpus import Gpu, UnknownGpu, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.load import Load
from plimsoll.planning.memory.ledger import build_ledger
from plimsoll.planning.settings import EngineSettings
from plimsoll.planning.speed.formats import stored_format
from plimsoll.planning.speed.performance import Case, Replica

_FORMATS: Mapping[str, tuple[tuple[Dtype, ...], str]] = {
    "fp8": ((Dtype.FP8,), "FP8"),
    "fp4": ((Dtype.NVFP4, Dtype.MXFP4), "NVFP4"),
    "nvfp4": ((Dtype.NVFP4,), "NVFP4"),
    "mxfp4": ((Dtype.MXFP4,), "MXFP4"),
    "int4": ((Dtype.INT4,), "W4A16"),
    "int8": ((Dtype.INT8,), "W8A8"),
    "bf16": ((Dtype.BFLOAT16, Dtype.FLOAT16), "BF16"),
    "fp16": ((Dtype.BFLOAT16, Dtype.FLOAT16), "BF16"),
}


class Skipped(Exception):
    """A row that cannot be used, with the reason it is counted under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    model_name: str
    system: str
    precision: str
    version: str
    model: ModelFacts
    gpu: Gpu
    engine: EngineFacts
    layout: Layout
    settings: EngineSettings
    load: Load
    kv_tokens: float | None
    ttft: float
    tpot: float
    """Both in seconds, as measured."""
    replica: Replica
    case: Case
    stated: Mapping[str, str]

    @property
    def pair(self) -> tuple[str, str]:
        return self.model_name, self.system


COLUMNS = frozenset({
    "model", "system", "input_tokens", "output_tokens", "concurrency", "tp", "ttft_ms", "tpot_ms"
})  # fmt: skip


def points_file(text: str) -> Path:
    """A file of measured points, or the reason why it is none, in the form that argument parsers print."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(
            f"no file {text}; measured points are no part of the project, bring a CSV of them"
        )
    with path.open(newline="", encoding="utf-8") as file:
        missing = COLUMNS - set(csv.DictReader(file).fieldnames or ())
    if missing:
        raise argparse.ArgumentTypeError(f"{text} has no column {', '.join(sorted(missing))}")
    return path


def read_rows(paths: Sequence[Path]) -> tuple[list[Row], Counter[str]]:
    rows, skipped = [], Counter[str]()
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            for raw in csv.DictReader(file):
                try:
                    rows.append(row_of(raw))
                except Skipped as reason:
                    skipped[str(reason)] += 1
    return rows, skipped


def row_of(raw: Mapping[str, str]) -> Row:
    model = _model(raw["model"], (raw.get("precision") or "").strip().lower())
    gpu = _gpu(raw["system"])
    layout, concurrency = _layout(raw)
    load = Load(
        input_tokens=_number(raw, "input_tokens"),
        output_tokens=_number(raw, "output_tokens"),
        concurrency=concurrency,
    )
    engine = engine_facts("vllm", raw.get("vllm_version") or None)
    batched, sequences = engine.batch_defaults(gpu.memory_bytes, gpu.architecture)
    settings = EngineSettings(
        max_model_len=load.input_tokens + load.output_tokens,
        max_num_seqs=max(sequences, concurrency),
        max_num_batched_tokens=batched,
        utilization=engine.utilization_default,
        kv_dtype=assumed_cache(model, gpu),
    )
    tokens = _pool(model, gpu, layout, engine, settings)
    replica = Replica.of(
        model=model, gpu=gpu, layout=layout, engine=engine, settings=settings, kv_tokens=tokens
    )
    return Row(
        model_name=raw["model"],
        system=raw["system"],
        precision=(raw.get("precision") or "").strip().lower(),
        version=raw.get("vllm_version") or "",
        model=model,
        gpu=gpu,
        engine=engine,
        layout=layout,
        settings=settings,
        load=load,
        kv_tokens=tokens,
        ttft=_measured(raw, "ttft_ms"),
        tpot=_measured(raw, "tpot_ms"),
        replica=replica,
        case=replica.case(load),
        stated=dict(raw),
    )


def _gpu(system: str) -> Gpu:
    """By its name, else by the name without the form factor that files add to every system."""
    for name in (system, system.rpartition("_")[0]):
        try:
            return gpu_named(name)
        except UnknownGpu:
            continue
    raise Skipped(f"unknown system {system}")


def _model(name: str, precision: str) -> ModelFacts:
    found = lookup(name)
    if found is None:
        raise Skipped(f"unknown model {name}")
    if not precision:
        return found
    if precision not in _FORMATS:
        raise Skipped(f"unknown precision {precision}")
    formats, suffix = _FORMATS[precision]
    part = Part.EXPERTS if found.architecture.is_moe else Part.FFN
    if stored_format(found.architecture, part) in formats:
        return found
    bare = name.rpartition("/")[2]
    for variant in (f"nvidia/{bare}-{suffix}", f"{name}-{suffix}"):
        other = lookup(variant)
        if other is not None and stored_format(other.architecture, part) in formats:
            return other
    raise Skipped(f"no {precision} variant of {name} is known")


def _layout(raw: Mapping[str, str]) -> tuple[Layout, int]:
    """The layout that ran, and the requests in flight on all of it.

    Rows with `attention_dp` equal to `tp` ran on `tp` devices, attention data-parallel over them and experts spread, and
    count concurrency by attention rank: MiniMax-M2.5 on B200 "TP2 DP2 at 8" equals "TP2 EP2 at 16" within 1% at seven loads.
    """
    tensor, pipeline = _number(raw, "tp"), _number(raw, "pp", 1)
    data, experts = _number(raw, "attention_dp", 1), _number(raw, "moe_ep", 1)
    concurrency = _number(raw, "concurrency")
    if data > 1 and data == tensor:
        tensor = 1
    layout = Layout(tensor=tensor, pipeline=pipeline, data=data, expert_parallel=experts > 1)
    return layout, concurrency * data


def assumed_cache(model: ModelFacts, gpu: Gpu) -> Dtype | None:
    """The rows do not state the cache's format. `auto`, except quantized models on Blackwell, where pools that rows show
    (512 sequences of 2,048 tokens of MiniMax-M2.5 on two B200) need 8 bits."""
    if gpu.architecture == "blackwell" and model.architecture.quantization is not None:
        return Dtype.FP8
    return None


def _pool(
    model: ModelFacts, gpu: Gpu, layout: Layout, engine: EngineFacts, settings: EngineSettings
) -> float:
    """Tokens the ledger expects; a row that was measured did hold one request, whatever the ledger says."""
    ledger = build_ledger(model=model, gpu=gpu, layout=layout, engine=engine, settings=settings)
    expected = ledger.capacity.tokens.mid if ledger.capacity else 0.0
    return max(expected, float(settings.max_model_len))


def _number(raw: Mapping[str, str], field: str, default: int | None = None) -> int:
    text = (raw.get(field) or "").strip()
    if not text and default is not None:
        return default
    try:
        value = int(float(text))
    except ValueError:
        raise Skipped(f"{field} is not a number") from None
    return default if value < 1 and default is not None else value


def _measured(raw: Mapping[str, str], field: str) -> float:
    try:
        value = float(raw[field])
    except (KeyError, ValueError):
        raise Skipped(f"{field} was not measured") from None
    if value <= 0:
        raise Skipped(f"{field} was not measured")
    return value / 1000
