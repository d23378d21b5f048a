"""What spreadsheets and exports of other countries and tools write: read, or told by what would be right."""

from pathlib import Path

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import Arrived, Rates, Times, open_trace, read_trace
from tests.load.reading import refused


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("time;rate_rps\n0;1,5\n60;2,25\n", "rate_rps is '1,5'"),
        ("time;rate_rps\n0;1.234,5\n60;2\n", "rate_rps is '1.234,5'"),
        ('time,requests\n0,"1,024"\n60,"2,048"\n', "requests is '1,024'"),
        ("time;input_tokens;output_tokens\n0;1 024;6\n", "input_tokens is '1 024'"),
        ("time;input_tokens;output_tokens\n0;1'024;6\n", 'input_tokens is "1\'024"'),
        ("time;rate_rps;cv\n0;1;1,5\n", "cv is '1,5'"),
    ],
)
def test_a_number_with_a_comma_or_a_blank_is_told_how_it_is_to_be_written(text: str, value: str):
    found = refused(text)
    assert value in found
    assert found.endswith("; decimals stand after a point, and nothing stands between thousands")


def test_what_is_no_number_at_all_is_told_nothing_of_points():
    assert "decimals" not in refused("time,input_tokens,output_tokens\n0,a b,6\n")


def test_a_table_in_another_encoding_is_not_said_to_be_no_table(tmp_path: Path):
    file = tmp_path / "log.csv"
    file.write_bytes("time;path\n0.5;café\n".encode("latin-1"))
    with (
        pytest.raises(LoadError, match=r"log.csv.*: is not in UTF-8 .*; save it as UTF-8"),
        open_trace(file) as found,
    ):
        list(found.lines)


def test_columns_may_be_separated_by_bars():
    found = read_trace(["time|input_tokens|output_tokens\n", "0|374|44\n"], "x")
    assert list(found.lines) == [Arrived(0.0, 374, 44)]


def test_a_date_without_any_mark_is_no_number_of_seconds():
    found = read_trace(["date,requests\n", "20261130,86400\n", "20261201,172800\n"], "x")
    assert isinstance(found, Rates)
    assert list(found.lines) == [Rate(0, 1, 1), Rate(86400, 2, 1)]
    assert found.began is not None
    assert found.began.isoformat() == "2026-11-30T00:00:00"


@pytest.mark.parametrize("time", ["20261123140500", "17900000000", "1e300"])
def test_a_number_that_would_be_a_time_of_a_later_century_is_none(time: str):
    assert (
        f"time is '{time}'; as a Unix time it is of after 2199; it must be seconds, a Unix time or a date as 2026-"
        in refused(f"time,input_tokens,output_tokens\n{time},5,6\n")
    )


@pytest.mark.parametrize("column", ["spend", "status", "total cost", "elapsed"])
def test_a_number_beside_the_time_of_each_request_is_no_rate(column: str):
    found = read_trace([f"startTime,{column}\n", "0,0.5\n", "7,0.25\n", "31,0.125\n"], "x")
    assert isinstance(found, Times)
    assert [one.at for one in found.lines] == [0, 7, 31]


@pytest.mark.parametrize(
    "name",
    [
        '"sum(rate(vllm:request_success_total{model=~""a|b|c""}[1m]))"',
        "chat|prod|eu",
        '"chat;prod;eu"',
        '"{model=""chat"", zone=""eu"", cluster=""a""}"',
    ],
)
def test_what_separates_fields_is_not_told_by_what_stands_within_the_name_of_one(name: str):
    for mark in (",", ";") if name.startswith('"') else (",",):
        found = read_trace([f"Time{mark}{name}\n", f"0{mark}1.5\n", f"60{mark}2.5\n"], "x")
        assert isinstance(found, Rates)
        assert [one.per_second for one in found.lines] == [1.5, 2.5]


@pytest.mark.parametrize("name", ["rate", "request_rate", "value"])
def test_numbers_that_are_called_rates_are_rates_whatever_their_times_are_called(name: str):
    found = read_trace([f"arrival_s,{name}\n", "0,1.5\n", "60,2.5\n"], "x")
    assert isinstance(found, Rates)
    assert [one.per_second for one in found.lines] == [1.5, 2.5]
