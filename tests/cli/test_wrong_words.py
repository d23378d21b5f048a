"""Words of a command line that mean nothing, or not what somebody thought: exit code 3, and how to say what was meant."""

import pytest

from tests.cli.running import plimsoll
from tests.cli.test_bad_input import FLEET, resource


@pytest.mark.parametrize("command", ["plan", "explain", "render", "images"])
def test_a_file_that_stands_alone_is_told_how_files_are_given(command: str):
    ran = plimsoll(command, "llm.yaml")
    assert ran.code == 3
    assert "a file of resources is given as -f llm.yaml" in ran.err


def test_a_word_too_many_is_named():
    ran = plimsoll("plan", "-f", "-", *FLEET, "chat", stdin=resource())
    assert ran.code == 3
    assert "'chat' is a word too many" in ran.err


def test_a_word_that_was_taken_for_a_context_is_told_where_context_stands():
    ran = plimsoll("explain", "-f", "-", "--context", "max_num_seqs", stdin=resource())
    assert ran.code == 3
    assert "--context max_num_seqs: " in ran.err
    assert "for the current one, --context stands last" in ran.err


@pytest.mark.parametrize(
    "asked", [("plan", "-f", "-", "--nodes", "-"), ("simulate", "-f", "-", "--fleet", "1xL4", "--trace", "-")]
)
def test_stdin_is_read_by_one_option_only(asked: tuple[str, ...]):
    ran = plimsoll(*asked, stdin=resource())
    assert ran.code == 3
    assert "only once" in ran.err


@pytest.mark.parametrize(
    ("word", "hint"), [("pln", "did you mean plan?"), ("zzz", "commands are plan, explain")]
)
def test_an_unknown_command_names_the_ones_there_are(word: str, hint: str):
    ran = plimsoll(word)
    assert ran.code == 3
    assert hint in ran.err


PART = "how much of a trace is replayed is said by --days and --scale, and whose it is by --name NAME or NAMESPACE/NAME"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("simulate", "-n", "100"), f"no such option -n: {PART}"),
        (("simulate", "-n", "team-a"), f"no such option -n: {PART}"),
        (("simulate", "-n100"), f"no such option -n: {PART}"),
        (("simulate", "--requests", "100"), f"no such option --requests: {PART}"),
        (("simulate", "--num-requests=100"), f"no such option --num-requests: {PART}"),
        (
            ("plan", "-n", "team-a"),
            "no such option -n: each resource says its namespace itself, in metadata.namespace",
        ),
        (
            ("explain", "--namespace", "team-a"),
            "no such option --namespace: each resource says its namespace itself",
        ),
    ],
)
def test_a_number_of_requests_or_a_namespace_is_told_what_says_it_here(words: tuple[str, ...], hint: str):
    command, *rest = words
    ran = plimsoll(command, "-f", "-", *FLEET, *rest, stdin=resource())
    assert ran.code == 3
    assert hint in ran.err


def test_a_slip_in_an_option_is_still_told_what_is_near():
    ran = plimsoll("simulate", "-f", "-", *FLEET, "--polcy", "hpa", stdin=resource())
    assert "Did you mean" in ran.err
    assert "--policy" in ran.err
