"""What a reader of the page sees of it, on a wide screen and on a narrow one."""

import re
from html import unescape
from pathlib import Path

import pytest

from plimsoll.cli.page import page
from plimsoll.cli.simulate_page import LETTER, OF_SETS, SHEET, most_of, names_begin
from plimsoll.simulate.fidelity import belief_error, kept
from plimsoll.simulate.tally import arrivals_over
from tests.cli.test_simulate import llm, rates, simulated

__all__ = ["llm", "rates"]


@pytest.fixture
def text(llm: str, rates: str, tmp_path: Path) -> str:
    file = tmp_path / "out.html"
    assert simulated(llm, rates, "--html", str(file)).code == 0
    return file.read_text()


@pytest.mark.parametrize(
    ("value", "top"),
    [
        (0, 4),
        (1, 4),
        (4, 4),
        (5, 8),
        (9, 12),
        (12, 12),
        (13, 20),
        (33, 40),
        (41, 80),
        (90, 100),
        (1700, 2000),
    ],
)
def test_an_axis_of_replicas_or_requests_has_whole_numbers_alone(value: float, top: float):
    assert most_of(value) == top
    assert top % 4 == 0


def test_curves_keep_a_width_at_which_they_can_be_read_and_are_scrolled_on_a_narrow_screen(text: str):
    assert text.count('<div class="scroll chart"><svg') == text.count("<svg") > 0
    assert re.search(r"\.chart svg \{ min-width: \d+rem; \}", text)


def test_heads_of_tables_are_small_so_that_the_last_column_is_seen_without_scrolling():
    assert re.search(r"\bth \{ font-size: \.75rem;", page("x", "", ""))


def test_names_of_curves_stand_beside_one_another_however_long_they_are():
    names = ("H100-SXM-80GB", "A100-SXM-80GB", "L40S-48GB")
    begins = names_begin(names)
    assert begins[0] == SHEET.left
    assert all(
        begin + LETTER * len(name) < after
        for begin, after, name in zip(begins, begins[1:], names, strict=False)
    )


def test_each_of_four_sets_has_a_colour_of_its_own(text: str):
    strokes = [re.search(rf"\.{style} {{ stroke: var\((--\w+)\)", text) for style in OF_SETS]
    assert len({found.group(1) for found in strokes if found}) == len(OF_SETS) == 4
    assert all(re.search(rf"text\.{style} {{ fill:", text) for style in OF_SETS)


def test_the_highest_rate_of_arrivals_says_over_how_long_it_is_the_mean(text: str):
    assert re.search(r"arrivals in grey, [\d.]+/s at their highest over 1 minute<", text)
    assert (arrivals_over(15.0), arrivals_over(1005.0)) == (1, 17)


def test_reasons_keep_a_width_at_which_they_can_be_read(text: str):
    assert re.search(r"\.actions td:last-child \{[^}]*min-width: \d+rem", text)


def test_tables_do_not_stick_together():
    assert re.search(r"\.scroll \+ \.scroll \{ margin-top:", page("x", "", ""))


def test_what_was_done_is_counted_in_words_that_fit(text: str):
    counts = re.findall(r"<summary>(\d+) (actions?)</summary>", text)
    assert counts
    assert all((count == "1") == (word == "action") for count, word in counts)


def test_hours_in_which_nobody_came_are_a_gap_in_what_was_kept_and_no_slope(llm: str, tmp_path: Path):
    trace, file = tmp_path / "gap.csv", tmp_path / "out.html"
    lines = (f"{at},500,100" for at in (*range(0, 600, 5), *range(7200, 7800, 5)))
    trace.write_text("\n".join(("arrival_s,input_tokens,output_tokens", *lines)))
    assert simulated(llm, str(trace), "--policy", "plimsoll", "--html", str(file)).code == 0
    within = file.read_text().partition("Within the limits")[2].partition("<h3>")[0]
    (path,) = re.findall(r'<path class="line a" d="([^"]*)"', within)
    runs = [re.findall(r"[MH](\d+\.\d)", run) for run in re.findall(r"M[^M]*", path)]
    minute = (SHEET.end - SHEET.left) / 130
    wanted = [(SHEET.left, SHEET.left + 10 * minute), (SHEET.left + 120 * minute, SHEET.end)]
    assert [(float(run[0]), float(run[-1])) for run in runs] == [
        pytest.approx(one, abs=minute) for one in wanted
    ]


def test_how_far_the_simulator_is_off_is_a_short_sentence_that_opens_the_long_one(text: str):
    folded = re.findall(r"<details><summary>([^<]*)</summary><p>([^<]*)</p></details>", text)
    (summary,) = [unescape(short) for short, long in folded if unescape(long) == belief_error()]
    assert len(summary) < 120
    assert f"{kept().loops.ttft_median_pct:g}%" in summary
    assert unescape(text).count(belief_error()) == 1
