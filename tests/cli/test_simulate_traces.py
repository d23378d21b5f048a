"""Where `plimsoll simulate` takes its traffic from, and what it says of it."""

import os
from pathlib import Path

from plimsoll.cli.page import write_page
from tests.cli.running import Ran, plimsoll
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC

SECONDS = "timestamp,input_length,output_length\n" + "".join(f"{place}.5,20,3\n" for place in range(60))


def replayed(tmp_path: Path, trace: str, *more: str, stdin: str = "") -> Ran:
    file = tmp_path / "llm.yaml"
    file.write_text(resource("chat", **SPEC))
    alone = ("--routing", "service", "--policy", "static_peak")
    return plimsoll(
        "simulate", "-f", str(file), "--fleet", "8xL40S", "--trace", trace, *alone, *more, stdin=stdin
    )


def test_a_trace_in_seconds_with_names_that_stand_for_ms_elsewhere_is_no_thousand_times_faster(
    tmp_path: Path,
):
    file = tmp_path / "requests.csv"
    file.write_text(SECONDS)
    ran = replayed(tmp_path, str(file))
    assert ran.code == 0
    assert "60 requests in 60 seconds" in ran.out
    assert "requests.csv: nothing says what timestamp counts: seconds are taken" in ran.err, (
        "before it is played"
    )
    assert "note requests.csv: nothing says what timestamp counts" in " ".join(ran.out.split()), (
        "for who reads it later"
    )


def test_a_trace_is_read_from_stdin(tmp_path: Path):
    ran = replayed(tmp_path, "-", stdin=SECONDS)
    assert ran.code == 0
    assert "stdin: 60 requests in 60 seconds" in ran.out
    assert "stdin: nothing says what timestamp counts" in ran.err
    assert "--trace: stdin: is empty" in replayed(tmp_path, "-").err


def test_a_trace_whose_name_is_no_text_is_told_by_what_can_be_written_of_it(tmp_path: Path):
    trace = tmp_path / os.fsdecode(b"day-\xff.csv")
    trace.write_text(SECONDS)
    page = tmp_path / "out.html"
    page.write_text("an older page")
    ran = replayed(tmp_path, str(trace), "--html", str(page))
    assert ran.code == 0
    assert "day-\\udcff.csv: 60 requests" in ran.out
    assert "replayed day-\\udcff.csv" in page.read_text()


def test_a_page_that_names_what_is_no_text_is_written_all_the_same(tmp_path: Path):
    page = tmp_path / "out.html"
    write_page(str(page), "<p>" + os.fsdecode(b"\xff") + "</p>")
    assert page.read_text() == "<p>\\udcff</p>"


def test_what_is_wrong_with_the_rest_is_told_before_a_trace_is_read(tmp_path: Path):
    """Which takes minutes where it is long."""
    file = tmp_path / "llm.yaml"
    file.write_text(resource("chat", **SPEC))
    ran = plimsoll("simulate", "-f", str(file), "--trace", str(tmp_path / "not-there.csv"))
    assert ran.code == 3
    assert ran.err.startswith("error: no fleet is named")
