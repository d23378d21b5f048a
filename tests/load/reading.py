"""A trace from a text, and what is said of one that is refused."""

from __future__ import annotations

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.traces import Rates, Requests, Times, read_trace


def trace(text: str, name: str = "x.csv") -> Requests | Times | Rates:
    return read_trace(text.splitlines(keepends=True), name, sorted_by_time=False)


def refused(text: str, name: str = "x.csv") -> str:
    with pytest.raises(LoadError) as caught:
        list(trace(text, name).lines)
    return str(caught.value)
