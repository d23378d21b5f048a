"""`plimsoll learned`: what real starts have taught about memory, to look at, to hand to another cluster, or to have forgotten."""

from __future__ import annotations

from typing import Any

import click

from plimsoll import names
from plimsoll.cli import drawing
from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.inputs import read_text
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.reaching import context_option, reaching
from plimsoll.facts.gpus import GIB
from plimsoll.facts.learned import (
    NOTHING,
    Learned,
    LearnedError,
    Residual,
    export_learned,
    forgotten,
    import_learned,
)
from plimsoll.facts.snapshot import read_snapshot

namespace_option = click.option(
    "--namespace",
    "-n",
    metavar="NAMESPACE",
    help="The operator's, where several hold what was learned. Default: the only one.",
)
snapshot_option = click.option("--snapshot", "file", metavar="FILE", help="A snapshot in place of a cluster.")


@click.group("learned")
def learned_command() -> None:
    """What starts of engines have taught: by how much each term of the memory ledger is off, for a model on a GPU.

    Plans add it to the term, and say so as "learned". The operator keeps it in the ConfigMap plimsoll-learned of its own
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
@namespace_option
@snapshot_option
@output_option
def list_command(
    *, words: tuple[str, ...], context: str, namespace: str | None, file: str | None, output: str
) -> None:
    """List what was learned, or what of it holds all WORDS."""
    known = _known(context, namespace, file)
    left = forgotten(known, words=words) if words else NOTHING
    found = [one for one in known.residuals if one not in left.residuals]
    if output != "text":
        print_data([_row(one) for one in found], output)
        return
    if not found:
        note(
            [
                "nothing was learned yet"
                if not known.residuals
                else "nothing of what was learned holds these words"
            ]
        )
        return
    heads = ("MODEL", "GPU", "ENGINE", "FLAGS", "TERM", "GIB", "+/-", "STARTS")
    rows = [
        (
            one.name or one.key.model,
            one.key.gpu,
            one.key.engine,
            one.key.flags,
            one.term,
            f"{one.bytes / GIB:+.2f}",
            f"{one.half_width / GIB:.2f}",
            str(one.starts),
        )
        for one in found
    ]
    drawing.show([drawing.table(heads, rows, left=(0, 1, 2, 3, 4))])


@learned_command.command("export")
@context_option
@namespace_option
@snapshot_option
def export_command(*, context: str, namespace: str | None, file: str | None) -> None:
    """Print all of it, one line an entry, as a seed for another cluster."""
    click.echo(export_learned(_known(context, namespace, file)), nl=False)


@learned_command.command("forget")
@click.argument("words", nargs=-1, required=True)
@context_option
@namespace_option
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
        gone = len(before.residuals) - len(after.residuals)
        if gone:
            kept.replace(export_learned(after))
    left = (
        drawing.many(len(after.residuals), "entry")
        if len(after.residuals) == 1
        else f"{len(after.residuals)} entries"
    )
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
    key = one.key
    return {
        "name": one.name,
        "model": key.model,
        "gpu": key.gpu,
        "engine": key.engine,
        "flags": key.flags,
        "term": one.term,
        "bytes": one.bytes,
        "halfWidth": one.half_width,
        "starts": one.starts,
    }
