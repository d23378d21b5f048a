"""Rows of an answer, made from its text some hundred at a time.

All rows of a large fleet together would be a hundred megabytes of Python objects, and to make them all before the first is used would
take half as long again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from plimsoll.api.plainjson import parsed

PIECE: Final = 32 * 1024
"""Characters that are decoded at once, at least: few enough for what they become to stay in the processor's cache."""
FIRST: Final = re.compile(r'"result"\s*:\s*(?=\[)')
BETWEEN: Final = re.compile(r'\}\s*,\s*(?=\{\s*"metric")')
"""What stands between two rows. No string within an answer can look like this or the above, as its quotes are escaped."""


ENDS: Final = 64 * 1024
"""Characters at either end of an answer among which it is looked for that it is partial."""
WARNINGS: Final = re.compile(r'"warnings"\s*:\s*(?=\[)')
OF_THE_QUESTION: Final = "PromQL "
"""How warnings begin that are about what was asked, as of a quantile above 1, and not about series that may be missing."""
PARTIAL: Final = re.compile(r'"isPartial"\s*:\s*true')


def lack_of(text: str) -> str:
    """Why series may be missing in an answer, as Thanos and VictoriaMetrics tell it beside the rows; empty where nothing says so."""
    at = max(0, len(text) - ENDS)
    # There may be many of them, one for each store that is away. Last is where they stand, unless a label has their name.
    warned = WARNINGS.match(text, max(0, text.rfind('"warnings"'))) or WARNINGS.search(text, 0, ENDS)
    if warned is not None:
        said, _ = json.JSONDecoder().raw_decode(text, warned.end())
        return "; ".join(one for one in map(str, said) if not one.startswith(OF_THE_QUESTION))
    return "isPartial" if PARTIAL.search(text, 0, ENDS) or PARTIAL.search(text, at) else ""


def rows_of(text: str) -> Iterator[Any]:
    """ValueError where the text is no JSON or breaks off, perhaps only after some rows."""
    # All pieces are read by the faster of two readers, except for the last, in which something follows the rows.
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
