"""Wake queries: asked together, kept apart, and a wrong one harms nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from plimsoll.prometheus.client import NO_ANSWER, NO_CONNECTION, Answered, Read, T
from plimsoll.prometheus.wakes import (
    GROUPS_MOST,
    LABEL,
    LONGER_LOOKS,
    RETRY_LOOKS,
    TOGETHER,
    WakeQueries,
    Woken,
)

DOUBLE = "HTTP 422: many-to-many matching not allowed"


class Gateway:
    """Answers 3 for whoever asks, refuses what holds the word wrong, and while it is loaded is late with what holds the word slow and
    refuses what holds the word double."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, str]] = []
        self.down = False
        self.passing = ""
        """What it answers to everything for a while."""
        self.loaded = True
        self.longest = 1_000_000
        """Characters of a question that are let through."""
        self.lacks = ""
        """What its answers may lack, where a store is away; then it counts none who wait."""
        self.about = ""
        """Of which questions: those that hold this word."""

    async def ask(self, questions: Mapping[str, str], read: Read[T]) -> Answered[T]:
        self.asked.append(questions)
        answers, errors, partial = {}, {}, {}
        for about, text in questions.items():
            if self.down or self.passing:
                errors[about] = self.passing or NO_CONNECTION
            elif "slow" in text and self.loaded:
                errors[about] = NO_ANSWER
            elif len(text) > self.longest:
                errors[about] = "HTTP 413: Request Entity Too Large"
            elif "wrong" in text:
                errors[about] = "HTTP 400: parse error"
            elif "double" in text and self.loaded:
                errors[about] = DOUBLE
            else:
                keys = [part.split('"')[0] for part in text.split(f'"{LABEL}", "')[1:]]
                count = "0" if self.lacks else "3"
                rows = [{"metric": {LABEL: key}, "value": [0, count]} for key in keys if "gone" not in key]
                answers[about] = read(about, rows)
                if self.lacks and self.about in text:
                    partial[about] = self.lacks
        return Answered(answers=answers, errors=errors, partial=partial)


def looked(wakes: WakeQueries, queries: Mapping[str, str], times: int = 1) -> Woken:
    found = Woken()
    for _ in range(times):
        found = asyncio.run(wakes.look(queries))
    return found


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_many_are_one_question_from_the_first_look_on_and_wrong_ones_are_soon_found_among_them(
    wrong: int,
) -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(300)}
    queries |= {f"team/chat-{n}": "wrong" for n in range(0, 100 * wrong, 100)}
    good = {key: 3.0 for key, text in sorted(queries.items()) if text != "wrong"}
    found = looked(wakes, queries, 15 if wrong else 1)
    assert found.waiting == good
    assert len(found.refused) == wrong
    assert looked(wakes, queries).waiting == good
    assert list(gateway.asked[-1]) == [TOGETHER]
    assert max(map(len, gateway.asked)) <= GROUPS_MOST + 1


@pytest.mark.parametrize(
    "why", ["HTTP 503: busy", "HTTP 429: ", "HTTP 401: ", "ChunkedEncodingError: cut off"]
)
def test_what_may_pass_refuses_no_query_however_often_it_happens(why: str) -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(10)}
    gateway.passing = why
    assert looked(wakes, queries, 3) == Woken(unanswered=dict.fromkeys(sorted(queries), why))
    gateway.passing = ""
    assert looked(wakes, queries).waiting == dict.fromkeys(sorted(queries), 3.0)
    gateway.passing = why
    assert looked(wakes, queries, 3) == Woken(unanswered=dict.fromkeys(sorted(queries), why))
    gateway.passing = ""
    assert looked(wakes, queries).waiting == dict.fromkeys(sorted(queries), 3.0)


def test_a_refused_query_is_told_and_the_others_are_answered_as_before() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    found = looked(wakes, {"team/a": "queue", "team/b": "wrong("[:-1]}, 2)
    assert found.waiting == {"team/a": 3.0}
    assert found.refused == {"team/b": "HTTP 400: parse error"}
    assert looked(wakes, {"team/a": "queue", "team/b": "mended"}, 2).waiting == {"team/a": 3.0, "team/b": 3.0}


