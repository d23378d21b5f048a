"""Streams as servers send them, in whatever pieces they arrive."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.load.stream import Event, Events, StreamError, error_text, read_event


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    crlf=st.booleans(),
)
def test_events_are_the_same_however_they_are_cut(texts: list[str], cuts: list[int], crlf: bool):
    end = "\r\n" if crlf else "\n"
    events = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    whole = "".join(f": ping{end}data: {event}{end}{end}" for event in events).encode()
    edges = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    reader = Events()
    found = [event for start, stop in pairwise(edges) for event in reader.feed(whole[start:stop])]
    assert found == events


@pytest.mark.parametrize(
    ("data", "event"),
    [
        ({"choices": [{"text": "a"}]}, Event(has_text=True, has_choice=True)),
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, Event(has_choice=True)),
        ({"choices": [{"delta": {"content": "a"}}]}, Event(has_text=True, has_choice=True)),
        ({"choices": [{"delta": {"reasoning_content": "a"}}]}, Event(has_text=True, has_choice=True)),
        ({"choices": [{"delta": {"reasoning": "a"}}]}, Event(has_text=True, has_choice=True)),
        ({"choices": [{"delta": {"tool_calls": [{}]}}]}, Event(has_text=True, has_choice=True)),
        ({"choices": [{"delta": {}, "finish_reason": "stop"}]}, Event(has_choice=True, finish="stop")),
        (
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}},
            Event(input_tokens=5, output_tokens=7),
        ),
        ({"choices": [], "usage": None}, Event()),
        ({"choices": None, "usage": {"prompt_tokens": True}}, Event()),
        ({"error": {"message": "no\n room", "code": 500}}, Event(error="no room")),
        ({"object": "error", "message": "gone"}, Event(error="gone")),
    ],
)
def test_what_events_say(data: object, event: Event):
    assert read_event(json.dumps(data)) == event


@pytest.mark.parametrize("data", ["", "no", "[1]", "7", "[" * 100_000])
def test_what_is_no_event_is_said(data: str):
    with pytest.raises(StreamError):
        read_event(data)


def test_an_event_without_end_is_not_kept_for_ever():
    reader = Events()
    with pytest.raises(StreamError, match="8 MiB"):
        reader.feed(b"x" * (9 << 20))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "m"}}, "m"),
        ({"detail": "d"}, "d"),
        ({"error": "e"}, "e"),
        ("plain", "plain"),
        ({"x": 1}, '{"x": 1}'),
    ],
)
def test_the_sentence_in_an_error_is_found(body: object, text: str):
    assert error_text(body) == text


def test_an_error_of_any_depth_has_a_text():
    wrapped: object = "no room"
    for _ in range(100_000):
        wrapped = {"error": wrapped}
    listed: object = []
    for _ in range(100_000):
        listed = [listed]
    assert error_text(wrapped) == "no room"
    assert error_text({"message": listed}) == "an error that is nested too deep to be read"
