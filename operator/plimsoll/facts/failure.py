"""Why an engine ended, as its supervisor wrote it in the termination message: a word for machines, a sentence and a remedy for people.

A pod wrote it, so its form and length are checked before anybody is told. A message of any other form was not written by a supervisor,
but is the engine's own last output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from plimsoll.api.plainjson import parsed

LONGEST: Final = 600
_WORD: Final = re.compile(r"[A-Z][A-Za-z]{0,62}")
# Halves of surrogate pairs stand for no character, and no JSON or YAML can be written with them.
_CONTROL: Final = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+"
)


@dataclass(frozen=True, slots=True)
class Failure:
    word: str
    """In CamelCase; a known word becomes the reason of a condition."""
    message: str
    remedy: str


def read_failure(text: str) -> Failure | None:
    """The failure in a termination message; None where no supervisor wrote it."""
    if not text.startswith("{"):
        return None
    try:
        data = parsed(text)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    word, message, remedy = data.get("word"), data.get("message"), data.get("remedy")
    if not isinstance(word, str) or not isinstance(message, str) or not _WORD.fullmatch(word):
        return None
    return Failure(word, plain(message, LONGEST), plain(remedy, LONGEST) if isinstance(remedy, str) else "")


def plain(text: str, longest: int) -> str:
    """The text in one line, without control characters, and cut to a length."""
    clean = " ".join(_CONTROL.sub(" ", text).split())
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"
