"""Rows of observed engine starts, read as the inputs a plan would have had.

A flag that a row does not state is its version's default. What stands only in a row's remarks (prefix caching, decode
context parallelism, speculation, adapters) is read from there. Rows that lack a model, a GPU or a result say so by
name; nothing is guessed for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engine_data import KvTokensLine
from plimsoll.facts.engine_versions import parse_version
from plimsoll.facts.engines import EngineFacts, engine_facts
from plimsoll.facts.gpus import GIB, Gpu, UnknownGpu, Vendor, all_gpus, gpu_named
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.models import lookup
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv_rules import prefix_caching_by_default
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from plimsoll.planning.settings import EngineSettings, LoraSlots, Speculation

LAST_WITH_FIRST_ENGINE = "0.7.3"
"""Where the first engine was the only one by default: its batches, chunks and caching hold for later starts that asked for it."""
MEMORY_OR_LENGTH = re.compile(
    r"oom|out of memory|memory|cache blocks|max seq len|cache room|model length|max.model.len|default length"
    r"|mamba cache|larger than|needs? [\d.]+ gib",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One start that can be planned for, with what the log said."""

    line: int
    row: Mapping[str, Any]
    model: ModelFacts
    gpu: Gpu | None
    device_bytes: int | None
    layout: Layout
    engine: EngineFacts
    settings: EngineSettings
    """With defaults of the GPU where there is one, else of a small card."""
    notes: tuple[str, ...]

    @property
    def available(self) -> float | None:
        return _number(self.row.get("available_kv_gib"))

    @property
    def tokens(self) -> int | None:
        value = self.row.get("kv_tokens")
        return int(value) if value is not None else None

    @property
    def blocks(self) -> int | None:
        value = self.row.get("num_gpu_blocks")
        return int(value) if value is not None else None

    @property
    def concurrency(self) -> float | None:
        return _number(self.row.get("max_concurrency"))

    @property
    def weights(self) -> float | None:
        return _number(self.row.get("model_weights_gib"))

    @property
    def failure(self) -> str | None:
        return self.row.get("failed") or None

    @property
    def failed_for_memory(self) -> bool:
        return self.failure is not None and MEMORY_OR_LENGTH.search(self.failure) is not None

    @property
    def family(self) -> str:
        """Models of one shape, whatever their quantization: what a fit leaves out together."""
        arch = self.model.architecture
        shape = f"{arch.name}/{arch.hidden}/{len(arch.layers)}/{arch.vocab}"
        return sha256(shape.encode()).hexdigest()[:12]

    @property
    def kind(self) -> str:
        arch = self.model.architecture
        if arch.is_hybrid:
            return "hybrid"
        if arch.is_latent:
            return "mla"
        if any(getattr(layer.mixer, "window", None) for layer in arch.layers):
            return "sliding"
        return "moe" if arch.is_moe else "dense"

    @property
    def label(self) -> str:
        gpu = self.row.get("gpu") or (self.gpu.name if self.gpu else "?")
        return f"{self.line:>3} {self.row.get('vllm_version')!s:.14} {gpu!s:.12} {self.layout} {self.row['model']!s:.44}"


@dataclass(frozen=True, slots=True)
class Skipped:
    line: int
    reason: str


def read(paths: list[Path]) -> Iterator[Case | Skipped]:
    line = 0
    for path in paths:
        for text in path.read_text("utf-8").splitlines():
            if text.strip():
                line += 1
                yield _case(line, json.loads(text))


def _case(line: int, row: Mapping[str, Any]) -> Case | Skipped:
    name = row.get("model")
    if not name:
        return Skipped(line, "no model named")
    model = _model(str(name), row.get("quantization"))
    if model is None:
        return Skipped(line, "model not in the catalogue")
    results = ("available_kv_gib", "kv_tokens", "num_gpu_blocks", "max_concurrency", "failed")
    if all(row.get(key) is None for key in results):
        return Skipped(line, "no result")
    notes: list[str] = []
    engine = _engine(row, notes)
    gpu, device = _device(row, notes)
    layout = _layout(row, model)
    largest = device or max(gpu.memory_bytes for gpu in all_gpus())
    if row.get("tp") is None and rank_weight_bytes(model, layout).largest > largest:
        return Skipped(line, "number of GPUs not stated, and one cannot hold the weights")
    settings = _settings(row, model, engine, device=(gpu, device), layout=layout)
    if device is not None:
        settings = _told_by_sums(row, settings, device, notes)
    return Case(
        line=line,
        row=row,
        model=model,
        gpu=gpu,
        device_bytes=device,
        layout=layout,
        engine=engine,
        settings=settings,
        notes=tuple(notes),
    )


