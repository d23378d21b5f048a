"""Pods that tell, that do not answer, and that answer badly: asked in bounds, and never waited for."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube import engine_reports
from plimsoll.kube.engine_reports import EngineReports
from plimsoll.kube.pace import Pace

KEY = "team/chat"
Answer = Callable[[], bytes]


@pytest.fixture(autouse=True)
def _no_pod_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine; those that do not answer hang up."""
    monkeypatch.setattr(engine_reports, "ANSWER_SECONDS", 600.0)


def told(state: str = "serving", **measured: int) -> bytes:
    return json.dumps({"schema": 1, "state": state, "measured": measured}).encode()


def http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


class Pods:
    """A supervisor's port whose answers a test gives; how often it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer())
        await writer.drain()
        writer.close()
        await writer.wait_closed()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0


@asynccontextmanager
async def asking(answer: Answer) -> AsyncIterator[tuple[EngineReports, Pods, int, asyncio.Event, Clock]]:
    pods, woken, clock = Pods(answer), asyncio.Event(), Clock()
    server = await asyncio.start_server(pods.serve, "127.0.0.1", 0)
    reports = EngineReports(lambda _: woken.set(), Pace(now=lambda: clock.now, chance=lambda: 1.0))
    task = asyncio.create_task(reports.run())
    try:
        yield reports, pods, server.sockets[0].getsockname()[1], woken, clock
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.close()
        await server.wait_closed()
        gc.collect()


def pod(port: int | None, **others: object) -> PodSeen:
    made = PodSeen(name="chat-a-0", uid="u0", stage=Stage.READY, address="127.0.0.1", runtime_port=port)
    return replace(made, **others)  # type: ignore[arg-type]


def serving(*pods: PodSeen) -> Serving:
    return Serving(sets=(SetSeen(name="chat-a", replicas=len(pods), pods=pods),))


async def until(held: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not held():
            await asyncio.sleep(0.005)


def run(main: Awaitable[None]) -> None:
    asyncio.run(main)  # type: ignore[arg-type]


def test_a_pod_that_serves_is_asked_once_and_wakes_its_deployment() -> None:
    async def main() -> None:
        async with asking(lambda: http(told(kvTokens=640, kvBytes=4096))) as (reports, pods, port, woken, _):
            reports.look(KEY, serving(pod(port)))
            await asyncio.wait_for(woken.wait(), 60)
            assert reports.of(KEY)["u0"].kv_tokens == 640
            reports.look(KEY, serving(pod(port)))
            await asyncio.sleep(0)
            assert pods.asked == 1

    run(main())


def test_an_engine_that_starts_is_looked_at_until_it_serves_and_again_after_a_restart() -> None:
    answers = [told("fetching"), told("starting"), told(kvTokens=1), told("starting")]

    async def main() -> None:
        async with asking(lambda: http(answers.pop(0))) as (reports, pods, port, _, clock):
            reports.look(KEY, serving(pod(port, stage=Stage.LOADING)))
            for asked in (1, 2, 3):
                await until(lambda n=asked: pods.asked == n and "u0" in reports.of(KEY))  # type: ignore[misc]
                await until(lambda n=asked: len(answers) == 4 - n and not reports._asking)  # type: ignore[misc]
                clock.now += 61
                reports._news.set()
            assert reports.of(KEY)["u0"].serves
            reports.look(KEY, serving(pod(port, stage=Stage.LOADING, restarts=1)))
            assert not reports.of(KEY)
            await until(lambda: bool(reports.of(KEY)))
            assert reports.of(KEY)["u0"].state == "starting"

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        http(b"not json"),
        http(b"", "500 Internal Server Error"),
        http(b"", "302 Found"),
        http(b"x" * 100_000),
        b"\x00\x01nonsense",
        b"",
    ],
)
def test_an_answer_that_is_none_is_asked_for_again_later_and_tells_nothing(answer: bytes) -> None:
    async def main() -> None:
        async with asking(lambda: answer) as (reports, _, port, woken, _clock):
            reports.look(KEY, serving(pod(port)))
            await until(lambda: reports.failures == 1)
            assert not reports.of(KEY)
            assert not woken.is_set()

    run(main())


def test_pods_that_cannot_tell_are_not_asked() -> None:
    async def main() -> None:
        async with asking(lambda: http(told())) as (reports, pods, port, *_):
            silent = (
                pod(None, uid="none"), pod(port, uid="nowhere", address=""), pod(port, uid="worker", rank=1),
                pod(port, uid="failed", stage=Stage.FAILED), pod(port, uid="gone", stage=Stage.LEAVING),
            )  # fmt: skip
            reports.look(KEY, serving(*silent))
            reports.look("team/other", serving(pod(port)))
            await until(lambda: bool(reports.of("team/other")))
            assert pods.asked == 1
            assert not reports.of(KEY)

    run(main())


def test_what_is_gone_is_forgotten() -> None:
    async def main() -> None:
        async with asking(lambda: http(told(kvTokens=1))) as (reports, _, port, woken, _clock):
            reports.look(KEY, serving(pod(port)))
            await asyncio.wait_for(woken.wait(), 60)
            reports.look(KEY, serving())
            assert not reports.of(KEY)
            reports.look(KEY, serving(pod(port)))
            reports.forget(KEY)
            assert not reports.of(KEY)

    run(main())


def keeping(*states: str) -> bytes:
    adapters = [{"name": f"a{number}", "id": "x", "state": state} for number, state in enumerate(states)]
    body = {"schema": 1, "state": "serving", "measured": {"kvTokens": 7}, "adapters": adapters}
    return json.dumps(body).encode()


def test_where_adapters_come_and_go_a_pod_is_asked_again_and_sooner_while_one_is_on_its_way() -> None:
    looks = ((keeping("Fetching", "Loaded"), 16.0), (keeping("Loaded", "Failed"), 61.0), (keeping(), 61.0))

    async def main() -> None:
        answers = [answer for answer, _ in looks]
        async with asking(lambda: http(answers[0])) as (reports, pods, port, _, clock):
            reports.look(KEY, serving(pod(port)))
            for asked, (_, seconds) in enumerate(looks, 1):
                await until(lambda n=asked: pods.asked == n and not reports._asking)  # type: ignore[misc]
                assert reports.of(KEY)["u0"].adapters is not None
                if len(answers) > 1:
                    answers.pop(0)
                clock.now += seconds
                reports._news.set()
            await until(lambda: pods.asked > len(looks) and not reports._asking)
            assert reports.of(KEY)["u0"].adapters == ()

    run(main())


def test_a_changed_list_is_asked_about_at_once_and_only_by_one_round_of_questions() -> None:
    async def main() -> None:
        async with asking(lambda: http(keeping("Loaded"))) as (reports, pods, port, _, clock):
            reports.look(KEY, serving(pod(port)))
            await until(lambda: pods.asked == 1 and not reports._asking)
            for asked in (2, 3):
                reports.again(KEY)
                await until(lambda n=asked: pods.asked == n and not reports._asking)  # type: ignore[misc]
            clock.now += 16
            reports._news.set()
            await until(lambda: pods.asked == 4 and not reports._asking)
            clock.now += 31
            reports._news.set()
            await until(lambda: pods.asked == 5 and not reports._asking)
            reports.again("team/other")
            assert pods.asked == 5

    run(main())
