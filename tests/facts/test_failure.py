import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.failure import LONGEST, Failure, plain, read_failure

LEFT = {
    "word": "NoKvRoom",
    "message": "no room",
    "remedy": "spec.engine.maxSequences",
    "evidence": ["a line"],
}


def test_what_a_supervisor_left_is_read():
    assert read_failure(json.dumps(LEFT)) == Failure("NoKvRoom", "no room", "spec.engine.maxSequences")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RuntimeError: CUDA out of memory",
        "{",
        "[" * 100_000,
        "{" + '"a":' * 5000,
        "[1]",
        "{}",
        json.dumps({**LEFT, "word": "no word"}),
        json.dumps({**LEFT, "word": "X" * 64}),
        json.dumps({**LEFT, "message": 3}),
    ],
)
def test_text_of_another_form_is_none_of_a_supervisor_s(text):
    assert read_failure(text) is None


def test_a_remedy_that_is_missing_is_empty():
    assert read_failure(json.dumps({"word": "Hang", "message": "m"})) == Failure("Hang", "m", "")


@given(st.text(), st.text())
def test_nothing_but_one_line_of_a_bounded_length_is_told(message, remedy):
    found = read_failure(json.dumps({**LEFT, "message": message * 50, "remedy": remedy * 50}))
    assert found is not None
    for text in (found.message, found.remedy):
        assert len(text) <= LONGEST
        assert not set(text) & set("\n\r\x1b\x00\u202e")


def test_colours_and_control_characters_go():
    assert plain("\x1b[31mred\x1b[0m\n\tand\x00 more", 100) == "red and more"


def test_halves_of_characters_go_since_nobody_can_write_them_down():
    found = read_failure('{"word": "Hang", "message": "a\\ud800b", "remedy": "\\udfff"}')
    assert found == Failure("Hang", "a b", "")