def _model(name: str, quantization: str | None) -> ModelFacts | None:
    """By name; where the name is silent about a quantization that the row states, with it."""
    found = lookup(name)
    if found is None or found.architecture.quantization is not None or not quantization:
        return found
    word = re.split(r"[\s/]+", quantization.strip().lower())[0]
    return lookup(f"{name.split(' (', maxsplit=1)[0]}-{word.upper()}") or found


def _engine(row: Mapping[str, Any], notes: list[str]) -> EngineFacts:
    """The release that the text names; a text that says no more than a year is its newest release that fits the row."""
    text = str(row.get("vllm_version") or "")
    engine = engine_facts("vllm", text or None)
    if row.get("engine") == "V0" and not engine.whole_prompts:
        notes.append("ran the first engine in a version that had both")
        first = engine_facts("vllm", LAST_WITH_FIRST_ENGINE)
        return replace(first, version=engine.version, release=engine.release)
    if parse_version(text) is not None:
        return engine
    line = _line_printed(row)
    if re.fullmatch(r"20\d\d( V1)?", text.strip()):
        year = int(text[:4])
        dated = sorted((parse_version(number), day) for number, day in engine.profile.releases.items())
        for version, day in reversed(dated):
            engine = engine_facts("vllm", str(version))
            if day.year == year and line in {None, engine.kv_tokens_line}:
                break
        notes.append(
            f"version {text!r} says a year only; taken as {engine.version}, its newest with this row's tokens line"
        )
    elif line is not None and line != engine.kv_tokens_line:
        notes.append(f"the row's own concurrency shows that its line counts the {line}")
        return replace(engine, kv_tokens_line=line)
    return engine


def _line_printed(row: Mapping[str, Any]) -> KvTokensLine | None:
    """Which of the two meanings the tokens line had, where the row's own concurrency tells."""
    tokens, concurrency, length = row.get("kv_tokens"), row.get("max_concurrency"), row.get("max_model_len")
    if not (tokens and concurrency and length):
        return None
    return "request" if abs(tokens / length - concurrency) <= 0.006 + 1 / length else "pool"


def _device(row: Mapping[str, Any], notes: list[str]) -> tuple[Gpu | None, int | None]:
    """The GPU and its memory; a slice has its own, and memory alone stands for the card that has as much."""
    stated = _number(row.get("gpu_mem_gib"))
    device = int(stated * GIB) if stated else None
    name = str(row.get("gpu") or "")
    gpu = _named(name)
    if gpu is not None:
        slice_ = re.search(r"\b\d+g\.(\d+)gb\b", name)
        if slice_ and device is None:
            # A slice shows about a twentieth less than its name says.
            device = int(int(slice_[1]) * 0.95 * GIB)
        return gpu, device or gpu.memory_bytes
    if device is None:
        return None, None
    nearest = min(
        (gpu for gpu in all_gpus() if gpu.vendor is Vendor.NVIDIA),
        key=lambda gpu: abs(gpu.memory_bytes - device),
    )
    notes.append(f"no GPU named; {nearest.name} has that much memory")
    return nearest, device


def _named(name: str) -> Gpu | None:
    name = re.sub(r"^\s*\d+\s*[x×]\s*|\s*[x×]\s*\d+\s*$", "", name)
    tries = [
        name,
        re.sub(r"\(.*?\)", "", name),
        re.sub(r"\bMIG.*", "", name),
        re.sub(r"\(.*|\bMax-Q.*|,.*", "", name),
        f"RTX {name}" if re.match(r"\s*\d{4}\b", name) else "",
    ]
    for text in dict.fromkeys(text.strip() for text in tries):
        if not text:
            continue
        try:
            return gpu_named(text)
        except UnknownGpu as error:
            # "A100" is several products; the first near name is the common one.
            if error.near and error.near[0].casefold().startswith(text.casefold()):
                return gpu_named(error.near[0])
    return None


