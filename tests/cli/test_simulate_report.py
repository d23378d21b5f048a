"""How the figures of a simulation are written, so that nobody reads another number."""

import pytest

from plimsoll.cli.simulate_report import BRIEF, LISTED, brief, in_one_cell, whole_list
from plimsoll.load.slo import percent
from plimsoll.simulate.fidelity import brief_error, kept


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (100.0, "100.00"),
        (99.9973, "99.99"),
        (98.9996, "98.99"),
        (99.0, "99.00"),
        (99.97, "99.97"),
        (0.0, "0.00"),
    ],
)
def test_a_share_is_never_said_to_be_more_than_it_is(value: float, said: str):
    assert percent(value) == said


def test_numbers_beside_one_another_have_no_commas_of_their_own():
    assert in_one_cell("57", "85,175") == "57, 85175"


def test_a_page_is_not_said_to_list_more_than_it_does():
    assert whole_list(LISTED) == "-o json and --html have them all"
    assert whole_list(LISTED + 1) == "-o json has them all"


def test_a_note_of_two_lines_is_told_whole():
    assert brief("short; and whole. All of it") == "short; and whole. All of it"


@pytest.mark.parametrize("end", ["; ", ". ", ": "])
def test_a_longer_note_ends_where_a_part_of_it_does(end: str):
    first = "what matters most, first" + end + "then what matters less"
    assert brief(f"{first}{end}{'more ' * BRIEF}") == f"{first} …"


def test_a_longer_note_does_not_end_with_what_only_leads_to_what_follows():
    assert brief(f"the plan warns: too few. What helps: {'more ' * BRIEF}") == "the plan warns: too few …"


def test_a_note_without_parts_ends_between_words():
    told = brief("word " * BRIEF)
    assert len(told) <= BRIEF + 2
    assert told.endswith("word …")


def test_how_far_the_simulator_is_off_is_told_with_its_middle_and_its_worst():
    told, loops = brief_error(), kept().loops
    assert len(told) <= BRIEF
    for figure in (loops.tpot_median_pct, loops.tpot_p90_pct, loops.ttft_median_pct, loops.ttft_p90_pct):
        assert f"{figure:g}%" in told
    assert f"{max(one.ttft_most_pct for one in kept().gpu):.0f}%" in told
    assert "docs/evaluation.md" in told
