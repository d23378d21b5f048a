"""The page about the law's numbers says each of them as it is in the code, and none that is not there."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from plimsoll.control.law import Law
from plimsoll.control.retune import allowed, chance, judging, ladder, sizing, symptoms

PAGE = (Path(__file__).parents[2] / "docs" / "control-law.md").read_text()
ROWS = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
MODULES = {
    "symptoms": symptoms,
    "ladder": ladder,
    "sizing": sizing,
    "judging": judging,
    "allowed": allowed,
    "chance": chance,
}
CHOSEN = {
    name: getattr(MODULES[name.partition(".")[0]], name.partition(".")[2]) for name, *_ in ROWS if "." in name
}


def test_every_number_of_the_law_has_a_row_and_no_row_is_left_of_one_that_is_gone():
    rows = [name for name, *_ in ROWS if "." not in name]
    assert sorted(rows) == sorted(asdict(Law()))
    assert len(ROWS) == len({name for name, *_ in ROWS}) == PAGE.count("\n| `")
    assert CHOSEN


@pytest.mark.parametrize(("name", "told", "does", "why"), ROWS, ids=[name for name, *_ in ROWS])
def test_a_row_has_the_value_of_the_code_and_says_what_it_does_and_why(name, told, does, why):
    assert told.strip() == f"{(asdict(Law()) | CHOSEN)[name]:g}"
    assert len(does.split()) > 4
    assert len(why.split()) > 2
