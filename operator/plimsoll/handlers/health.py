"""Is it alive, may it be counted on, and what has it done: three paths over HTTP for the kubelet and for Prometheus.

Alive means that the loop turns (it answers), that no watch has been silent for long nor missed all that happened, and that no
turn hangs. Ready means that it has seen what there is. A standby that waits for the Lease is ready: an upgrade must not wait for it to lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from aiohttp import web

from plimsoll.handlers.ending import ANSWERS_SECONDS

SILENT_SECONDS: Final = 240.0
"""Watches are told something about once a minute, be it that there is no news; they find out by themselves after 70 s."""
DEAF_SECONDS: Final = 600.0
"""kopf begins its watch anew after 300 s at most, so that what it heard nothing of for so long is not the network's."""
HANGING_SECONDS: Final = 600.0
LINES_AT_ONCE: Final = 2000
"""Of metrics: two milliseconds of the loop."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: str
    text: str
    samples: Iterable[tuple[str, float]]
    """Labels as they are written between braces, and the value. Of a histogram whatever follows its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    now: Callable[[], float]
    """Seconds, of the clock that alive_at and turns_since are told in."""
    alive_at: Callable[[], float]
    """When the watch that is silent for longest heard something."""
    deaf_seconds: Callable[[], float]
    """For how long kopf's watch has told nothing while deployments changed."""
    turns_since: Callable[[], float | None]
    """When the turn that runs for longest began."""
    unready: Callable[[], str | None]
    """Why it may not be counted on yet."""
    metrics: Callable[[], Iterator[Metric]]

    def ill(self) -> str | None:
        """What is wrong with the process, so that a restart helps."""
        silent = self.now() - self.alive_at()
        if silent > SILENT_SECONDS:
            return f"a watch has been silent for {silent:.0f} s"
        deaf = self.deaf_seconds()
        if deaf > DEAF_SECONDS:
            return f"changes have not been told but only found by looking for {deaf:.0f} s"
        began = self.turns_since()
        if began is not None and self.now() - began > HANGING_SECONDS:
            return f"a turn has been running for {self.now() - began:.0f} s"
        return None


async def serve(probe: Probe, host: str, port: int) -> web.AppRunner:
    """Answers until its cleanup() is awaited."""

    async def alive(_: web.Request) -> web.Response:
        wrong = probe.ill()
        return web.Response(text=wrong or "ok", status=503 if wrong else 200)

    async def ready(_: web.Request) -> web.Response:
        missing = probe.unready()
        return web.Response(text=missing or "ok", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
        await answer.prepare(request)
        # As Prometheus' own clients take it: whoever asks for a few by name is not told of ten thousand deployments.
        asked = frozenset(request.query.getall("name[]", ()))
        lines = exposition(one for one in probe.metrics() if not asked or one.name in asked)
        while piece := "".join(islice(lines, LINES_AT_ONCE)):
            await answer.write(piece.encode())
            await asyncio.sleep(0)
        return answer

    app = web.Application()
    app.add_routes([
        web.get("/healthz", alive),
        web.get("/readyz", ready),
        web.get("/metrics", metrics),
    ])  # fmt: skip
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=ANSWERS_SECONDS)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    await asyncio.sleep(0)
    return runner


def exposition(metrics: Iterator[Metric]) -> Iterator[str]:
    """Prometheus' text format."""
    for metric in metrics:
        yield f"# HELP {metric.name} {metric.text}\n# TYPE {metric.name} {metric.kind}\n"
        for labels, value in metric.samples:
            more = f"{{{labels}}}" if labels and metric.kind != "histogram" else labels
            yield f"{metric.name}{more} {value:.15g}\n"
