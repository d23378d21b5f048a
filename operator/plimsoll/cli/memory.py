"""`plimsoll memory`: the tables people make by hand. What fits one GPU, and how it moves with one knob at a time.

No resource and no fleet: an engine started with nothing but what is said here, so that the figures can be held against
the engine's own log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import click
from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing, inputs
from plimsoll.cli.drawing import count, gib, short
from plimsoll.cli.errors import DOES_NOT_FIT, FITS, BadInput
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.report import cache_report, memory_report
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.model import ModelFacts
from plimsoll.planning import codec
from plimsoll.planning.features import parse_kv_dtype
from plimsoll.planning.layout import Layout
from plimsoll.planning.ledger import Ledger, OomRisk, Verdict, build_ledger
from plimsoll.planning.rules import Question, Wishes, first_refusal
from plimsoll.planning.settings import EngineSettings

UTILIZATIONS: Final = (80, 85, 88, 90, 92, 94, 96, 98)
TENSORS: Final = (1, 2, 4, 8)
FEW: Final = 3
"""Reasons that are spelled out under a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row: the knobs as a person writes them."""

    tensor: int
    utilization: int
    context: int
    kv_dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    case: Case
    refused: tuple[str, str] | None
    """Rule and figures where the model cannot be cut like this at all."""
    ledger: Ledger | None


@click.command("memory")
@click.argument("model")
@click.option("--gpu", "gpu_name", required=True, help="The GPU; `plimsoll gpus` lists them.", metavar="NAME")
@click.option("--tp", "tensors", multiple=True, help="Tensor parallel sizes, as 2 or 1,2,4.", metavar="N")
@click.option(
    "--sweep",
    type=click.Choice(["utilization", "context", "tp", "kv-dtype"]),
    help="What to vary, all else kept.",
)
@click.option(
    "--context-tokens", type=click.IntRange(16), help="Longest request. Default: the model's limit."
)
@click.option("--utilization", type=click.IntRange(1, 100), help="Percent of the GPU. Default: the engine's.")
@click.option("--kv-dtype", default="auto", help="Type of the KV cache, as the engine spells it.")
@click.option("--concurrency", type=click.IntRange(1), help="Most requests at once. Default: the engine's.")
@click.option("--engine-version", help="Version of vLLM. Default: the newest that is known.")
@inputs.online_option
@output_option
def memory_command(
    *,
    model: str,
    gpu_name: str,
    tensors: tuple[str, ...],
    sweep: str | None,
    context_tokens: int | None,
    utilization: int | None,
    kv_dtype: str,
    concurrency: int | None,
    engine_version: str | None,
    online: bool,
    output: str,
) -> None:
    """Say how much of MODEL, its KV cache included, fits a GPU.

    MODEL is a name that `plimsoll models` lists, a folder with a config.json, or with --online a repository of the hub.

    \b
    Examples:
      plimsoll memory Qwen/Qwen3-32B --gpu H100
      plimsoll memory Qwen/Qwen3-32B --gpu H100 --tp 2 --sweep context
      plimsoll memory gpt-oss-120b --gpu H200 --sweep kv-dtype --concurrency 64
    """
    gpu, engine = inputs.gpu(gpu_name), inputs.engine(engine_version)
    facts = inputs.model_named(model, online=online)
    ceiling = facts.architecture.max_positions
    if context_tokens is not None and context_tokens > ceiling:
        raise BadInput(f"--context-tokens: {context_tokens} is above the model's {ceiling}; use at most that")
    if kv_dtype != "auto" and parse_kv_dtype(kv_dtype) is None:
        raise BadInput(f"--kv-dtype: {kv_dtype!r} is unknown; use one of {', '.join(engine.kv_dtypes)}")
    start = Case(
        tensor=1,
        utilization=utilization or round(engine.utilization_default * 100),
        context=context_tokens or ceiling,
        kv_dtype=kv_dtype,
    )
    question = _Asked(model=facts, gpu=gpu, engine=engine, concurrency=concurrency)
    rows = [question.row(case) for case in _cases(start, _sizes(tensors), sweep, ceiling, engine)]
    if output == "text":
        drawing.show(_text(question, rows, sweep))
    else:
        print_data(_data(question, rows), output)
    fits = any(row.ledger and row.ledger.verdict is not Verdict.DOES_NOT_FIT for row in rows)
    raise SystemExit(FITS if fits else DOES_NOT_FIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What all rows share."""

    model: ModelFacts
    gpu: Gpu
    engine: EngineFacts
    concurrency: int | None

    def row(self, case: Case) -> Row:
        layout = Layout(tensor=case.tensor)
        refused = first_refusal(layout, Question(architecture=self.model.architecture, wishes=Wishes()))
        if refused is not None:
            return Row(case=case, refused=refused, ledger=None)
        tokens, sequences = self.engine.batch_defaults(
            self.gpu.memory_bytes,
            self.gpu.architecture,
            unified_memory=self.gpu.unified_memory,
            max_model_len=case.context,
        )
        settings = EngineSettings(
            max_model_len=case.context,
            max_num_seqs=self.concurrency or sequences,
            max_num_batched_tokens=max(tokens, self.concurrency or 0),
            utilization=case.utilization / 100,
            kv_dtype=parse_kv_dtype(case.kv_dtype),
            prefix_caching=self.engine.prefix_caching_default,
        )
        ledger = build_ledger(
            model=self.model, gpu=self.gpu, layout=layout, engine=self.engine, settings=settings
        )
        return Row(case=case, refused=None, ledger=ledger)


