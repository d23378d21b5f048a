"""Dates as spreadsheets and dashboards of several countries write them: read where only one reading is possible, else refused with both."""

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.traces import Arrived, Rates, Requests, read_trace


def requests(*times: str) -> Requests:
    found = read_trace(["time;input_tokens;output_tokens", *(f"{time};374;44" for time in times)], "x.csv")
    assert isinstance(found, Requests)
    return found


def refused(*times: str) -> str:
    with pytest.raises(LoadError) as caught:
        list(requests(*times).lines)
    return str(caught.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("23.11.2026 14:05", "23.11.2026 14:06"),
        ("05.11.2026 14:05:00", "05.11.2026 14:06:00"),
        ("5.11.2026, 9:05:00", "5.11.2026, 9:06:00"),
        ("11/23/2026 2:05 PM", "11/23/2026 2:06 PM"),
        ("11/23/2026, 12:59:00\u202fAM", "11/23/2026, 1:00:00\u202fam"),
        ("11/23/2026 11:59 a.m.", "11/23/2026 12:00 p.m."),
        ("23/11/2026 14:05:00.250", "23/11/2026 14:06:00,250"),
        ("23-11-2026 14:05", "23-11-2026 14:06"),
        ("23/11/2026 14:05:00Z", "23/11/2026 15:06:00 +01:00"),
        ("23/11/2026 14:05:00 UTC", "23/11/2026 15:06 +0100"),
        ("2026/11/23 14:05", "2026/11/23 14:06"),
        ("11/30/2026 23:59", "12/1/2026 0:00"),
        ("30-11-2026 23:59", "1-12-2026 0:00"),
        ("12/11/2026 23:59", "13/11/2026 0:00"),
        ("05/05/2026 14:05", "05/05/2026 14:06"),
        ("19/11/26 14:05", "19/11/26 14:06"),
        ("26/11/12 14:05:00", "26/11/12 14:06:00"),
        ("24/11/24 14:05", "24/11/24 14:06"),
        ("11/23/26, 2:05 PM", "11/23/26, 2:06 PM"),
        ("05.11.26 14:05:00", "05.11.26 14:06:00"),
        ("31/Dec/2026:23:59:36 +0000", "01/Jan/2027:00:00:36 +0000"),
        ("[10/Oct/2026:13:55:36 +0200]", "[10/Oct/2026:11:56:36 +0000]"),
        ("Sat, 10 Oct 2026 13:55:36 GMT", "Sat, 10 Oct 2026 13:56:36 GMT"),
        ("10 October 2026 13:55", "10 Oct. 2026 13:56"),
        ("10-OCT-26 13:55:36", "10-OCT-26 13:56:36"),
        ("Oct 10, 2026 @ 13:55:36.500", "Oct 10, 2026 @ 13:56:36.500"),
        ("October 9, 2026, 1:55:36 PM", "Oct 9, 2026, 1:56:36 PM"),
        ("Sep 9 2026 13:55", "Sept 9 2026 13:56"),
    ],
)
def test_a_date_is_read_where_its_column_leaves_one_reading(first: str, second: str):
    assert list(requests(first, second).lines) == [Arrived(0.0, 374, 44), Arrived(60.0, 374, 44)]


def test_a_day_alone_is_its_beginning():
    found = read_trace(["date;requests", "30.11.2026;86400", "1.12.2026;172800"], "x")
    assert isinstance(found, Rates)
    assert [(one.at, one.per_second) for one in found.lines] == [(0, 1), (86400, 2)]


def test_when_a_trace_began_is_known_by_such_dates_too():
    found = requests("11/12/2026 23:30", "11/13/2026 0:10")
    assert found.began is not None
    assert found.began.isoformat() == "2026-11-12T23:30:00"


@pytest.mark.parametrize(
    ("written", "year"),
    [
        ("01/Jul/1995:00:00:01 -0400", 1995),
        ("10/Oct/2000:13:55:36 -0700", 2000),
        ("10-OCT-26 13:55:36", 2026),
    ],
)
def test_a_log_of_another_century_began_in_its_own(written: str, year: int):
    began = requests(written, written).began
    assert began is not None
    assert began.year == year


