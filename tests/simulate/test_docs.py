"""docs/simulate.md names what the reader of traces knows, and every policy there is."""

import re
from pathlib import Path

import pytest

from plimsoll.load.trace_forms import RequestColumns, columns_of
from plimsoll.load.trace_rates import RateColumns
from plimsoll.simulate.policies.registry import KINDS

DOCS = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
OURS = ("arrival_s", "input_tokens", "output_tokens", "prefix_block_ids")


def rows() -> list[list[str]]:
    """The names of each row of the table: when, prompt, answer, shared beginnings."""
    table = re.findall(r"^\| (?:when|prompt|answer|shared)[^|]*\| ([^|]+) \|$", DOCS, re.MULTILINE)
    return [re.findall(r"`([^`]+)`", row) for row in table]


@pytest.mark.parametrize("place", range(len(OURS)))
def test_every_name_of_a_column_that_is_told_is_known(place: int):
    assert rows()[place][0] == OURS[place]
    for name in rows()[place]:
        head = [name if here == place else ours for here, ours in enumerate(OURS)]
        found = columns_of(head)
        assert isinstance(found, RequestColumns)
        assert name in (found.at, found.input_tokens, found.output_tokens, found.blocks)


@pytest.mark.parametrize(("row", "counted"), [("rates", False), ("counts by interval", True)])
def test_every_name_of_a_column_of_numbers_is_known(row: str, counted: bool):
    (told,) = re.findall(rf"^\| {row} \| ([^|]+) \|$", DOCS, re.MULTILINE)
    named = re.findall(r"`([^`]+)`", told)
    assert len(named) > 5
    for name in named:
        found = columns_of(["time", "other", name])
        assert isinstance(found, RateColumns)
        assert (found.rate, found.per_second is None, found.said) == (name, counted, True)


def test_every_policy_is_told():
    assert [name for name in KINDS if f"`{name}`" not in DOCS and name != "plimsoll"] == []
