"""What `autoscaling --help` says of what may be asked."""

import argparse
from unittest.mock import patch

import pytest

from autoscaling_asked import asked
from autoscaling_cells import LEAPS, PUBLISHED, RUSHES, SYNTHETIC


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made: list[argparse.ArgumentParser] = []

    def seen(self: argparse.ArgumentParser) -> argparse.Namespace:
        made.append(self)
        return argparse.Namespace(resume=None)

    with patch.object(argparse.ArgumentParser, "parse_args", seen):
        asked("what is scored")
    return made[0]


def test_nothing_that_may_be_asked_is_without_a_word_on_what_it_is(parser: argparse.ArgumentParser) -> None:
    assert [option.dest for option in parser._actions if not option.help] == []


def test_help_names_each_trace_that_needs_no_file_and_those_that_are_played_without_any(
    parser: argparse.ArgumentParser,
) -> None:
    said = " ".join(parser.format_help().split())
    assert [
        name for name in (*SYNTHETIC, LEAPS, RUSHES, *PUBLISHED) if name not in said.replace("- ", "-")
    ] == []
    assert "plimsoll simulate --help" in said
    assert f"(default: {SYNTHETIC[0]} and {SYNTHETIC[1]}, of two hours each)" in said.replace("- ", "-")
