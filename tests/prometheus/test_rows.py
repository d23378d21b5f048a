"""An answer in pieces has the rows that it has as a whole, and what is no answer is never taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.prometheus import rows
from plimsoll.prometheus.rows import lack_of, rows_of

TEXTS = st.text(max_size=12) | st.sampled_from(
    ['"result":[', ']},{"metric":{', '}, {"metric"', "\\", ']}, {\\"metric"']
)
TIMES = st.integers(-(2**63), 2**63 - 1)
"""Further ones, which no clock shows, are rounded."""
ROWS = st.lists(
    st.fixed_dictionaries({"metric": st.dictionaries(TEXTS, TEXTS, max_size=3), "value": st.tuples(TIMES, TEXTS)}),
    max_size=12,
)  # fmt: skip


def text(found: Any, *, compact: bool = True, first: str = "status") -> str:
    whole = {first: "success", "data": {"resultType": "vector", "result": found}, "warnings": ["result"]}
    return json.dumps(whole, separators=(",", ":") if compact else (", ", ": "))


@given(ROWS, st.booleans(), st.integers(0, 300))
def test_pieces_of_any_size_have_the_rows_of_the_whole(found: list[Any], compact: bool, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "PIECE", size)
        assert list(rows_of(text(found, compact=compact))) == json.loads(json.dumps(found))


@pytest.mark.parametrize(
    ("beside", "lack"),
    [
        ({}, ""),
        ({"warnings": ["store a: gone", "store b: gone"]}, "store a: gone; store b: gone"),
        ({"infos": ["no counter"], "isPartial": False}, ""),
        ({"warnings": ["PromQL warning: quantile value should be between 0 and 1, got 99 (1:1)"]}, ""),
        ({"warnings": ['PromQL warning: bucket label "le" is missing', "store a: gone"]}, "store a: gone"),
        ({"isPartial": True}, "isPartial"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_an_answer_may_lack_is_told_beside_its_rows(
    beside: dict[str, Any], lack: str, first: bool
) -> None:
    row = {"metric": {"warnings": 'x"warnings":["no"]', "isPartial": '"isPartial":true'}, "value": [1, "2"]}
    data = {"data": {"resultType": "vector", "result": [row]}}
    assert lack_of(json.dumps({**beside, **data} if first else {**data, **beside})) == lack


def test_an_answer_that_breaks_off_is_an_error_wherever_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "PIECE", 10)
    row = {"metric": {"pod": "chat-0"}, "value": [1000.5, "3"]}
    whole = text([row, row, row])
    for end in range(whole.index("}]") + 2):
        with pytest.raises(json.JSONDecodeError):
            list(rows_of(whole[:end]))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("", ValueError),
        ("{", ValueError),
        ('{"data": {}}', KeyError),
        ('{"data": {"result": {}}}', TypeError),
    ],
)
def test_what_is_no_vector_has_no_rows(said: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(rows_of(said))


@pytest.mark.parametrize("count", [1, 400, 5000])
def test_however_many_stores_are_away_they_are_noticed(count: int) -> None:
    warned = [f"store {number} is not reachable: {'x' * 200}" for number in range(count)]
    row = {"metric": {"pod": "a", "warnings": "a label of that name"}, "value": [0, "1"]}
    data = {"resultType": "vector", "result": 3 * [row]}
    for answer in ({"data": data, "warnings": warned}, {"warnings": warned[:100], "data": data}):
        assert lack_of(json.dumps({"status": "success", **answer})).startswith("store 0 is not reachable")