def test_the_order_is_found_however_far_down_the_line_is_that_tells_it_and_is_said():
    found = requests(*["01/02/2026 00:00"] * 3000, "13/02/2026 00:00")
    assert list(found.lines)[-1].at == 12 * 86400
    assert found.notes == ("dates are read as day/month/year, as 13/02/2026 is none otherwise",)
    assert not requests("23.11.2026 14:05").notes, "which nobody writes for the month first"


def test_a_log_of_a_web_server_begins_at_its_own_clock():
    found = requests("10/Oct/2026:13:55:36 +0200")
    assert found.began is not None
    assert found.began.isoformat() == "2026-10-10T13:55:36+02:00"


def test_a_year_of_two_digits_is_of_this_century_and_its_order_is_told_as_any():
    found = requests("01/02/26 00:00", "13/02/26 00:00")
    assert list(found.lines)[-1].at == 12 * 86400
    assert found.notes == ("dates are read as day/month/year, as 13/02/26 is none otherwise",)
    assert "which may be 5 November 2026 (month/day/year) or 11 May 2026" in refused("11/05/26 14:05")


def test_where_the_first_of_three_short_numbers_may_be_the_year_another_line_has_to_tell():
    assert refused("24/11/24 10:00", "23/11/26 14:05") == (
        "x.csv: time is '23/11/26 14:05', which may be 23 November 2026 (day/month/year) or 26 November 2023 (year/month/day), and no "
        "other line tells which; write times as 2026-11-23T10:00:00Z, or as Unix times"
    )
    by_year = requests("26/11/30 23:59:00", "26/12/01 00:00:00")
    assert list(by_year.lines)[-1].at == 60
    assert by_year.notes == ("dates are read as year/month/day, as 26/12/01 is none otherwise",)


def test_what_both_readings_are_is_told_where_two_are_possible():
    assert refused("05/05/2026 10:00", "11/05/2026 14:05", "11/06/2026 14:05") == (
        "x.csv: time is '11/05/2026 14:05', which may be 5 November 2026 (month/day/year) or 11 May 2026 (day/month/year), and no day "
        "above 12 tells which; write times as 2026-11-23T10:00:00Z, or as Unix times"
    )
    rates = ["time,rate_rps", "11/05/2026 14:05,1", "11/06/2026 14:05,2"]
    with pytest.raises(LoadError, match="which may be 5 November 2026"):
        read_trace(rates, "x.csv")


def test_a_date_that_is_none_by_the_order_of_the_others_is_refused_by_its_line():
    assert refused("23/11/2026 10:00", "11/24/2026 10:00") == (
        "x.csv, line 3: time is '11/24/2026 10:00'; it must be a date as day/month/year, as others of its column are"
    )
    assert refused("2026-11-23T10:00:00Z", "11/05/2026 10:00").startswith(
        "x.csv, line 3: time is '11/05/2026 10:00', which may be"
    )


@pytest.mark.parametrize(
    "time",
    [
        *(
            "31.11.2026 10:00",
            "11.23.2026 10:00",
            "31/31/2026 10:00",
            "23/11/2026 25:00",
            "23/11/2026 14:05 PM",
        ),
        *(
            "23/11-2026 10:00",
            "23-11-26 10:00",
            "23/11/126 10:00",
            "23/11/2026 0:05 AM",
            "23/11/2026 later",
            "99/99/2026 10:00",
        ),
        *(
            "10/Okt/2026:13:55:36 +0000",
            "31/Nov/2026:13:55:36",
            "10/Oct-2026 13:55",
            "[10/Oct/2026:13:55:36",
            "Oct 2026",
        ),
    ],
)
def test_what_is_no_date_is_told_what_would_be_one(time: str):
    assert refused(time).endswith("it must be seconds, a Unix time or a date as 2026-11-23T10:00:00Z")
