"""What is given to the programs here on their command lines: read in one place, so that each says of a slip what would be right."""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from math import inf
from pathlib import Path

from plimsoll.cli.written import try_writing
from plimsoll.facts.gpus import UnknownGpu, gpu_named
from plimsoll.facts.models import lookup


def count(text: str) -> int:
    """How many of something there are, which is to be measured: none of them is no answer."""
    return _whole(text, least=1, otherwise="a whole number above 0")


def from_zero(text: str) -> int:
    """A seed, or how many of something that there need not be."""
    return _whole(text, least=0, otherwise="a whole number from 0 on")


def _whole(text: str, *, least: int, otherwise: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not {otherwise}")
    return int(text)


def amount(text: str) -> float:
    """Of time, or whatever else there is some of."""
    with suppress(ValueError):
        if 0 < (number := float(text)) < inf:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def counts(text: str) -> tuple[int, ...]:
    """Several in one word, with commas, from the least on."""
    return tuple(sorted(count(part) for part in text.split(",")))


def shape(text: str) -> tuple[int, int]:
    """The lengths of a prompt and its answer, as 1024:256."""
    prompt, _, answer = text.partition(":")
    with suppress(argparse.ArgumentTypeError):
        return count(prompt), count(answer)
    raise argparse.ArgumentTypeError(f"{text!r} is not the tokens of a prompt and its answer, as 1024:256")


def gpu(text: str) -> str:
    try:
        gpu_named(text)
    except UnknownGpu as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def model(text: str) -> str:
    if lookup(text) is None:
        raise argparse.ArgumentTypeError(f"the catalogue knows no model {text}; name one as its hub does")
    return text


def lines_file(text: str) -> Path:
    """A file of observations, an object a line."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(
            f"no file {text}; observations are no part of the project, bring them as JSON lines"
        )
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
        if line.strip() and not isinstance(_parsed(line), dict):
            raise argparse.ArgumentTypeError(f"{text}, line {number}: no JSON object; bring JSON lines")
    return path


def kept_file(text: str) -> Path:
    """A file that a run goes on from, as it wrote it; there need be none yet."""
    path = Path(text)
    if path.exists() and not (
        path.is_file() and isinstance(_parsed(path.read_text("utf-8", errors="replace")), dict)
    ):
        raise argparse.ArgumentTypeError(f"{text} was not written by this program")
    return _writable(path)


def lines_kept(text: str) -> Path:
    """A file that a run adds lines to and goes on from, as it wrote them; there need be none yet."""
    path = _writable(Path(text))
    lines = path.read_text("utf-8", errors="replace").split("\n") if path.is_file() else []
    # A line may be cut where a run was stopped, the only one too.
    if any(lines) and not any(line.startswith("[") for line in lines):
        raise argparse.ArgumentTypeError(f"{text} was not written by this program")
    return path


def _writable(path: Path) -> Path:
    """Tried before the work that would be kept there."""
    try:
        try_writing(path)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{path} cannot be written: {error.strerror}; name a file in a folder that is there"
        ) from None
    return path


def _parsed(text: str) -> object:
    with suppress(json.JSONDecodeError):
        return json.loads(text)
    return None
