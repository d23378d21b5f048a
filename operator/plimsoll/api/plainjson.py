"""A JSON reader for text that nobody vouches for: whatever is wrong with it is a ValueError."""

import json
from typing import Any


def parsed(text: str | bytes) -> Any:
    """Also what nests deeper than Python goes down is no more than a bad text, and does not end whoever reads it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep to be read") from None
