"""`plimsoll import`: turns what serves a model today into LLMDeployments on stdout, and says what became of every part of it.

What was translated or lost is told on stderr, and in comments over the resource where its form has any, so that a reviewer reads it too. The many forms are read by
`importing`.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any, Final

import click
import yaml

from plimsoll.cli.errors import BadInput
from plimsoll.cli.importing import Fate, Imported, ImportProblem, import_text
from plimsoll.cli.inputs import engine, read_text
from plimsoll.cli.output import print_data

_NAME: Final = "metadata.name"


class OfWords(click.Command):
    """A command whose argument is another command line. Where that stands without quotes, its options would be read as ours, and it is said how it is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        told = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not told or told[0].startswith("-"):
                raise
            given = f"plimsoll import -- {shlex.join(told)}"
            ctx.fail(
                f"{error.option_name} is no option of import; give a command line in quotes, or as: {given}"
            )


@click.command("import", cls=OfWords)
@click.argument("words", nargs=-1, metavar="[COMMAND_LINE | -- WORDS...]")
@click.option("-f", "--filename", "file", metavar="FILE", help="Read the text from a file; - is stdin.")
@click.option("--name", help="Name of the LLMDeployment. Default: the text's own, else after the model.")
@click.option(
    "--engine-version", help="Version of vLLM to write for. Default: the text's own, else the newest."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Form of the resources; several are one List in JSON.",
)
def import_command(
    *, words: tuple[str, ...], file: str | None, name: str | None, engine_version: str | None, output: str
) -> None:
    """Turn what serves a model today into LLMDeployments.

    Read are a `vllm serve` or `docker run` command line, a systemd unit, a compose file, the engine's own config file,
    Deployments, StatefulSets and Pods, and the resources of KServe, KubeAI, production-stack and Dynamo.

    \b
    Examples:
      plimsoll import "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2" > llm.yaml
      plimsoll import -- vllm serve Qwen/Qwen3-32B -tp 2
      plimsoll import -f docker-compose.yaml
      kubectl get deployment chat -o yaml | plimsoll import -f -
    """
    if engine_version is not None:
        engine(engine_version)
    imported = _imported(_text(words, file), file, name, engine_version)
    if output == "json" or not sys.stdout.isatty():
        # On a terminal the comments over the resource say the same; in a pipe they would be out of sight.
        for line in _account(imported):
            click.echo(line, err=True)
    if output == "json":
        print_data(_one_document(imported), "json")
    else:
        click.echo(_yaml(imported), nl=False)


def _text(words: tuple[str, ...], file: str | None) -> str:
    if file is not None and words:
        raise BadInput("import: give a command line or -f FILE, not both")
    if file is not None:
        try:
            return read_text(file).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadInput(f"{file}: not UTF-8 at byte {error.start}; convert it first") from None
    if not words:
        raise BadInput("import: nothing to read; give a command line in quotes, -- and its words, or -f FILE")
    if len(words) > 1:
        return shlex.join(words)
    if re.fullmatch(r"\S+\.(ya?ml|json|service|sh|txt)", words[0]):
        name = words[0]
        raise BadInput(
            f"import: {name!r} is a file's name and no command line; give plimsoll import -f {name}"
        )
    return words[0]


def _imported(text: str, file: str | None, name: str | None, version: str | None) -> Imported:
    try:
        return import_text(text, name=name, engine_version=version)
    except ImportProblem as error:
        if name is not None and str(error).startswith(_NAME):
            raise BadInput(f"--name{str(error).removeprefix(_NAME)}") from None
        where = "import" if file is None else "stdin" if file == "-" else file
        raise BadInput(f"{where}: {error}") from None


def _account(imported: Imported) -> Iterator[str]:
    """What a person should look at: everything that did not simply become a field."""
    for kind, fates in (("translated", imported.translated), ("lost", imported.lost)):
        for fate in fates:
            yield f"{kind}: {_said(fate)}"
    for warning in imported.warnings:
        yield f"warning: {_line(warning)}"


def _said(fate: Fate) -> str:
    became = f" -> {fate.to}" if fate.to else ""
    why = f" ({fate.why})" if fate.why else ""
    return _line(f"{fate.what}{became}{why}")


def _line(text: str) -> str:
    return " ".join(text.split())


def _yaml(imported: Imported) -> str:
    comments = "".join(f"# {line}\n" for line in _account(imported))
    bodies = [
        yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)
        for document in imported.documents
    ]
    return comments + "---\n".join(bodies)


def _one_document(imported: Imported) -> dict[str, Any]:
    """The resources as what `plan -f` and `kubectl apply -f` take; JSON holds one document, so that several are a List."""
    if len(imported.documents) == 1:
        return imported.documents[0]
    return {"apiVersion": "v1", "kind": "List", "items": list(imported.documents)}
