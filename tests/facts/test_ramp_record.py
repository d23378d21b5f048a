"""What a ramp hands in: anybody who may edit a deployment can have written it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.ramp_record import (
    MOST_POINTS,
    MOST_TEXT,
    RampPoint,
    RampRecord,
    RecordError,
    read_record,
    record_digest,
    write_record,
)

POINT = RampPoint(
    load=2.0,
    in_flight=1.5,
    requests=60,
    input_tokens=512.0,
    output_tokens=128.0,
    ttft_ms=40.0,
    tpot_ms=8.0,
    itl_p99_ms=11.0,
    tokens_per_second=250.0,
)
RECORD = RampRecord(
    set="chat-1234abcd",
    replicas=1,
    at=1_800_000_000,
    closed_loop=False,
    prefix_tokens=0,
    knee=None,
    points=(POINT,),
)


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(write_record(RECORD)), **fields})


def pointed(**fields: Any) -> str:
    point = {**json.loads(write_record(RECORD))["points"][0], **fields}
    return changed(points=[point])


def test_a_record_is_read_as_it_was_written():
    for record in (RECORD, replace(RECORD, knee=4.0, points=(POINT, replace(POINT, itl_p99_ms=None)))):
        assert read_record(write_record(record)) == record


def test_the_longest_ramp_is_short_enough():
    longest = replace(POINT, load=123456.789, in_flight=123456.789, ttft_ms=123456.789, tpot_ms=123456.789)
    assert len(write_record(replace(RECORD, points=(longest,) * MOST_POINTS))) <= MOST_TEXT


BAD: dict[str, tuple[str, str]] = {
    "nothing": ("", "no JSON"),
    "no JSON": ("{", "no JSON"),
    "too deep": ("[" * 10_000, "no JSON"),
    "a number too long": (f'{{"schema": {"1" * 5000}}}', "no JSON"),
    "too large": (" " * (MOST_TEXT + 1), "at most 16,384"),
    "a list": ("[]", "schema"),
    "another schema": (changed(schema=2), "another version"),
    "no points": (changed(points=[]), "1 to 64 points"),
    "too many points": (changed(points=[{}] * 65), "1 to 64 points"),
    "points of another type": (changed(points="all"), "1 to 64 points"),
    "a point that is none": (changed(points=[1]), "an object"),
    "no set": (changed(set=None), "name the set"),
    "no kind of loop": (changed(closedLoop=1), "name the set"),
    "no replicas": (changed(replicas=0), "replicas is 0"),
    "true replicas": (changed(replicas=True), "replicas is True"),
    "no time": (changed(at=None), "at is None"),
    "a time beyond all times": (changed(at=10**12), "at is 1000000000000"),
    "a negative prefix": (changed(prefixTokens=-1), "prefixTokens is -1"),
    "a word for a knee": (changed(knee="two"), "knee is 'two'"),
    "too few requests": (pointed(requests=9), "requests is 9; it must be a whole number of at least 10"),
    "no first token": (pointed(ttftMs=0), "ttftMs is 0"),
    "nearly no time": (pointed(tpotMs=5e-324), "tpotMs is 5e-324; it must be a number from 1e-06 to 1e+09"),
    "less than a token": (pointed(inputTokens=0.4), "inputTokens is 0.4; it must be a number from 1 to"),
    "a negative time": (pointed(tpotMs=-1), "tpotMs is -1"),
    "not a number": (pointed(tpotMs=float("nan")), "tpotMs is nan"),
    "endless": (pointed(ttftMs=float("inf")), "ttftMs is inf"),
    "beyond measure": (pointed(ttftMs=1e300), "ttftMs is 1e+300"),
    "a true time": (pointed(tpotMs=True), "tpotMs is True"),
    "a long word": (pointed(tpotMs="x" * 5000), "tpotMs is 'xxxxxxxxxx"),
    "a word that steers terminals": (pointed(tpotMs="\x1b[2J"), "tpotMs is '\\x1b[2J'"),
    "lengths left out": (pointed(inputTokens=None), "inputTokens is None"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_a_bad_record_is_refused_in_one_short_sentence(text: str, said: str):
    with pytest.raises(RecordError) as refused:
        read_record(text)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 200
    assert str(refused.value).isprintable()


@given(st.text(max_size=300) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_whatever_somebody_writes_is_read_or_refused(text: str):
    with suppress(RecordError):
        read_record(text)
    assert len(record_digest(text)) == 16