def _layout(row: Mapping[str, Any], model: ModelFacts) -> Layout:
    said = f"{row.get('notes') or ''} {row.get('quote') or ''}"
    context = re.search(r"(?:decode-context-parallel-size|dcp_world_size|dcp)[ =]?(\d+)", said, re.IGNORECASE)
    return Layout(
        tensor=int(row.get("tp") or 1),
        pipeline=int(row.get("pp") or 1),
        data=int(row.get("dp") or 1),
        expert_parallel=bool(row.get("ep")) and model.architecture.is_moe,
        decode_context=int(context[1]) if context else 1,
    )


def _settings(
    row: Mapping[str, Any],
    model: ModelFacts,
    engine: EngineFacts,
    *,
    device: tuple[Gpu | None, int | None],
    layout: Layout,
) -> EngineSettings:
    gpu, memory = device
    said = f"{row.get('notes') or ''} {row.get('quote') or ''}"
    length = int(row.get("max_model_len") or model.architecture.max_positions)
    tokens, sequences = engine.batch_defaults(
        memory or 0,
        gpu.architecture if gpu else "",
        unified_memory=bool(gpu and gpu.unified_memory),
        ranks=layout.gpus,
        offline="offline LLM" in said,
        max_model_len=length,
    )
    tokens = int(row.get("max_num_batched_tokens") or tokens)
    sequences = min(int(row.get("max_num_seqs") or sequences), tokens)
    caching = prefix_caching_by_default(model.architecture, engine)
    if re.search(r"prefix caching off|no.enable.prefix.caching", said, re.IGNORECASE):
        caching = False
    elif re.search(r"prefix caching on|--enable-prefix-caching|cache mode align", said, re.IGNORECASE):
        caching = True
    return EngineSettings(
        max_model_len=length,
        max_num_seqs=sequences,
        max_num_batched_tokens=tokens,
        utilization=float(row.get("gpu_memory_utilization") or engine.utilization_default),
        kv_dtype=_kv_dtype(row.get("kv_cache_dtype")),
        block_size=_block_size(said),
        prefix_caching=caching,
        eager=bool(row.get("enforce_eager")),
        lora=_lora(said),
        speculation=_speculation(said),
    )


def _kv_dtype(text: str | None) -> Dtype | None:
    if not text or text == "auto":
        return None
    for word, dtype in (
        ("fp8", Dtype.FP8),
        ("int8", Dtype.INT8),
        ("nvfp4", Dtype.NVFP4),
        ("bfloat16", Dtype.BFLOAT16),
    ):
        if word in text.lower():
            return dtype
    return None


def _block_size(said: str) -> int | None:
    found = re.search(r"--block-size[ =](\d+)", said)
    return int(found[1]) if found else None


def _lora(said: str) -> LoraSlots | None:
    found = re.search(r"max.loras?[ =]+(\d+)\D+rank[ =]+(\d+)", said, re.IGNORECASE)
    return (
        LoraSlots(max_loras=int(found[1]), max_rank=int(found[2]), max_cpu_loras=int(found[1]))
        if found
        else None
    )


def _speculation(said: str) -> Speculation | None:
    found = re.search(r"(?<!no )(?<!without )\b(eagle3?|mtp)\b(?!\s*(?:off|disabled))", said, re.IGNORECASE)
    if not found:
        return None
    tokens = re.search(r"(\d+)\s+spec|num_speculative_tokens\D+(\d+)", said, re.IGNORECASE)
    count = int(next(group for group in tokens.groups() if group)) if tokens else 1
    return Speculation(method=found[1].lower(), tokens=count)


def _told_by_sums(
    row: Mapping[str, Any], settings: EngineSettings, device: int, notes: list[str]
) -> EngineSettings:
    """Where a row prints every term of the budget, their sum is the budget; a stated share it contradicts is a slip."""
    parts = [
        _number(row.get(key))
        for key in ("model_weights_gib", "activation_peak_gib", "non_torch_gib", "available_kv_gib")
    ]
    if any(part is None for part in parts) or row.get("engine") == "V0":
        return settings
    total = sum(part for part in parts if part is not None)
    share = Fraction(round(100 * total * GIB / device), 100)
    if not 0 < share <= 1 or abs(float(share) - settings.utilization) < 0.025:
        return settings
    notes.append(f"states utilization {settings.utilization:g}, but its own terms add up to {float(share):g}")
    return replace(settings, utilization=float(share))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
