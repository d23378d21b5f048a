"""`plimsoll learned`: lists, exports or removes what was learned from starts about memory, and from ramps about speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
from rich.console import RenderableType

from plimsoll import names
from plimsoll.cli import drawing
from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.inputs import read_text
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.reaching import context_option, namespace_option, reaching
from plimsoll.facts.gpus import GIB
from plimsoll.facts.learned import (
    NOTHING,
    Learned,
    Residual,
    export_learned,
    forgotten,
    import_learned,
)
from plimsoll.facts.learned_rows import LearnedError
from plimsoll.facts.learned_speed import Speed
from plimsoll.facts.snapshot import read_snapshot

operator_option = namespace_option(
    "The operator's, where several hold what was learned. Default: the only one."
)
NAMED: Final = ("MODEL", "GPU", "ENGINE", "FLAGS")
snapshot_option = click.option("--snapshot", "file", metavar="FILE", help="A snapshot in place of a cluster.")


@click.group("learned")
def learned_command() -> None:
    """What starts of engines have taught: by how much each term of the memory ledger is off, for a model on a GPU. And what ramps
    that were recorded have: by what factor answers are slower or faster than predicted.

    Plans reckon with both, and say so as "learned". The operator keeps it in the ConfigMap plimsoll-learned of its own
    namespace. What `export` prints can be another cluster's seed: a ConfigMap plimsoll-learned-seed with the key learned.json.

    \b
    Examples:
      plimsoll learned list qwen3 h100
      plimsoll learned export > learned.json
      plimsoll learned forget Qwen/Qwen3-32B
    """


@learned_command.command("list")
@click.argument("words", nargs=-1)
@context_option
@operator_option
@snapshot_option
@output_option
def list_command(
    *, words: tuple[str, ...], context: str, namespace: str | None, file: str | None, output: str
) -> None:
    """List what was learned, or what of it holds all WORDS."""
    known = _known(context, namespace, file)
    left = forgotten(known, words=words) if words else NOTHING
    found = [one for one in known.residuals if one not in left.residuals]
    speeds = [one for one in known.speeds if one not in left.speeds]
    if output != "text":
        print_data([*map(_row, found), *map(_speed_row, speeds)], output)
        return
    if not found and not speeds:
        note(
            [
                "nothing was learned yet"
                if known == NOTHING
                else "nothing of what was learned holds these words"
            ]
        )
        return
    tables = [*([_memory(found)] if found else []), *([_speeds(speeds)] if speeds else [])]
    drawing.show([tables[0], *(part for table in tables[1:] for part in ("", table))])


def _memory(found: Sequence[Residual]) -> RenderableType:
    rows = [
        (*_named(one), one.term, f"{one.bytes / GIB:+.2f}", f"{one.half_width / GIB:.2f}", str(one.starts))
        for one in found
    ]
    return drawing.table((*NAMED, "TERM", "GIB", "+/-", "STARTS"), rows, left=(0, 1, 2, 3, 4))


def _speeds(found: Sequence[Speed]) -> RenderableType:
    """The factors on predicted times, each with its range."""
    rows = [
        (
            *_named(one),
            f"x {one.ttft:.2f}",
            f"{one.ttft_spread:.2f}",
            f"x {one.tpot:.2f}",
            f"{one.tpot_spread:.2f}",
            f"{one.input_tokens} + {one.output_tokens}",
            str(one.points),
        )
        for one in found
    ]
    heads = (*NAMED, "TTFT", "WITHIN", "TPOT", "WITHIN", "TOKENS", "LOADS")
    return drawing.table(heads, rows, left=(0, 1, 2, 3))


def _named(one: Residual | Speed) -> tuple[str, str, str, str]:
    return one.name or one.key.model, one.key.gpu, one.key.engine, one.key.flags


@learned_command.command("export")
@context_option
@operator_option
@snapshot_option
def export_command(*, context: str, namespace: str | None, file: str | None) -> None:
    """Print all of it, one line an entry, as a seed for another cluster."""
    click.echo(export_learned(_known(context, namespace, file)), nl=False)


@learned_command.command("forget")
@click.argument("words", nargs=-1, required=True)
@context_option
@operator_option
def forget_command(*, words: tuple[str, ...], context: str, namespace: str | None) -> None:
    """Take out what holds all WORDS: of a model's name, a GPU, an engine's version, a term."""
    from plimsoll.kube.forgetting import learned_object  # noqa: PLC0415 - the client loads for a second

    with reaching(context):
        kept = learned_object(context or None, namespace)
        if kept is None:
            note(["nothing was learned yet"])
            return
        before = _read(kept.text, names.LEARNED)
        after = forgotten(before, words=words)
        gone = before.entries - after.entries
        if gone:
            kept.replace(export_learned(after))
    left = drawing.many(after.entries, "entry") if after.entries == 1 else f"{after.entries} entries"
    note([f"{gone} forgotten, {left} left"])


def _known(context: str, namespace: str | None, file: str | None) -> Learned:
    if file is not None:
        return read_snapshot(read_text(file)).learned
    from plimsoll.kube.forgetting import learned_object  # noqa: PLC0415 - the client loads for a second

    with reaching(context):
        kept = learned_object(context or None, namespace)
    return NOTHING if kept is None else _read(kept.text, names.LEARNED)


def _read(text: str, name: str) -> Learned:
    try:
        return import_learned(text)
    except LearnedError as error:
        raise BadInput(f"ConfigMap {name}: {error}") from None


def _row(one: Residual) -> dict[str, Any]:
    return {
        "name": one.name,
        **one.key.to_data(),
        "term": one.term,
        "bytes": one.bytes,
        "halfWidth": one.half_width,
        "starts": one.starts,
    }


def _speed_row(one: Speed) -> dict[str, Any]:
    return {"name": one.name, **one.key.to_data(), "term": "speed", **one.figures()}
