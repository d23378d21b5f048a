"""Rows out of the text of an answer, some hundred at a time: those of a large fleet together would be a hundred megabytes of
Python's values, and to make all of them before the first is looked at takes half as long again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from plimsoll.api.plainjson import parsed

PIECE: Final = 32 * 1024
"""Characters that are decoded at once, at least: what they become stays in the processor's cache."""
FIRST: Final = re.compile(r'"result"\s*:\s*(?=\[)')
BETWEEN: Final = re.compile(r'\}\s*,\s*(?=\{\s*"metric")')
"""Between two rows. No text inside of an answer looks like this or the above: quotes in it are escaped."""


def rows_of(text: str) -> Iterator[Any]:
    """ValueError where the text is no JSON or breaks off, perhaps only after some rows."""
    # All but the last piece, which what follows the rows is left in, is read by the faster of two readers that agree.
    begun = FIRST.search(text)
    if begun is None:
        rows = parsed(text)["data"]["result"]
        raise TypeError(f"an instant vector was expected, not a {type(rows).__name__}")
    at = begun.end() + 1
    while (cut := BETWEEN.search(text, at + PIECE)) is not None:
        yield from orjson.loads(f"[{text[at : cut.start()]}}}]")
        at = cut.end()
    rows, _ = json.JSONDecoder().raw_decode(f"[{text[at:]}")
    yield from rows
