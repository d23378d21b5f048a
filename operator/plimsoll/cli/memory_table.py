"""The rows and columns of `plimsoll memory`: each row is a ledger, for an engine started with nothing but the row's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, gib, many, short
from plimsoll.cli.ledgers import cache_report, memory_report
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.gpus import Gpu
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.features import kv_word, parse_kv_dtype, unkept
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.layouts.rules import (
    FORMAT_RULES,
    Question,
    Site,
    Wishes,
    first_refusal,
    refusal_on,
)
from plimsoll.planning.memory.kv_rules import prefix_caching_by_default
from plimsoll.planning.memory.ledger import Ledger, Verdict, build_ledger
from plimsoll.planning.settings import EngineSettings

FEW_REASONS: Final = 3
"""How many reasons are spelled out below a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The settings of a row, as a person writes them."""

    tensor: int
    utilization: int
    context: int
    kv_dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    case: Case
    refused: tuple[str, str] | None
    """Rule and figures, where the model cannot be split in this way at all."""
    ledger: Ledger | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuestion:
    """What all rows have in common."""

    model: ModelFacts
    gpu: Gpu
    engine: EngineFacts
    concurrency: int | None

    def row(self, case: Case) -> Row:
        layout = Layout(tensor=case.tensor)
        question = Question(
            architecture=self.model.architecture,
            wishes=Wishes(),
            kv_dtype=kv_word(case.kv_dtype, self.model.architecture),
            release=self.engine.release,
        )
        site = Site(gpu=self.gpu, devices_per_node=case.tensor, devices=case.tensor)
        refused = first_refusal(layout, question) or refusal_on(layout, question, site, FORMAT_RULES)
        if refused is None and (why := unkept(case.kv_dtype, self.model.architecture)) is not None:
            refused = "cache-format", why
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
            prefix_caching=prefix_caching_by_default(self.model.architecture, self.engine),
        )
        ledger = build_ledger(
            model=self.model, gpu=self.gpu, layout=layout, engine=self.engine, settings=settings
        )
        return Row(case=case, refused=None, ledger=ledger)


def table_text(asked: TableQuestion, rows: Sequence[Row], sweep: str | None) -> Iterable[RenderableType]:
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
    yield drawing.table(heads, lines, left=[len(heads) - 2, len(heads) - 1])
    yield ""
    same = [column for column in _COLUMNS[:4] if column not in columns]
    told = ", ".join(f"{column.head.lower()} {column.show(rows[0], asked)}" for column in same)
    yield Text(f"GiB of each GPU; REQUESTS of full length at once. In every row: {told}.", style="dim")
    yield from _reasons(rows)


def _reasons(rows: Sequence[Row]) -> Iterable[RenderableType]:
    """Why rows do not fit, or only just. A reason of several rows is told once."""
    said: dict[str, list[Case]] = {}
    for row in rows:
        if row.refused is not None:
            said.setdefault(f"{row.refused[0]}: {row.refused[1]}", []).append(row.case)
        elif row.ledger is not None and row.ledger.verdict is not Verdict.FITS:
            said.setdefault(f"{row.ledger.verdict.value}: {row.ledger.reason}", []).append(row.case)
    for reason, cases in list(said.items())[:FEW_REASONS]:
        yield Text(f"{_which(cases, rows)}{reason}.")
    if len(said) > FEW_REASONS:
        yield Text(f"{many(len(said) - FEW_REASONS, 'more reason')} with -o json", style="dim")


def _which(cases: Sequence[Case], rows: Sequence[Row]) -> str:
    """The settings of these rows that tell them from the others: `tp 1, 2: `."""
    told = []
    for column in _COLUMNS:
        if column.of_case is not None and _is_varied(column, rows):
            here = dict.fromkeys(map(column.of_case, cases))
            if len(here) < len({column.of_case(row.case) for row in rows}):
                told.append(f"{column.head.lower()} {', '.join(here)}")
    return f"{'; '.join(told)}: " if told else ""


@dataclass(frozen=True, slots=True)
class _Column:
    head: str
    of_case: Callable[[Case], str] | None
    of_ledger: Callable[[Ledger, TableQuestion], str] | None = None
    of_cache: bool = False
    """Whether the column is only for models that keep a cache."""

    def show(self, row: Row, asked: TableQuestion) -> str:
        if self.of_case is not None:
            return self.of_case(row.case)
        if row.ledger is None or self.of_ledger is None:
            return "cannot run" if self.head == "VERDICT" else "-"
        if self.of_cache and not _keeps_cache(row.ledger):
            return "-"
        return self.of_ledger(row.ledger, asked)


def _is_varied(column: _Column, rows: Sequence[Row]) -> bool:
    return column.of_case is not None and len({column.of_case(row.case) for row in rows}) > 1


def _is_told(column: _Column, rows: Sequence[Row], asked: TableQuestion) -> bool:
    """Whether a column is shown. Settings that are the same in every row are told once below the table instead."""
    if column.head == "TOKENS EACH":
        return asked.concurrency is not None
    return column.of_case is None or _is_varied(column, rows)


def _weights(ledger: Ledger, _: TableQuestion) -> str:
    return gib(ledger.term("weights").bytes.mid)


def _keeps_cache(ledger: Ledger) -> bool:
    return ledger.capacity is None or ledger.capacity.blocks.high > 0


def _pool(ledger: Ledger, _: TableQuestion) -> str:
    return gib(ledger.term("kv").bytes.mid)


def _free(ledger: Ledger, _: TableQuestion) -> str:
    """Free memory of a model without a cache: what would otherwise be the pool."""
    unused = ("headroom",) if _keeps_cache(ledger) else ("headroom", "kv")
    return gib(sum(ledger.term(name).bytes.mid for name in unused))


def _overheads(ledger: Ledger, _: TableQuestion) -> str:
    apart = ("weights", "kv", "headroom")
    return gib(sum(term.bytes.mid for term in ledger.terms if term.name not in apart))


def _tokens(ledger: Ledger, _: TableQuestion) -> str:
    return count(ledger.capacity.tokens.mid) if ledger.capacity else "0"


def _range(ledger: Ledger, _: TableQuestion) -> str:
    """The range around the expected value that contains 90% of real starts."""
    tokens = ledger.capacity.tokens if ledger.capacity else None
    if tokens is None or not tokens.mid:
        return "-"
    return f"{tokens.low / tokens.mid - 1:+.0%} to {tokens.high / tokens.mid - 1:+.0%}"


def _requests(ledger: Ledger, _: TableQuestion) -> str:
    return short(ledger.capacity.concurrency_at_max_len.mid) if ledger.capacity else "0"


def _each(ledger: Ledger, asked: TableQuestion) -> str:
    return count(ledger.capacity.tokens.mid // (asked.concurrency or 1)) if ledger.capacity else "0"


_COLUMNS: Final = (
    _Column("TP", lambda case: str(case.tensor)),
    _Column("UTIL", lambda case: f"{case.utilization}%"),
    _Column("CONTEXT", lambda case: count(case.context)),
    _Column("KV DTYPE", lambda case: case.kv_dtype),
    _Column("WEIGHTS", None, _weights),
    _Column("OVERHEAD", None, _overheads),
    _Column("KV POOL", None, _pool, of_cache=True),
    _Column("FREE", None, _free),
    _Column("KV TOKENS", None, _tokens, of_cache=True),
    _Column("90% WITHIN", None, _range, of_cache=True),
    _Column("REQUESTS", None, _requests, of_cache=True),
    _Column("TOKENS EACH", None, _each, of_cache=True),
    _Column("VERDICT", None, lambda ledger, _: ledger.verdict.value),
    _Column("OOM RISK", None, lambda ledger, _: ledger.risk.value),
)