def _sizes(texts: Iterable[str]) -> tuple[int, ...]:
    words = [word.strip() for text in texts for word in text.split(",")]
    bad = [word for word in words if not word.isdecimal() or not 1 <= int(word) <= 1024]
    if bad:
        raise BadInput(*(f"--tp: {word!r} is no size; use a whole number from 1 to 1024" for word in bad))
    return tuple(dict.fromkeys(int(word) for word in words))


def _cases(
    start: Case, tensors: tuple[int, ...], sweep: str | None, ceiling: int, engine: EngineFacts
) -> list[Case]:
    """The rows in order: one group for each tensor size, and in it the values of what is swept."""
    if sweep is None or sweep == "tp":
        return [replace(start, tensor=size) for size in tensors or TENSORS]
    sized = [replace(start, tensor=size) for size in tensors or (1,)]
    if sweep == "utilization":
        return [replace(case, utilization=percent) for case in sized for percent in UTILIZATIONS]
    if sweep == "context":
        lengths = [2048 << step for step in range(20) if 2048 << step < ceiling]
        return [replace(case, context=length) for case in sized for length in (*lengths, ceiling)]
    return [replace(case, kv_dtype=kind) for case in sized for kind in _kinds(engine)]


def _kinds(engine: EngineFacts) -> list[str]:
    """One spelling of each size that a cache entry can have: many of the engine's names differ only in kernels."""
    sizes = {
        parsed.bits: kind
        for kind in reversed(engine.kv_dtypes)
        if (parsed := parse_kv_dtype(kind)) is not None
    }
    return ["auto", *(sizes[bits] for bits in sorted(sizes, reverse=True) if bits < Dtype.BFLOAT16.bits)]


def _text(asked: _Asked, rows: Sequence[Row], sweep: str | None) -> Iterable[RenderableType]:
    model, gpu, engine = asked.model, asked.gpu, asked.engine
    known = "as the driver shows it" if gpu.memory_measured else "by the data sheet"
    yield Text.assemble(
        (f"{model.source.removeprefix('hf://')} on {gpu.name}", "bold"),
        (f"  {engine.name} {engine.version}; {gib(gpu.memory_bytes, 2)} GiB {known}; {model.origin}", "dim"),
    )
    if engine.approximated_from:
        yield Text(engine.approximated_from, style="dim")
    yield ""
    if len(rows) == 1 and sweep is None and rows[0].ledger is not None:
        yield from memory_report(rows[0].ledger, colour=drawing.is_colourful(), everything=True)
        yield drawing.facts(cache_report(rows[0].ledger))
        return
    columns = [column for column in _COLUMNS if _is_told(column, rows, asked)]
    lines = [[column.show(row, asked) for column in columns] for row in rows]
    heads = [column.head for column in columns]
    yield drawing.table(heads, lines, left=[len(heads) - 1])
    yield ""
    same = [column for column in _COLUMNS[:4] if column not in columns]
    told = ", ".join(f"{column.head.lower()} {column.show(rows[0], asked)}" for column in same)
    yield Text(f"GiB of each GPU; REQUESTS of full length at once. In every row: {told}.", style="dim")
    yield from _reasons(rows)


