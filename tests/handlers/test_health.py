"""What a kubelet hears of the operator: alive, and ready once it has seen what there is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace

import aiohttp
import pytest

from plimsoll.handlers.health import (
    DEAF_SECONDS,
    HANGING_SECONDS,
    SILENT_SECONDS,
    Metric,
    Probe,
    serve_health,
)

NOW = 10_000.0


def probe(
    *, alive_at: float = NOW, began: float | None = None, missing: str | None = None, deaf: float = 0.0
) -> Probe:
    def metrics() -> Iterator[Metric]:
        yield Metric("plimsoll_leads", "gauge", "Whether it acts.", (("", 1.0),))
        yield Metric("plimsoll_deployments", "gauge", "How many.", (("", 3.0),))

    return Probe(
        now=lambda: NOW,
        alive_at=lambda: alive_at,
        deaf_seconds=lambda: deaf,
        turns_since=lambda: began,
        unready=lambda: missing,
        metrics=metrics,
    )


def asked(one: Probe, path: str) -> tuple[int, str]:
    async def run() -> tuple[int, str]:
        runner = await serve_health(one, "127.0.0.1", 0)
        try:
            url = f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return answer.status, await answer.text()
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def test_why_it_is_not_alive_is_logged_once_as_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    silent_for = iter((0.0, SILENT_SECONDS + 1, SILENT_SECONDS + 6, 0.0, SILENT_SECONDS + 2))
    one = replace(probe(), alive_at=lambda: NOW - next(silent_for))

    async def run() -> None:
        runner = await serve_health(one, "127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                for _ in range(5):
                    await session.get(f"http://127.0.0.1:{runner.addresses[0][1]}/healthz")
        finally:
            await runner.cleanup()

    asyncio.run(run())
    assert [
        record.getMessage().partition(": ")[2]
        for record in caplog.records
        if "/healthz" in record.getMessage()
    ] == [
        f"a watch has been silent for {seconds:.0f} s" for seconds in (SILENT_SECONDS + 1, SILENT_SECONDS + 2)
    ]


@pytest.mark.parametrize(
    ("one", "path", "status", "words"),
    [
        (probe(), "/healthz", 200, "ok"),
        (probe(alive_at=NOW - SILENT_SECONDS - 1), "/healthz", 500, "a watch has been silent for 241 s"),
        (probe(deaf=DEAF_SECONDS), "/healthz", 200, "ok"),
        (probe(deaf=DEAF_SECONDS + 1), "/healthz", 500, "only found by looking for 601 s"),
        (probe(began=NOW - HANGING_SECONDS - 1), "/healthz", 500, "a turn has been running for 601 s"),
        (probe(missing="what is in the cluster has not been seen yet"), "/healthz", 200, "ok"),
        (probe(), "/readyz", 200, "ok"),
        (
            probe(missing="what is in the cluster has not been seen yet"),
            "/readyz",
            503,
            "has not been seen yet",
        ),
        (probe(), "/metrics", 200, "plimsoll_leads 1"),
    ],
    ids=[
        "alive",
        "a silent watch",
        "a deaf watch, not for long",
        "a deaf watch",
        "a turn that hangs",
        "alive though not ready",
        "ready",
        "not ready",
        "metrics",
    ],
)
def test_it_says_how_it_is(one: Probe, path: str, status: int, words: str) -> None:
    found = asked(one, path)
    assert found[0] == status
    assert words in found[1]


def test_metrics_that_are_asked_for_by_name_are_told_alone() -> None:
    _, told = asked(probe(), "/metrics?name[]=plimsoll_deployments")
    assert [line for line in told.splitlines() if not line.startswith("#")] == ["plimsoll_deployments 3"]


def test_who_leaves_before_all_metrics_are_told_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    left = asyncio.Event()

    def metrics() -> Iterator[Metric]:
        for number in range(200):
            yield Metric(
                f"plimsoll_{number}", "gauge", "Many.", ((f'of="{each}"', 1.0) for each in range(1000))
            )
        left.set()

    async def run() -> None:
        runner = await serve_health(replace(probe(), metrics=metrics), "127.0.0.1", 0)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", runner.addresses[0][1])
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: operator\r\n\r\n")
            await reader.read(100)
            writer.transport.abort()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(left.wait(), 0.5)
        finally:
            await runner.cleanup()

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    assert not left.is_set(), "what nobody reads is not made"
