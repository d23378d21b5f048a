"""A Prometheus that is slow, wrong or gone costs a tick its answers, and says why."""

import asyncio
import ssl
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from plimsoll.facts.engines import engine_facts
from plimsoll.kube.certificates import made
from plimsoll.prometheus.client import CHUNK, NO_ANSWER, Answered, Prometheus
from plimsoll.prometheus.fleet import QUESTIONS_MOST, FleetMetrics
from plimsoll.prometheus.vocabulary import vocabulary
from plimsoll.prometheus.wakes import LABEL, TOGETHER, WakeQueries
from tests.prometheus.serving import body, server, vector

WORDS = vocabulary([engine_facts("vllm", "0.33.0").metrics])


def rows_of(_, rows):
    return list(rows)


PAUSE = threading.Event()
"""That nobody sets: only time ends a wait for it."""


def asked(answer, questions, deadline=600.0, read=rows_of):
    async def run(url):
        client = Prometheus(url, deadline_s=deadline)
        try:
            return await client.ask(questions, read)
        finally:
            client.close()

    with server(answer) as url:
        return asyncio.run(run(url))


def test_each_question_has_its_answer():
    result = asked(lambda query: body(vector(({"q": query}, 1))), {"a": "x", "b": 'y{z!="1"}'})
    assert result.reachable
    assert result.errors == {}
    assert result.answers["b"][0]["metric"] == {"q": 'y{z!="1"}'}


@pytest.mark.parametrize("status", [301, 302, 303])
def test_who_sends_questions_elsewhere_is_told_and_not_followed(status: int):
    """A question would go there without its text: what is refused then is no fault of the question."""

    async def run(url):
        client = Prometheus(url, deadline_s=600.0)
        try:
            return await client.ask({"a": "x"}, rows_of)
        finally:
            client.close()

    with server(lambda _: (status, b""), location="https://sso.example/login?state=secret") as url:
        errors = asyncio.run(run(url)).errors
    assert errors == {
        "a": f"HTTP {status}: sent on to https://sso.example/login; prometheusUrl has to name where it answers"
    }


def test_an_answer_that_may_lack_series_counts_and_says_so():
    """As one of Thanos, of which a store is away."""
    status, said = body(vector(({}, 1)))
    result = asked(lambda _: (status, said[:-1] + b', "warnings": ["store a is away"]}'), {"a": "x"})
    assert (len(result.answers["a"]), result.errors) == (1, {})
    assert result.partial == {"a": "not whole: store a is away"}


