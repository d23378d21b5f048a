"""`plimsoll memory`: tables of what fits one GPU, and how that changes with one setting at a time.

It takes no resource and no fleet: the engine is assumed to be started with nothing but the given options, so that figures can be compared with
the engine's own log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import click

from plimsoll.cli import drawing, inputs
from plimsoll.cli.errors import DOES_NOT_FIT, FITS, BadInput
from plimsoll.cli.memory_table import Case, Row, TableQuestion, table_text
from plimsoll.cli.output import output_option, print_data
from plimsoll.facts.architecture import Architecture
from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning import codec
from plimsoll.planning.ask.features import parse_kv_dtype, unkept
from plimsoll.planning.memory.ledger import Verdict

UTILIZATIONS: Final = (80, 85, 88, 90, 92, 94, 96, 98)
TENSORS: Final = (1, 2, 4, 8)


class Percent(click.IntRange):
    """A whole number of percent. It explains itself to people who write a fraction, as for the engine's own flag."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        with suppress(ValueError):
            if 0 < float(value) < 1:
                meant = max(1, round(float(value) * 100))
                self.fail(f"{value} is a fraction; write it in percent, as {meant}", param, ctx)
        return super().convert(value, param, ctx)


@click.command("memory")
@click.argument("model", shell_complete=inputs.model_names)
@click.option(
    "--gpu",
    "gpu_name",
    required=True,
    shell_complete=inputs.gpu_names,
    help="The GPU; `plimsoll gpus` lists them.",
    metavar="NAME",
)
@click.option("--tp", "tensors", multiple=True, help="Tensor parallel sizes, as 2 or 1,2,4.", metavar="N")
@click.option(
    "--sweep",
    type=click.Choice(["utilization", "context", "tp", "kv-dtype"]),
    help="What to vary, all else kept.",
)
@click.option(
    "--context-tokens",
    type=inputs.Tokens(least=16),
    help="Longest request, as 32768, 32K or 32k (32,000). Default: the model's limit.",
)
@click.option("--utilization", type=Percent(1, 100), help="Percent of the GPU, as 90. Default: the engine's.")
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
    question = TableQuestion(model=facts, gpu=gpu, engine=engine, concurrency=concurrency)
    rows = [question.row(case) for case in _cases(start, _sizes(tensors), sweep, facts.architecture, engine)]
    if output == "text":
        drawing.show(table_text(question, rows, sweep))
    else:
        print_data(_data(question, rows), output)
    fits = any(row.ledger and row.ledger.verdict is not Verdict.DOES_NOT_FIT for row in rows)
    raise SystemExit(FITS if fits else DOES_NOT_FIT)


def _sizes(texts: Iterable[str]) -> tuple[int, ...]:
    words = [word.strip() for text in texts for word in text.split(",")]
    bad = [word for word in words if not word.isdecimal() or not 1 <= int(word) <= 1024]
    if bad:
        raise BadInput(*(f"--tp: {word!r} is no size; use a whole number from 1 to 1024" for word in bad))
    return tuple(dict.fromkeys(int(word) for word in words))


def _cases(
    start: Case, tensors: tuple[int, ...], sweep: str | None, architecture: Architecture, engine: EngineFacts
) -> list[Case]:
    """The rows in order: for each tensor size all values of the swept setting."""
    if sweep is None or sweep == "tp":
        return [replace(start, tensor=size) for size in tensors or TENSORS]
    sized = [replace(start, tensor=size) for size in tensors or (1,)]
    if sweep == "utilization":
        return [replace(case, utilization=percent) for case in sized for percent in UTILIZATIONS]
    if sweep == "context":
        ceiling = architecture.max_positions
        lengths = [2048 << step for step in range(20) if 2048 << step < ceiling]
        return [replace(case, context=length) for case in sized for length in (*lengths, ceiling)]
    return [replace(case, kv_dtype=kind) for case in sized for kind in _kinds(engine, architecture)]


def _kinds(engine: EngineFacts, architecture: Architecture) -> list[str]:
    """KV types with different sizes, one name each, as many of the engine's names differ only in kernels."""
    sizes = {
        parsed.bits: kind
        for kind in reversed(engine.kv_dtypes)
        if (parsed := parse_kv_dtype(kind)) is not None and unkept(kind, architecture) is None
    }
    return ["auto", *(sizes[bits] for bits in sorted(sizes, reverse=True) if bits < Dtype.BFLOAT16.bits)]


def _data(asked: TableQuestion, rows: Sequence[Row]) -> object:
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
