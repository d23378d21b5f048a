"""Errors of the user's input, told without a traceback: every problem on a line of its own, with exit code 3."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import IO, Any

import click

from plimsoll.api.problems import Problem

FITS = 0
DOES_NOT_FIT = 2
BAD_INPUT = 3
INTERRUPTED = 130
"""The exit code that shells expect of a command that was ended by Ctrl-C."""
UNREAD = 141
"""The exit code that shells expect of a command whose reader has closed the pipe."""


def printable(text: str) -> str:
    """The text without characters that control a terminal, as others (who wrote a node's labels or a model's config) may have written it."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


class BadInput(click.ClickException):
    """Input that cannot be used. It has all problems, so that one run is enough to find them."""

    exit_code = BAD_INPUT

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.lines = tuple(map(str, problems))

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.lines:
            mark = click.style("error:", bold=True)  # no colour: click knows nothing of NO_COLOR
            click.echo(f"{mark} {printable(line)}", file=file, err=file is None)


def note(lines: Iterable[str]) -> None:
    """Prints notes on stderr, so that the answer on stdout can be piped."""
    for line in lines:
        click.echo(f"{click.style('note:', dim=True)} {printable(line)}", err=True)


def mistakes(*checks: Callable[[], object]) -> list[str]:
    """What these checks object to, each by itself, so that all of it is told at once."""
    found: list[str] = []
    for check in checks:
        try:
            check()
        except BadInput as error:
            found += error.lines
    return found
