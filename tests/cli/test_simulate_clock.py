"""A trace with dates is told in its own clock, one without by the time since its beginning."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from plimsoll.cli.simulate_clock import Clock
from tests.cli.test_simulate import llm, simulated

__all__ = ["llm"]

OURS = ("--routing", "service", "--policy", "plimsoll")
AT = datetime(2026, 11, 23, 8, 40, tzinfo=timezone(timedelta(hours=1)))


@pytest.fixture
def dated(tmp_path: Path) -> str:
    """A morning, in a zone of its own, in which more replicas are needed after ten minutes."""
    file = tmp_path / "morning.csv"
    rows = [("08:40", 5), ("08:50", 60), ("09:10", 60)]
    file.write_text("time,rate_rps\n" + "".join(f"2026-11-23T{at}:00+01:00,{rate}\n" for at, rate in rows))
    return str(file)


def test_dates_of_a_trace_are_those_of_its_actions_in_text_and_on_the_page(
    llm: str, dated: str, tmp_path: Path
):
    page = tmp_path / "out.html"
    ran = simulated(llm, dated, *OURS, "--html", str(page))
    said = " ".join(ran.out.split())
    assert "2026-11-23 08:40:00 to 2026-11-23 09:30:00 UTC+01:00" in said
    assert "2026-11-23 08:5" in said.partition("what plimsoll did")[2]
    assert "0d 00:" not in said
    text = page.read_text()
    assert ">23 Nov 08:40<" in text
    assert ">23 Nov 09:00<" in text
    assert "<title>2026-11-23 08:5" in text, "of a mark"
    assert "0d 00:" not in text


def test_dates_without_a_zone_are_given_none(llm: str, tmp_path: Path):
    """A dashboard writes them as its reader's clock has them."""
    file = tmp_path / "local.csv"
    file.write_text("time,rate_rps\n2026-11-23 10:00:00,1\n2026-11-23 10:01:00,1\n")
    said = " ".join(simulated(llm, str(file), *OURS).out.split())
    assert "2026-11-23 10:00:00 to 2026-11-23 10:02:00 promised" in said
    trace = json.loads(simulated(llm, str(file), *OURS, "-o", "json").out)["trace"]
    assert trace["began"] == "2026-11-23T10:00:00"


def test_programs_are_told_when_the_replayed_part_began(llm: str, dated: str, tmp_path: Path):
    def began(trace: str, *more: str) -> object:
        return json.loads(simulated(llm, trace, *OURS, "-o", "json", *more).out)["trace"]["began"]

    assert began(dated) == "2026-11-23T08:40:00+01:00"
    assert began(dated, "--from-day", str(10 / 1440)) == "2026-11-23T08:50:00+01:00"
    plain = tmp_path / "plain.csv"
    plain.write_text("time,rate_rps\n0,1\n60,1\n")
    assert began(str(plain)) is None
    plain.write_text("time,rate_rps\n1790000060,1\n1790000000,1\n")
    assert began(str(plain)) == "2026-09-21T14:13:20+00:00", "the earliest line, whichever stands first"


def test_the_axis_is_marked_at_whole_hours_of_the_clock_and_not_of_the_trace():
    assert Clock(AT).ticks(7200.0)[0] == (300.0, "23 Nov 08:45")
    late = Clock(AT.replace(minute=47)).ticks(6 * 3600.0)
    assert late[0] == (780.0, "23 Nov 09:00")
    assert [text for _, text in Clock(AT).ticks(7 * 86400.0)][:2] == ["24 Nov 00:00", "25 Nov 00:00"]
    assert Clock().ticks(3500.0)[1] == (600.0, "0d 00:10:00")


def test_without_a_date_times_are_since_the_beginning():
    assert Clock().tell(90061.0) == "1d 01:01:01"
    assert Clock().over(5.0) is None
    assert Clock(AT.astimezone(UTC)).over(60.0) == "2026-11-23 07:40:00 to 2026-11-23 07:41:00 UTC"
