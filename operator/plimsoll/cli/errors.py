"""What a user did wrong, told without a traceback: every problem on its own line, exit code 3."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import click

from plimsoll.api.problems import Problem

FITS = 0
DOES_NOT_FIT = 2
BAD_INPUT = 3
INTERRUPTED = 130
"""What shells expect of a command that ended by Ctrl-C."""


def printable(text: str) -> str:
    """Text that cannot steer a terminal: whoever wrote a node's labels or a model's config wrote some of what is printed."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


class BadInput(click.ClickException):
    """Input that cannot be used; carries everything that is wrong with it, so that one run is enough to mend it."""

    exit_code = BAD_INPUT

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.lines = tuple(map(str, problems))

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.lines:
            mark = click.style("error:", bold=True)  # no colour: click knows nothing of NO_COLOR
            click.echo(f"{mark} {printable(line)}", file=file, err=file is None)


def note(lines: Iterable[str]) -> None:
    """Things worth knowing that are not the answer: on stderr, so that the answer can be piped."""
    for line in lines:
        click.echo(f"{click.style('note:', dim=True)} {printable(line)}", err=True)