def test_an_answer_larger_than_what_is_taken_at_once_comes_whole():
    rows = vector(*(({"pod": f"chat-{number}" + "x" * 200}, number) for number in range(2 * CHUNK // 200)))
    assert asked(lambda _: body(rows), {"a": "x"}).answers["a"] == rows


def test_answers_that_come_at_once_are_read_one_after_the_other():
    read, reading, most = threading.Lock(), [], []

    def slowly(about, rows):
        with read:
            reading.append(about)
            most.append(len(reading))
        found = list(rows)
        PAUSE.wait(0.05)
        with read:
            reading.remove(about)
        return found

    result = asked(lambda _: body([]), {"a": "x", "b": "y", "c": "z"}, read=slowly)
    assert sorted(result.answers) == ["a", "b", "c"]
    assert most == [1, 1, 1]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((500, b"no"), "500"),
        ((422, b'{"error": "too many samples"}'), "too many samples"),
        ((422, b'{"error": ' + b"[" * 100_000), "HTTP 422"),
        ((503, b"busy"), "HTTP 503: busy"),
        ((503, b'{"errorType": "unavailable", "error": "not ready"}'), "HTTP 503: not ready"),
        ((503, b'{"errorType": "timeout", "error": "query timed out"}'), NO_ANSWER),
        ((504, b"Gateway Timeout"), NO_ANSWER),
        ((200, b"not json"), "Error"),
        ((200, b"[" * 100_000), "Error"),
        ((200, b'{"data": {"result": [' + b"[" * 100_000), "Error"),
        ((200, b'{"data": {}}'), "KeyError"),
        ((200, b'{"data": {"result": 3}}'), "instant vector"),
    ],
)
def test_a_wrong_answer_is_an_error_of_its_question_alone(reply, words):
    result = asked(lambda query: reply if query == "bad" else body([]), {"a": "bad", "b": "good"})
    assert list(result.answers) == ["b"]
    assert words in result.errors["a"]
    assert result.reachable


@pytest.mark.parametrize("late", [(503, b'{"errorType": "timeout", "error": "query timed out"}'), (504, b"")])
def test_one_wake_query_that_the_server_itself_gives_up_keeps_no_other_from_being_answered(late):
    queries = {f"team/{name}": name for name in ("a", "b", "c", "slow")}

    def answer(query):
        found = [key for key in queries if f'"{key}"' in query]
        return late if "slow" in query else body(vector(*(({LABEL: key}, 3) for key in found)))

    async def run(url):
        client = Prometheus(url, deadline_s=600.0)
        wakes = WakeQueries(client)
        try:
            return [await wakes.look(queries) for _ in range(3)][-1]
        finally:
            client.close()

    with server(answer) as url:
        found = asyncio.run(run(url))
    assert found.waiting == {"team/a": 3.0, "team/b": 3.0, "team/c": 3.0}
    assert found.slow == {"team/slow"}


def test_nobody_there_is_unreachable():
    async def run():
        client = Prometheus("http://127.0.0.1:9", deadline_s=600.0)
        try:
            return await client.ask({"a": "x"}, rows_of)
        finally:
            client.close()

    result = asyncio.run(run())
    assert not result.reachable
    assert result.errors["a"] == "no connection"


def test_a_silent_server_is_given_up_and_not_piled_upon():
    released = threading.Event()

    def silent(_):
        released.wait(600)
        return body([])

    async def run(url):
        client = Prometheus(url, deadline_s=0.2)
        first = await client.ask({name: name for name in "abcdef"}, rows_of)
        second = await client.ask({"g": "g"}, rows_of)
        released.set()
        client.close()
        return first, second

    with server(silent) as url:
        first, second = asyncio.run(run(url))
    assert not first.reachable
    assert set(first.errors) == set("abcdef")
    assert "g" in second.errors


LABELS = {"namespace": "team", "set": "chat-0a1b2c3d"}
KINDS = {"ttft", "itl", "e2e", "prompt_lengths", "output_lengths"}


class Source:
    """Has an answer to every question but in the looks that are lost."""

    def __init__(self, lost=()):
        self.lost, self.looks = lost, 0

    async def ask(self, questions, read):
        self.looks += 1
        if self.looks in self.lost:
            return Answered(answers={}, errors=dict.fromkeys(questions, "no answer"))
        rows = vector(({**LABELS, "le": "+Inf"}, 5.0), (LABELS, 9.0))
        answers = {about: read(about, rows if about in KINDS else []) for about in questions}
        return Answered(answers=answers, errors={})


def known(interval, looks, lost=()):
    """Which histograms are known at each look."""

    async def run():
        metrics, found = FleetMetrics(Source(lost), WORDS, interval_s=interval), []
        for look in range(looks):
            seen, _ = await metrics.look((interval + 0.4) * look)
            found.append(set(seen.histograms.get(("team", "chat-0a1b2c3d"), ())))
        return found

    return asyncio.run(run())


def test_histograms_stay_for_the_ticks_without_a_turn():
    assert [len(each) for each in known(15, 10)] == [1, 2, 3, 3, 3, 4, 4, 4, 5, 5]


@pytest.mark.parametrize("interval", [1, 5, 15, 20, 30, 45, 60, 90, 120, 300])
def test_once_known_a_histogram_stays_known_however_far_apart_the_looks_are_and_though_one_is_lost(interval):
    found = known(interval, 60, lost=(20,))
    first = next(place for place, each in enumerate(found) if each == KINDS)
    assert first * interval <= max(9 * 15 + interval, 2 * interval)
    assert all(each == KINDS for each in found[first:])


@pytest.mark.parametrize("interval", [15, 30, 45, 300])
@pytest.mark.parametrize("lost", [(), (3,), (2, 3, 5)])
def test_no_look_asks_more_than_twelve_questions_whatever_fails_and_whoever_sleeps(interval, lost):
    """Wakes that are good, apart, and new at once, beside histograms that are asked for out of turn."""
    asked: list[int] = []

    class Counting(Source):
        async def ask(self, questions, read):
            asked[-1] += len(questions)
            lacks = {about: "a store is away" for about in questions if about.startswith(TOGETHER)}
            return replace(await super().ask(questions, read), partial=lacks)

    async def run():
        source = Counting(lost)
        metrics, wakes = FleetMetrics(source, WORDS, interval_s=interval), WakeQueries(source)
        queries: dict[str, str] = {}
        for look in range(30):
            asked.append(0)
            queries |= {f"team/{look}-{n}": f"queue{look}" for n in range(8)}
            seen, problem = await metrics.look(interval * look)
            if problem is None:
                await wakes.look(queries, QUESTIONS_MOST - seen.asked)

    asyncio.run(run())
    assert max(asked) <= QUESTIONS_MOST == 12
    assert max(asked) >= 10


def test_a_histogram_that_got_no_answer_is_asked_for_once_more_out_of_turn():
    asked = []

    class Deaf(Source):
        async def ask(self, questions, read):
            asked.append(sorted(KINDS & questions.keys()))
            return await super().ask(questions, read)

    async def run():
        metrics = FleetMetrics(Deaf(lost=(3, 4)), WORDS)
        for look in range(6):
            await metrics.look(15.0 * look)

    asyncio.run(run())
    assert asked == [["ttft"], ["itl"], ["e2e"], ["e2e", "ttft"], ["itl", "ttft"], ["prompt_lengths"]]


def test_which_question_fails_is_told_until_it_is_answered_and_by_who_answers_none_of_none():
    refused = "HTTP 422: too many chunks"
    fails = {3: {"load": refused}, 4: {"ttft": refused}, 5: {"itl": refused}, 6: {"itl": refused}, 7: None}

    class Limited(Source):
        async def ask(self, questions, read):
            answered = await super().ask(questions, read)
            errors = fails.get(self.looks, {})
            if errors is None:
                return Answered(answers={}, errors=dict.fromkeys(questions, "no connection"))
            answers = {about: each for about, each in answered.answers.items() if about not in errors}
            return Answered(answers=answers, errors=errors)

    async def run():
        metrics = FleetMetrics(Limited(), WORDS)
        return [(await metrics.look(15.0 * look))[0].errors for look in range(9)]

    ttft, itl = {"ttft": refused}, {"itl": refused}
    assert asyncio.run(run()) == [{}, {}, {"load": refused}, ttft, itl, itl, itl, {}, {}]


def test_which_answer_is_not_whole_is_told_as_what_fails_is():
    class Halved(Source):
        async def ask(self, questions, read):
            answered = await super().ask(questions, read)
            return replace(answered, partial={"load": "not whole"} if self.looks == 2 else {})

    async def run():
        metrics = FleetMetrics(Halved(), WORDS)
        return [(await metrics.look(15.0 * look))[0].errors for look in range(3)]

    assert asyncio.run(run()) == [{}, {"load": "not whole"}, {}]


def test_a_private_authority_is_trusted_where_its_file_is_named_and_nowhere_else(tmp_path):
    pair, authority = made(["127.0.0.1"], datetime.now(UTC))  # noqa: TID251 - the handshake looks at the clock
    for name, text in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", authority)):
        (tmp_path / name).write_text(text)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

    async def run(url, file):
        client = Prometheus(url, ca_file=file)
        try:
            return await client.ask({"a": "x"}, rows_of)
        finally:
            client.close()

    with server(lambda _: body([]), tls) as url:
        trusted = asyncio.run(run(url, str(tmp_path / "ca.crt")))
        other = asyncio.run(run(url, None))
    assert (trusted.errors, trusted.answers) == ({}, {"a": []})
    assert "certificate verify failed" in other.errors["a"]


def test_a_question_may_be_longer_than_an_address():
    long = "x" * 100_000
    assert asked(lambda query: body(vector(({"n": str(len(query))}, 1))), {"a": long}).answers["a"][0][
        "metric"
    ] == {"n": str(len(long))}


def test_an_error_never_quotes_the_token():
    async def run(url):
        client = Prometheus(url, headers=lambda: {"Authorization": "Bearer secret\nsecond"})
        try:
            return await client.ask({"a": "x"}, rows_of)
        finally:
            client.close()

    with server(lambda _: body([])) as url:
        why = asyncio.run(run(url)).errors["a"]
    assert "token" in why
    assert "secret" not in why
