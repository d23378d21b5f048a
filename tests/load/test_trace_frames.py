"""What Grafana shows as the JSON of a panel's data, read as its CSV is."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import Rates, open_trace, read_trace

TIMES = [1790000000000, 1790000060000, 1790000120000]


def frame(
    values: Sequence[object],
    name: str = "Value",
    unit: str | None = None,
    labels: Mapping[str, str] | None = None,
    times: Sequence[object] = TIMES,
) -> dict[str, object]:
    number = {"name": name, "type": "number", "config": {} if unit is None else {"unit": unit}}
    fields = [{"name": "Time", "type": "time", "config": {}}, {**number, "labels": labels or {}}]
    return {"schema": {"refId": "A", "fields": fields}, "data": {"values": [times, values]}}


def read(held: object, indent: int | None = None) -> Rates:
    text = json.dumps(held, indent=indent)
    found = read_trace(text.splitlines(keepends=True), "x.json", sorted_by_time=False)
    assert isinstance(found, Rates)
    return found


def refused(held: object) -> str:
    with pytest.raises(LoadError) as caught:
        list(read(held).lines)
    return str(caught.value)


FORMS: Mapping[str, Callable[..., object]] = {
    "a frame": lambda one: one,
    "a list of frames": lambda *frames: list(frames),
    "a panel": lambda *frames: {"state": "Done", "series": list(frames)},
    "an answer": lambda *frames: {"results": {"A": {"status": 200, "frames": list(frames)}}},
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_series_of_requests_a_second_is_read_in_each_form(form: str, indent: int | None, tmp_path: Path):
    file = tmp_path / "panel.json.gz"
    text = json.dumps(FORMS[form](frame([1.5, 2, None], unit="reqps")), indent=indent)
    file.write_bytes(gzip.compress(text.encode()))
    with open_trace(file) as found:
        assert isinstance(found, Rates)
        assert list(found.lines) == [Rate(0, 1.5, 1), Rate(60, 2, 1)]
        assert found.notes == ("1 line holds no value: the rate before them is taken to go on",)
        assert found.began is not None
        assert found.began.isoformat() == "2026-09-21T14:13:20+00:00"


@pytest.mark.parametrize(
    ("unit", "first"),
    [("reqps", 120), ("cps", 120), ("ops", 120), ("reqpm", 2), ("opm", 2), ("suffix: req/min", 2)],
)
def test_the_unit_of_a_panel_says_what_is_counted_whatever_its_series_is_called(unit: str, first: float):
    found = read([frame([120, 90, 60], name="request latency count", unit=unit)])
    assert next(found.lines).per_second == pytest.approx(first)
    assert not found.notes


def test_without_a_unit_its_name_says_it_as_in_a_table():
    assert [one.per_second for one in read([frame([60, 120, 30], name="requests", unit="short")]).lines] == [
        1,
        2,
        0.5,
    ]
    assert next(read([frame([60, 120, 30], name="requests/min")]).lines).per_second == 1
    (note,) = read([frame([1.5, 2, 3], labels={"model": "chat"})]).notes
    assert note.startswith('nothing says what {model="chat"} counts: requests a second are taken')
    assert "whole numbers may be rates or counts" in refused([frame([1, 2, 3])])


def test_of_several_series_the_one_that_is_of_requests_is_read():
    beside = frame([0.5, -0.6, 0.7], name="p95", unit="s"), frame([1, 2, 3], name="busy", unit="short")
    found = read([*beside, frame([1.5, 2, 3], name="chat", unit="reqps")])
    assert [one.per_second for one in found.lines] == [1.5, 2, 3]


@pytest.mark.parametrize("unit", ["reqps", None])
def test_several_series_of_requests_are_told_to_be_added_up_where_they_are_asked_for(unit: str | None):
    pods = [frame([1.5, 2, 3], unit=unit, labels={"pod": pod}) for pod in "abcd"]
    assert refused(pods) == (
        'x.json: holds 4 series ({pod="a"}, {pod="b"}, {pod="c"} and 1 more), and one is replayed: keep one, or have the query add them up, '
        "as sum() does"
    )


def test_what_is_no_number_where_nothing_was_measured_is_passed_over():
    found = read([frame([1.5, float("nan"), 3], unit="reqps")])
    assert [(one.at, one.per_second) for one in found.lines] == [(0, 1.5), (120, 3)]


def test_values_that_are_not_in_order_are_put_in_order():
    found = read(frame([2, 1.5, 3], unit="reqps", times=[TIMES[1], TIMES[0], TIMES[2]]))
    assert [one.per_second for one in found.lines] == [1.5, 2, 3]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([], "is one JSON list"),
        ({"state": "Done", "series": []}, "holds no series of numbers over time"),
        ([{"schema": {"fields": [{"name": "a", "type": "string"}]}, "data": {"values": [["x"]]}}], "holds no series"),
        ([frame([1.5], name="p95", unit="s")], "holds no series of requests: p95 is in 's'; "),
        ([frame([1.5, 2, 3], name="p95 latency")], "nothing says that p95 latency is of requests; "),
        ([frame([1.5, -2, 3], unit="reqps")], "a value of Value is -2; it must be a number that is not negative"),
        ([frame([1.5, "x", 3], unit="reqps")], "a value of Value is 'x'; it must be a number"),
        ([frame([1.5, True, 3], unit="reqps")], "a value of Value is True; it must be a number"),
        ([frame([1.5, 2], unit="reqps")], "Value holds 2 values at 3 times"),
        ([frame([1.5, 2, 3], unit="reqps", times=[1, "x", 3])], "a time of Value is 'x'; it must be in ms"),
        ([frame([1.5, 2, 3], unit="reqps", times=[1, 1, 3])], "two values of Value are of the same time"),
        ({"schema": {"fields": 5}, "data": {"values": []}}, "holds no series"),
        ({"schema": {"fields": [5]}, "data": 5}, "holds no series"),
        (
            {"results": {"A": {"status": 400, "error": "parse error"}}},
            "is Grafana's answer that the query failed: parse error",
        ),
    ],
)  # fmt: skip
def test_what_is_no_rate_over_time_is_told(held: object, said: str):
    found = refused(held)
    assert found.startswith("x.json: ")
    assert said in found


def test_a_document_that_is_cut_off_is_told_to_be():
    text = json.dumps([frame([1.5, 2, 3])])[:-9]
    with pytest.raises(LoadError, match=r"x.json: begins as the JSON of a panel of Grafana, and is no JSON"):
        read_trace([text], "x.json")