def test_an_outage_blames_no_query() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    gateway.down = True
    found = looked(wakes, {"team/a": "queue"})
    assert (found.waiting, found.refused) == ({}, {})
    assert found.unanswered == {"team/a": NO_CONNECTION}, "an outage, and not a query that finds nothing"
    gateway.down = False
    assert looked(wakes, {"team/a": "queue"}, 2).waiting == {"team/a": 3.0}


def test_one_that_has_become_slow_silences_nobody_else() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    gateway.loaded = False
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(6)}
    queries |= {f"team/a-{n}": "slow" for n in range(5)}
    others = dict.fromkeys([key for key in sorted(queries) if "chat" in key], 3.0)
    assert looked(wakes, queries, 4).waiting == dict.fromkeys(sorted(queries), 3.0)
    gateway.loaded = True
    found = looked(wakes, queries, 8)
    assert found.waiting == others
    assert found.refused == {f"team/a-{n}": NO_ANSWER for n in range(5)}
    assert found.slow == found.refused.keys()
    asked = len(gateway.asked)
    assert looked(wakes, queries, RETRY_LOOKS - 10).waiting == others
    assert all(list(each) == [TOGETHER] for each in gateway.asked[asked:]), "nobody waits for the slow ones"
    gateway.loaded = False
    found = looked(wakes, queries, 2 * RETRY_LOOKS)
    assert found == Woken(waiting=dict.fromkeys(sorted(queries), 3.0))


def test_one_that_is_refused_for_the_series_that_are_there_is_asked_again_later() -> None:
    """Two pods of a gateway may export the same while one takes the other's place; who sleeps then must not sleep for ever."""
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(6)}
    queries |= {f"team/a-{n}": "double" for n in range(2 * GROUPS_MOST)}
    found = looked(wakes, queries, 10)
    assert found.waiting == {key: 3.0 for key in sorted(queries) if "chat" in key}
    assert found.refused == {key: DOUBLE for key in sorted(queries) if "chat" not in key}
    assert not found.slow
    asked = len(gateway.asked)
    assert looked(wakes, queries, RETRY_LOOKS - 10) == found
    assert all(list(each) == [TOGETHER] for each in gateway.asked[asked:])
    assert looked(wakes, queries, 10) == found
    assert max(map(len, gateway.asked)) <= GROUPS_MOST + 1
    gateway.loaded = False
    assert looked(wakes, queries, RETRY_LOOKS + 1) == Woken(waiting=dict.fromkeys(sorted(queries), 3.0))


def test_one_late_answer_to_all_takes_nothing_apart() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    gateway.loaded = False
    queries = {"team/a": "slow", "team/b": "queue"}
    looked(wakes, queries, 2)
    gateway.loaded = True
    assert looked(wakes, queries) == Woken(unanswered=dict.fromkeys(queries, NO_ANSWER))
    gateway.loaded = False
    assert looked(wakes, queries).waiting == dict.fromkeys(queries, 3.0)


def test_one_that_finds_nothing_was_answered() -> None:
    wakes = WakeQueries(Gateway())
    assert looked(wakes, {"team/gone": "queue"}, 3) == Woken()


def test_those_that_wait_for_their_turn_are_not_said_to_find_nothing() -> None:
    """A refused one among many is looked for in a few groups a look, and nobody has asked the others meanwhile."""
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(30)} | {"team/a": "wrong"}
    found = looked(WakeQueries(Gateway()), queries)
    assert found.waiting.keys() | found.unanswered.keys() | found.refused.keys() == queries.keys()
    assert found.unanswered["team/chat-29"] == "HTTP 400: parse error"


def test_none_who_wait_in_an_answer_that_is_not_whole_are_not_known_to_be_none() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {"team/a": "queue", "team/gone": "queue"}
    looked(wakes, queries, 2)
    gateway.lacks = "not whole: store b: gone"
    assert looked(wakes, queries) == Woken(unanswered=dict.fromkeys(queries, gateway.lacks))
    gateway.lacks = ""
    assert looked(wakes, queries) == Woken(waiting={"team/a": 3.0})


