"""A part of a trace does not look like the whole of it, on no form of the report."""

from pathlib import Path

import pytest

from tests.cli.test_simulate import figures, llm, simulated

__all__ = ["llm"]

CHEAP = ("--routing", "service", "--policy", "static_peak")
MINUTE = 1 / 1440


@pytest.fixture
def minutes(tmp_path: Path) -> str:
    """Ten of them."""
    file = tmp_path / "minutes.csv"
    file.write_text("t_s,rate_rps\n0,1\n300,1\n")
    return str(file)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--days", str(4 * MINUTE)), "minutes.csv (the first 4 minutes of its 10 minutes)"),
        (("--from-day", str(4 * MINUTE)), "minutes.csv (the last 6 minutes of its 10 minutes)"),
        (
            ("--from-day", str(3 * MINUTE), "--days", str(4 * MINUTE)),
            "minutes.csv (4 minutes of its 10 minutes, from 3 minutes into it on)",
        ),
        (("--from-day", str(4 * MINUTE), "--days", "7"), "(the last 6 minutes of its 10 minutes)"),
    ],
)
def test_which_part_is_replayed_is_said_in_text_and_on_the_page(
    llm: str, minutes: str, tmp_path: Path, asked: tuple[str, ...], said: str
):
    page = tmp_path / "out.html"
    ran = simulated(llm, minutes, *CHEAP, *asked, "--html", str(page))
    assert said in " ".join(ran.out.split())
    title, _, body = page.read_text().partition("</title>")
    assert said in title
    assert said in body


@pytest.mark.parametrize("asked", [(), ("--days", "7"), ("--from-day", "0", "--days", str(10 * MINUTE))])
def test_of_the_whole_no_part_is_told(llm: str, minutes: str, asked: tuple[str, ...]):
    out = simulated(llm, minutes, *CHEAP, *asked).out
    assert "minutes.csv: " in out
    assert "of its" not in out


def test_programs_are_told_what_was_asked_for(llm: str, minutes: str):
    whole = figures(llm, minutes, *CHEAP)["trace"]
    assert (whole["fromDay"], whole["days"]) == (0.0, None)
    part = figures(llm, minutes, *CHEAP, "--from-day", str(3 * MINUTE), "--days", str(4 * MINUTE))["trace"]
    assert (part["fromDay"], part["days"]) == (3 * MINUTE, 4 * MINUTE)
    assert part["spanS"] == pytest.approx(240.0)
