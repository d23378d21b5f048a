"""The bar, tables and numbers: what people read at a glance must not lie."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.facts import gpus
from plimsoll.planning.interval import Interval
from tests.cli.plans import GIB, ledger, misfit, term

SIZES = st.lists(st.floats(0, 200), min_size=3, max_size=3)


def bar(held, **more) -> str:
    return drawing.bar(held, colour=False, **more).plain


def test_every_term_that_takes_something_has_its_letter():
    drawn = bar(ledger())
    assert [letter for letter in "WAGCK." if letter not in drawn] == []


def test_the_load_line_stands_where_the_budget_ends():
    cells, _, _ = bar(ledger(), width=100).strip("[]").partition("|")
    assert len(cells) == round(72.85 / 79.19 * 100)


def test_what_the_engine_may_take_ends_at_the_load_line():
    """Terms of a tenth of a cell get a whole one, which once pushed the cache over the line."""
    sizes = {"weights": 61.1, "context": 0.1, "activation": 0.1, "graphs": 0.1, "kv": 11.4}
    terms = tuple(term(name, size) for name, size in sizes.items())
    full = ledger(terms=terms, budget_bytes=int(sum(sizes.values()) * GIB))
    assert bar(full).partition("|")[2].strip(".") == "]"


def test_what_does_not_fit_runs_over_the_end():
    nearest = misfit().nearest
    assert nearest is not None
    assert bar(nearest.ledger).endswith("] >")


@given(sizes=SIZES, width=st.integers(10, 120))
def test_a_bar_is_always_as_wide_as_asked(sizes, width):
    names = ("weights", "activation", "kv")
    terms = tuple(term(name, size) for name, size in zip(names, sizes, strict=True))
    drawn = bar(ledger(terms=(*terms, term("headroom", 0.0))), width=width)
    assert len(drawn.removesuffix(" >")) == width + 3


@given(sizes=SIZES)
def test_a_smaller_term_never_has_more_cells(sizes):
    names = ("weights", "activation", "kv")
    terms = tuple(
        term(name, size * 79.19 / max(sum(sizes), 79.19)) for name, size in zip(names, sizes, strict=True)
    )
    drawn = bar(ledger(terms=terms))
    counted = sorted((held.bytes.mid, drawn.count(letter)) for held, letter in zip(terms, "WAK", strict=True))
    cells = [count for _, count in counted]
    assert all(second >= first - 2 for first, second in pairwise(cells))


def test_colours_replace_letters_on_a_terminal():
    drawn = drawing.bar(ledger(), colour=True)
    assert "█" in drawn.plain
    assert "W" not in drawn.plain
    assert any("blue" in str(span.style) for span in drawn.spans)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.25, "0.25"),
        (6.678, "6.68"),
        (17.84, "17.8"),
        (240.4, "240"),
        (12345.0, "12,345"),
        (5.0, "5"),
    ],
)
def test_numbers_keep_three_digits_that_matter(value, text):
    assert drawing.short(value) == text


def test_a_range_that_rounds_to_a_point_is_shown_as_one():
    assert drawing.spread(Interval(239.9, 240.0, 240.1), " ms") == "240 ms"
    assert drawing.spread(Interval(8.0, 10.0, 13.0), " ms") == "10 ms (8 to 13)"


def printed(capsys, part) -> list[str]:
    drawing.show([part])
    out: str = capsys.readouterr().out
    return out.splitlines()


def test_columns_never_lose_digits_however_long_the_last_one_is(capsys):
    rows = [("a" * 30, "1,234,567,890", "because " * 30)]
    lines = printed(capsys, drawing.table(("NAME", "TOKENS", "WHY"), rows, left=(0, 2), fold=2))
    assert "a" * 30 in lines[1]
    assert "1,234,567,890" in lines[1]
    assert max(map(len, lines)) <= drawing.PLAIN_WIDTH


def test_a_clipped_column_stays_on_one_line_and_says_that_it_was_cut(capsys):
    lines = printed(
        capsys, drawing.table(("NAME", "WHY"), [("a", "because " * 30)], left=(0, 1), fold=1, clip=True)
    )
    assert len(lines) == 2
    assert lines[1].endswith("…")


def test_long_facts_fold_under_themselves(capsys):
    lines = printed(capsys, drawing.facts([("Verdict", Text("word " * 40))]))
    assert len(lines) > 1
    assert lines[1].startswith(" " * 15 + "word")


def test_markup_in_a_user_s_text_is_text(capsys):
    assert printed(capsys, drawing.facts([("x", "[red]a[/red]")]))[0].endswith("[red]a[/red]")


def test_the_legend_tells_sizes_and_leaves_out_what_is_nothing():
    told = drawing.legend(ledger(), colour=False).plain
    assert "W weights 30.5" in told
    empty = ledger(terms=(term("weights", 1.0), term("lora", 0.0), term("headroom", 0.0)))
    assert "LoRA" not in drawing.legend(empty, colour=False).plain
    assert GIB == gpus.GIB


@pytest.mark.parametrize("width", [40, 60, 110])
def test_a_table_keeps_every_column_where_the_terminal_is_narrow(width, monkeypatch, capsys):
    monkeypatch.setattr(drawing, "PLAIN_WIDTH", width)
    rows = [("tp1 on H100-SXM-80GB", "1,000", "because of a long sentence that says why " * 3)]
    drawing.show([drawing.table(("LAYOUT", "TOKENS", "NOT TAKEN BECAUSE"), rows, fold=2, clip=True)])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1].strip() == "NOT TAKEN BECAUSE"
    assert "1,000  because of a long" in row


@pytest.mark.parametrize(
    ("width", "terminal", "lines"),
    [
        (40, True, ["POLICY  HOURS  SLO %"]),
        (15, True, ["POLICY   a   b", "HOURS   10  20", "SLO %   98  99"]),
        (13, True, ["POLICY  HOURS  SLO %"]),
        (15, False, ["POLICY  HOURS  SLO %"]),
    ],
    ids=["wide enough", "turned", "no narrower turned", "in a pipe"],
)
def test_figures_are_turned_where_their_lines_are_too_long_for_the_terminal(
    width, terminal, lines, monkeypatch, capsys
):
    narrow = Console(file=sys.stdout, width=width, force_terminal=terminal, color_system=None)
    monkeypatch.setattr(drawing, "console", lambda: narrow)
    told = printed(
        capsys, drawing.figures(("POLICY", "HOURS", "SLO %"), [("a", "10", "98"), ("b", "20", "99")])
    )
    assert [line.rstrip() for line in told][: len(lines)] == lines
    assert len(told) == 3


def test_nothing_of_the_data_steers_the_terminal(capsys):
    drawing.show([Text("a\x1b[31mb\u202ec"), drawing.table(("HEAD",), [("\x1b]0;title\x07é…",)])])
    told = capsys.readouterr().out
    assert told.splitlines()[0] == r"a\x1b[31mb\u202ec"
    assert "é…" in told
    assert all(one.isprintable() for one in told if one != "\n")


@pytest.mark.parametrize(("number", "said"), [(1, "1 device"), (0.25, "0.25 devices"), (2, "2 devices")])
def test_things_are_counted_as_people_say_it(number, said):
    assert drawing.many(number, "device", drawing.short) == said