@pytest.mark.parametrize(
    ("away", "looks"), [((7,), 6), ((7, 99, 188, 277), 20), (tuple(range(60)), 80)], ids=["1", "4", "60"]
)
def test_one_about_a_store_that_is_away_keeps_nobody_else_from_an_answer(
    away: tuple[int, ...], looks: int
) -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(300)}
    queries |= {f"team/chat-{n}": 'queue{cluster="away"}' for n in away}
    looked(wakes, queries, 2)
    gateway.lacks, gateway.about = "not whole: store b: gone", "away"
    assert not looked(wakes, queries).waiting
    found = looked(wakes, queries, looks)
    assert found.unanswered == {f"team/chat-{n}": gateway.lacks for n in sorted(away, key=str)}
    assert len(found.waiting) == 300 - len(away)
    assert max(map(len, gateway.asked)) <= GROUPS_MOST + 2
    gateway.lacks = ""
    assert looked(wakes, queries) == Woken(waiting=dict.fromkeys(sorted(queries), 3.0))
    looked(wakes, queries)
    assert list(gateway.asked[-1]) == [TOGETHER]


def test_a_new_one_about_a_store_that_is_away_keeps_nobody_from_an_answer_at_all() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {f"team/chat-{n}": "queue" for n in range(9)}
    gateway.lacks, gateway.about = "not whole: store b: gone", "away"
    looked(wakes, queries, 2)
    for _ in range(4):
        assert len(looked(wakes, {**queries, "team/new": "away"}).waiting) == 9


def test_all_are_asked_at_each_look_however_long_a_store_is_away() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(60)}
    gateway.lacks = "not whole: store b: gone"
    looked(wakes, queries, 50)
    assert looked(wakes, queries).unanswered == dict.fromkeys(sorted(queries), gateway.lacks)
    assert all(all(f'"{key}"' in str(each) for key in queries) for each in gateway.asked)


@pytest.mark.parametrize(("count", "looks", "turns"), [(60, 10, 1), (200, 20, 1), (1200, 30, 4)])
def test_all_are_asked_as_often_as_may_be_where_the_length_of_a_question_is_limited(
    count: int, looks: int, turns: int
) -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    gateway.longest = 6_000
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(count)} | {"team/a": "wrong"}
    good = {key: 3.0 for key in sorted(queries) if "chat" in key}
    looked(wakes, queries, looks)
    asked = len(gateway.asked)
    for _ in range(2 * turns):
        found = looked(wakes, queries)
        assert found.waiting == good, "the last answer stands for those whose turn it is not"
        assert found.refused.keys() == {"team/a"}
    last = [str(each) for each in gateway.asked[asked:]]
    for turn in (last[:turns], last[turns:]):
        assert all(any(f'"{key}"' in each for each in turn) for key in good)
    assert max(map(len, gateway.asked)) <= GROUPS_MOST + 2
    assert max(len(text) for each in gateway.asked[asked:] for text in each.values()) <= gateway.longest


def test_a_limit_that_is_no_longer_there_is_found_out() -> None:
    gateway = Gateway()
    wakes = WakeQueries(gateway)
    gateway.longest = 6_000
    queries = {f"team/chat-{n}": f'queue{{n="{n}"}}' for n in range(200)}
    looked(wakes, queries, 20)
    gateway.longest = 1_000_000
    looked(wakes, queries, 2 * LONGER_LOOKS)
    assert list(gateway.asked[-1]) == [TOGETHER]


@pytest.mark.parametrize(
    "query",
    [
        "queue)) or label_replace((vector(1)",
        'queue{a="',
        "sum(queue",
        "sum(queue]",
        "queue # ' \n)",
        "`\\`)",
        "queue #\r) + (1",
    ],
)
def test_no_query_leaves_the_brackets_around_it(query: str) -> None:
    gateway = Gateway()
    found = looked(WakeQueries(gateway), {"team/a": query})
    assert "at character" in found.refused["team/a"]
    assert not gateway.asked