def _reasons(rows: Sequence[Row]) -> Iterable[RenderableType]:
    """Why rows do not simply fit; a reason that several rows share is said once."""
    said: dict[str, list[Case]] = {}
    for row in rows:
        if row.refused is not None:
            said.setdefault(f"{row.refused[0]}: {row.refused[1]}", []).append(row.case)
        elif row.ledger is not None and row.ledger.verdict is not Verdict.FITS:
            said.setdefault(f"{row.ledger.verdict.value}: {row.ledger.reason}", []).append(row.case)
    for reason, cases in list(said.items())[:FEW]:
        knobs = [column.of_case for column in _COLUMNS if column.of_case and _is_varied(column, rows)]
        marks = ", ".join(" ".join(knob(case) for knob in knobs) for case in cases)
        yield Text(f"{marks}: {reason}.".lstrip(": "))
    if len(said) > FEW:
        yield Text(f"{len(said) - FEW} more reasons with -o json", style="dim")


@dataclass(frozen=True, slots=True)
class _Column:
    head: str
    of_case: Callable[[Case], str] | None
    of_ledger: Callable[[Ledger, _Asked], str] | None = None

    def show(self, row: Row, asked: _Asked) -> str:
        if self.of_case is not None:
            return self.of_case(row.case)
        if row.ledger is None or self.of_ledger is None:
            return "cannot be cut so" if self.head == "VERDICT" else "-"
        return self.of_ledger(row.ledger, asked)


def _is_varied(column: _Column, rows: Sequence[Row]) -> bool:
    return column.of_case is not None and len({column.of_case(row.case) for row in rows}) > 1


def _is_told(column: _Column, rows: Sequence[Row], asked: _Asked) -> bool:
    """Knobs that are the same in every row are said once, below the table."""
    if column.head == "TOKENS EACH":
        return asked.concurrency is not None
    return column.of_case is None or _is_varied(column, rows)


def _term(name: str) -> Callable[[Ledger, _Asked], str]:
    return lambda ledger, _: gib(ledger.term(name).bytes.mid)


def _overheads(ledger: Ledger, _: _Asked) -> str:
    apart = ("weights", "kv", "headroom")
    return gib(sum(term.bytes.mid for term in ledger.terms if term.name not in apart))


def _tokens(ledger: Ledger, _: _Asked) -> str:
    return count(ledger.capacity.tokens.mid) if ledger.capacity else "0"


def _range(ledger: Ledger, _: _Asked) -> str:
    if ledger.capacity is None:
        return "-"
    return f"{count(ledger.capacity.tokens.low)} to {count(ledger.capacity.tokens.high)}"


def _requests(ledger: Ledger, _: _Asked) -> str:
    return short(ledger.capacity.concurrency_at_max_len.mid) if ledger.capacity else "0"


def _each(ledger: Ledger, asked: _Asked) -> str:
    return count(ledger.capacity.tokens.mid // (asked.concurrency or 1)) if ledger.capacity else "0"


def _verdict(ledger: Ledger, _: _Asked) -> str:
    plainly = ledger.verdict is not Verdict.FITS or ledger.risk is OomRisk.LOW
    return ledger.verdict.value if plainly else f"{ledger.verdict.value}, risk {ledger.risk.value}"


_COLUMNS: Final = (
    _Column("TP", lambda case: str(case.tensor)),
    _Column("UTIL", lambda case: f"{case.utilization}%"),
    _Column("CONTEXT", lambda case: count(case.context)),
    _Column("KV DTYPE", lambda case: case.kv_dtype),
    _Column("WEIGHTS", None, _term("weights")),
    _Column("OVERHEAD", None, _overheads),
    _Column("KV POOL", None, _term("kv")),
    _Column("FREE", None, _term("headroom")),
    _Column("KV TOKENS", None, _tokens),
    _Column("90% WITHIN", None, _range),
    _Column("REQUESTS", None, _requests),
    _Column("TOKENS EACH", None, _each),
    _Column("VERDICT", None, _verdict),
)


def _data(asked: _Asked, rows: Sequence[Row]) -> object:
    return {
        "model": asked.model.source,
        "origin": asked.model.origin,
        "gpu": asked.gpu.name,
        "engine": f"{asked.engine.name} {asked.engine.version}",
        "concurrency": asked.concurrency,
        "rows": [
            {
                "tensor": row.case.tensor,
                "utilizationPercent": row.case.utilization,
                "contextTokens": row.case.context,
                "kvDtype": row.case.kv_dtype,
                "refused": None
                if row.refused is None
                else {"rule": row.refused[0], "message": row.refused[1]},
                "ledger": codec.encode(row.ledger),
            }
            for row in rows
        ],
    }
