"""What spreadsheets and exports of other countries and tools write: read, or told by what would be right."""

from pathlib import Path

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import Arrived, Rates, Requests, Times, open_trace, read_trace
from tests.load.reading import refused, trace


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("time;rate_rps\n0;1,5\n60;2,25\n", "rate_rps is '1,5'"),
        ("time;rate_rps\n0;1.234,5\n60;2\n", "rate_rps is '1.234,5'"),
        ('time,requests\n0,"1,024"\n60,"2,048"\n', "requests is '1,024'"),
        ("time;input_tokens;output_tokens\n0;1 024;6\n", "input_tokens is '1 024'"),
        ("time;input_tokens;output_tokens\n0;1'024;6\n", 'input_tokens is "1\'024"'),
        ("time;rate_rps;cv\n0;1;1,5\n", "cv is '1,5'"),
        ("arrival_s;input_tokens;output_tokens\n0,068;800;189\n", "arrival_s is '0,068'"),
        ("time;rate_rps\n0;1\n1.000,5;2\n", "time is '1.000,5'"),
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


def by_days(column: str, *days: float) -> str:
    return f"{column},input_tokens,output_tokens\n" + "".join(f"{day:.8f},374,44\n" for day in days)


def test_days_since_1900_are_no_seconds():
    morning = 46305 + 8 / 24
    found = trace(by_days("Time", *(morning + second / 86400 for second in (0, 0.5, 3, 60))))
    assert isinstance(found, Requests)
    assert [round(one.at, 2) for one in found.lines] == [0.0, 0.5, 3.0, 60.0]
    assert found.began is not None
    assert found.began.isoformat(timespec="seconds") == "2026-10-10T08:00:00+00:00"
    assert found.notes == (
        "Time holds 46305.33333333: days since 1900 are taken, as spreadsheets number them; as seconds 4,320 lines would be of one",
    )
    daily = trace("date,requests\n46305,86400\n46306,172800\n")
    assert isinstance(daily, Rates)
    assert list(daily.lines) == [Rate(0, 1, 1), Rate(86400, 2, 1)]
    hourly = trace("Time,rps\n" + "".join(f"{46305 + hour / 24:.6f},{hour}\n" for hour in range(5)))
    assert isinstance(hourly, Rates)
    assert [round(one.at) for one in hourly.lines] == [0, 3600, 7200, 10800, 14400]
    log = trace("time,path\n" + "".join(f"{46305.5 + second / 86400:.8f},/v1\n" for second in (0, 1, 7, 9)))
    assert isinstance(log, Times)
    assert [round(one.at) for one in log.lines] == [0, 1, 7, 9]


@pytest.mark.parametrize("column", ["arrival_s", "t_s"])
def test_seconds_of_which_the_name_says_so_are_no_days(column: str):
    found = trace(by_days(column, 46305.0, 46305.001, 46305.002, 46305.0035))
    assert isinstance(found, Requests)
    assert [round(one.at, 4) for one in found.lines] == [0.0, 0.001, 0.002, 0.0035]
    assert not found.notes


@pytest.mark.parametrize("per_s", [9, 300])
def test_seconds_since_midnight_are_no_days(per_s: int):
    found = trace(by_days("time", *(40000 + at / per_s for at in range(50))))
    assert isinstance(found, Requests)
    assert list(found.lines)[-1].at == pytest.approx(49 / per_s, abs=1e-6)
    assert not found.notes


@pytest.mark.parametrize("time", ["1.79164E+12", "1.79E+12", "1.7916E+09", "2E+09"])
def test_a_time_that_a_spreadsheet_has_rounded_is_not_taken_for_what_it_was(time: str):
    assert refused(f"time,input_tokens,output_tokens\n{time},5,6\n") == (
        f"x.csv, line 2: time is '{time}'; a spreadsheet has rounded it: give the column the format of a number without decimals there, "
        "and save it anew"
    )


@pytest.mark.parametrize("time", ["1.7915904e+18", "1.790000000123E+12", "1.5E+03", "1E+2"])
def test_an_exponent_alone_is_no_rounding(time: str):
    assert list(trace(f"time,input_tokens,output_tokens\n{time},5,6\n").lines) == [Arrived(0.0, 5, 6)]


def test_the_log_of_a_web_server_is_told_how_it_becomes_a_trace():
    line = '10.0.0.1 - ann [10/Oct/2026:13:55:36 +0000] "POST /v1/chat/completions HTTP/1.1" 200 1234\n'
    assert refused(line * 3, "access.log") == (
        "access.log: is the log of a web server; `(echo arrival_s; sed -nE 's,.*\\[([^]]+)\\] \"POST /v1/.*,\\1,p' access.log)` "
        "prints the times of its requests, which are a trace"
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
