"""What a request is, which of them a fault meets, and what Prometheus is told: the parts of the test cluster that need no cluster."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.faults import (
    Answer,
    CutWatch,
    Delay,
    ExpireWatch,
    Hang,
    LoseEvents,
    Refuse,
    SilenceWatch,
    Stale,
    Where,
    http,
    stale,
)
from cluster.faults.calls import Call, read_call
from cluster.faults.rules import Rules
from cluster.faults.stop import Stop

ANYTHING = Where()
PODS = Call(verb="create", resource="pods", namespace="team", name="one")


def rules(*faults, **settings):
    made = Rules()
    given = {"share": 1.0, "times": None, "seed": 0} | settings
    return made, [made.add(fault, ANYTHING, **given) for fault in faults]


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("GET /api/v1/pods", Call(verb="list", resource="pods")),
        ("GET /api/v1/pods?watch=true", Call(verb="watch", resource="pods")),
        ("GET /api/v1/pods?watch=1&limit=2", Call(verb="watch", resource="pods")),
        ("GET /api/v1/pods?watch=false", Call(verb="list", resource="pods")),
        ("GET /api/v1/nodes/n%2D1", Call(verb="get", resource="nodes", name="n-1")),
        ("GET /api/v1/namespaces", Call(verb="list", resource="namespaces")),
        (
            "DELETE /api/v1/namespaces/team",
            Call(verb="delete", resource="namespaces", namespace="team", name="team"),
        ),
        (
            "PUT /api/v1/namespaces/team/finalize",
            Call(verb="update", resource="namespaces/finalize", namespace="team", name="team"),
        ),
        ("POST /api/v1/namespaces/team/pods", Call(verb="create", resource="pods", namespace="team")),
        (
            "PATCH /apis/apps/v1/namespaces/team/deployments/d?fieldManager=me&force=true",
            Call(
                verb="patch", group="apps", resource="deployments", namespace="team", name="d", manager="me"
            ),
        ),
        (
            "PATCH /apis/plimsoll.dev/v1alpha1/namespaces/t/llmdeployments/d/status?dryRun=All",
            Call(
                verb="patch",
                group="plimsoll.dev",
                resource="llmdeployments/status",
                namespace="t",
                name="d",
                dry_run=True,
            ),
        ),
        (
            "DELETE /apis/apps/v1/namespaces/team/deployments",
            Call(verb="deletecollection", group="apps", resource="deployments", namespace="team"),
        ),
        ("GET /readyz", Call(verb="get", resource="/readyz")),
        ("GET /apis", Call(verb="get", resource="/apis")),
        ("GET /apis/apps/v1", Call(verb="get", resource="/apis/apps/v1")),
        ("GET /api/v1", Call(verb="get", resource="/api/v1")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_is_read_in_the_words_of_rbac(line: str, call: Call) -> None:
    assert read_call(*line.split(" ")) == call


@pytest.mark.parametrize(
    ("where", "meant"),
    [
        (Where(), True),
        (Where(verbs={"create", "patch"}), True),
        (Where(verbs={"patch"}), False),
        (Where(resources={"pods"}, namespace="team", name="one"), True),
        (Where(resources={"pods/status"}), False),
        (Where(namespace="other"), False),
    ],
)
def test_what_is_left_empty_means_any(where: Where, meant: bool) -> None:
    assert where.matches(PODS) is meant


def test_one_string_where_several_are_meant_is_refused() -> None:
    with pytest.raises(TypeError, match=r"verbs is one string; give several, such as \{'create'\}"):
        Where(verbs="create")


def test_delays_add_up_and_the_first_of_another_kind_is_the_last() -> None:
    made, (first, second, refused, never) = rules(Delay(1), Delay(2), Refuse(), Hang())
    assert made.met_by(PODS) == [first, second, refused]
    assert never.hits == 0


def test_what_befalls_watches_does_not_befall_other_calls() -> None:
    made, (_, _, cut, _) = rules(LoseEvents(), SilenceWatch(), CutWatch(), ExpireWatch())
    assert made.met_by(PODS) == []
    assert made.met_by(Call(verb="watch", resource="pods")) == [cut]


def test_a_rule_is_spent_after_so_many_times() -> None:
    made, (rule,) = rules(Refuse(), times=2)
    assert [bool(made.met_by(PODS)) for _ in range(4)] == [True, True, False, False]
    assert rule.hits == 2


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_is_a_part(share: float) -> None:
    with pytest.raises(ValueError, match="share is"):
        rules(Answer(500), share=share)


@given(seed=st.integers(0, 2**32), share=st.floats(0.01, 1.0))
def test_who_is_struck_depends_on_seed_and_order_alone(seed: int, share: float) -> None:
    def struck() -> list[bool]:
        made, _ = rules(Refuse(), share=share, seed=seed)
        return [bool(made.met_by(PODS)) for _ in range(50)]

    assert struck() == struck()


@given(writes=st.integers(0, 5), calls=st.lists(st.sampled_from(["create", "get", "patch"]), max_size=20))
def test_exactly_so_many_writes_are_let_through_and_then_nothing(writes: int, calls: list[str]) -> None:
    stop = Stop(writes, Where(), answered=True, then=lambda: None)
    let = [verb for verb in calls if stop.admits(Call(verb=verb, resource="pods"))]
    assert let == calls[: len(let)]
    done = sum(verb != "get" for verb in let)
    assert done == min(writes, sum(verb != "get" for verb in calls))
    if len(let) < len(calls):
        assert done == writes


def through(text: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(text)
    reader.feed_eof()
    return reader


@given(parts=st.lists(st.binary(min_size=1, max_size=300), max_size=6))
def test_chunks_come_out_as_they_went_in(parts: list[bytes]) -> None:
    async def read() -> list[bytes]:
        sent = b"".join(map(http.as_chunk, parts)) + http.LAST_CHUNK
        return [part async for part in http.read_pieces(through(sent), http.CHUNKED)]

    assert asyncio.run(read()) == parts


@pytest.mark.parametrize(
    ("method", "answer", "length", "closes"),
    [
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 5, False),
        ("GET", b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: chunked\r\n\r\n", http.CHUNKED, False),
        ("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\n", 5, True),
        ("GET", b"HTTP/1.1 200 OK\r\n\r\n", http.CLOSED, True),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, False),
        ("PUT", b"HTTP/1.1 204 No Content\r\n\r\n", 0, False),
        (
            "PUT",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 7\r\n\r\n",
            7,
            False,
        ),
    ],
)
def test_the_head_of_an_answer_says_how_long_it_is(
    method: str, answer: bytes, length: int, closes: bool
) -> None:
    async def read() -> http.Head:
        return await http.read_answer(through(answer), method=method)

    head = asyncio.run(read())
    assert (head.length, head.closes) == (length, closes)


def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    async def read() -> list[bytes]:
        return [part async for part in http.read_pieces(through(b"half"), 10)]

    with pytest.raises(asyncio.IncompleteReadError):
        asyncio.run(read())


HEAD = http.Head(
    b"GET /api/v1/namespaces/t/pods/one?x=y HTTP/1.1\r\nHost: a\r\n"
    b"Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\nAccept-Encoding: gzip\r\n\r\n",
    0,
    False,
)


def test_one_object_of_the_past_is_asked_for_as_a_list_of_one() -> None:
    assert stale.one_at(HEAD, "7").raw == (
        b"GET /api/v1/namespaces/t/pods?fieldSelector=metadata.name%3Done&resourceVersion=7"
        b"&resourceVersionMatch=Exact HTTP/1.1\r\nHost: a\r\n"
        b"Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("/a", "/a?resourceVersion=7&resourceVersionMatch=Exact"),
        ("/a?resourceVersion=0&limit=5", "/a?resourceVersion=7&limit=5&resourceVersionMatch=Exact"),
        ("/a?limit=5&continue=abc", "/a?limit=5&continue=abc"),
    ],
)
def test_a_list_of_the_past_is_asked_for_at_its_first_page(target: str, asked: str) -> None:
    head = http.Head(f"GET {target} HTTP/1.1\r\n\r\n".encode(), 0, False)
    assert stale.list_at(head, "7").first_line == ["GET", asked, "HTTP/1.1"]


@pytest.mark.parametrize(
    ("said", "status", "kind"),
    [
        ({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {}}]}, 200, "Pod"),
        ({"kind": "PodList", "apiVersion": "v1", "items": []}, 404, "Status"),
        ({"kind": "Table", "rows": []}, 200, "Table"),
    ],
)
def test_the_only_item_of_a_list_is_the_object(said: dict[str, object], status: int, kind: str) -> None:
    answered, body = stale.only_item(json.dumps(said).encode(), "one")
    assert (answered, json.loads(body)["kind"]) == (status, kind)


@pytest.mark.parametrize(
    ("call", "struck"),
    [
        (Call(verb="get", resource="pods", name="one"), True),
        (Call(verb="list", resource="pods"), True),
        (Call(verb="get", resource="pods/status", name="one"), False),
        (Call(verb="get", resource="/readyz"), False),
        (PODS, False),
    ],
)
def test_only_reads_of_whole_objects_are_stale(call: Call, struck: bool) -> None:
    made, _ = rules(Stale("7"))
    assert bool(made.met_by(call)) is struck


def test_the_first_calls_of_a_rule_are_let_through():
    made, (rule,) = rules(Answer(403), after=2, times=2)
    assert [len(made.met_by(PODS)) for _ in range(6)] == [0, 0, 1, 1, 0, 0]
    assert (rule.passed, rule.hits) == (2, 2)
