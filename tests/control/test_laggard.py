"""One replica that is slower than the others by far: it is named, where it surely is one."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.control.laggard import laggard
from tests.control.situations import NOW, after, known, replicas, serving, signals, situation

CALM: dict[str, Any] = {"inflight": 4, "kv": 0.1, "rate": 0.5}
USUAL = 18_000.0
"""Tokens that each of the others made in two minutes."""


def one_of(count, **odd):
    said = signals(count, ttft=9.0, **CALM)
    first, *others = said.replicas
    return replace(said, replicas=(replace(first, **odd), *others))


def role_of(said, *sets):
    return situation(said, *sets).roles[0]


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({"generation_tokens": 0.4 * USUAL}, True),
        ({"inflight_mean": 12.0}, True),
        ({"generation_tokens": 0.6 * USUAL}, False),
        ({"generation_tokens": 3 * USUAL}, False),
        ({"generation_tokens": 0.4 * USUAL, "waiting": 1}, False),
        ({"generation_tokens": 0.4 * USUAL, "span_s": 60.0}, False),
        ({"generation_tokens": 0.0, "inflight_mean": 0.5}, False),
        ({"generation_tokens": None}, False),
        ({"inflight_mean": None}, False),
    ],
    ids=[
        "half as fast at most",
        "the same tokens for three times the requests",
        "somewhat slower",
        "faster",
        "with a queue",
        "young",
        "idle",
        "says no tokens",
        "says no requests",
    ],
)
def test_a_replica_is_named_where_it_is_slower_than_the_others_by_far(odd, named):
    assert laggard(role_of(one_of(4, **odd))) == ("chat-0" if named else None)


def test_of_two_replicas_nobody_knows_which_is_the_odd_one():
    assert laggard(role_of(one_of(2, generation_tokens=1.0))) is None


def test_a_set_with_slower_gpus_is_held_against_itself():
    slower = serving(3, name="set-b", pool="l40s", replicas=replicas(3, first=3))
    said = signals(6, **CALM)
    halved = [replace(each, generation_tokens=0.3 * USUAL) for each in said.replicas[3:]]
    mixed = replace(said, replicas=(*said.replicas[:3], *halved))
    assert laggard(role_of(mixed, serving(3), slower)) is None
    sick = replace(halved[2], generation_tokens=0.1 * USUAL)
    assert (
        laggard(role_of(replace(mixed, replicas=(*mixed.replicas[:5], sick)), serving(3), slower)) == "chat-5"
    )


@pytest.mark.parametrize(
    ("tokens", "cure"), [(0.4 * USUAL, "look at its node"), (USUAL, "a faster layout or GPU")]
)
def test_where_more_replicas_would_not_help_the_cure_is_that_of_the_cause(tokens, cure):
    decision = after(
        *[situation(one_of(4, generation_tokens=tokens))] * 30, memory=known(slow_since=0.0), begin=NOW
    )
    (said,) = [each for each in decision.conditions if each.type == names.SLO]
    assert f"more replicas would not help; {'chat-0 works' if tokens < USUAL else ''}" in said.message
    assert cure in said.message
