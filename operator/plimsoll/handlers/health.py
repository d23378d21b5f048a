"""Liveness, readiness and metrics of the operator: three paths over HTTP for the kubelet and for Prometheus.

The operator is alive while its event loop runs (it answers at all), no watch has been silent or deaf for long, and no turn hangs. It is ready
once it has seen what is in the cluster. A standby that waits for the Lease is ready, as an upgrade must not wait for it to lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from aiohttp import web

from plimsoll.handlers.serving import runner_of

LOG: Final = logging.getLogger(__name__)

SILENT_SECONDS: Final = 240.0
"""How long a watch may be silent. The server sends something about once a minute, and a watch restarts itself after 70 s of silence."""
DEAF_SECONDS: Final = 600.0
"""How long kopf may miss changes. It begins its watch anew after 300 s at most, so a longer time is no matter of the network."""
HANGING_SECONDS: Final = 600.0
"""How long a turn may take."""
LINES_AT_ONCE: Final = 2000
"""Lines of metrics that are made before other tasks get a turn: that is two milliseconds."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: str
    text: str
    samples: Iterable[tuple[str, float]]
    """Pairs of labels, as they are written between braces, and value. For a histogram whatever follows its name in place of labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What the three paths ask of the process."""

    now: Callable[[], float]
    """The clock, in seconds, of alive_at and turns_since."""
    alive_at: Callable[[], float]
    """When the watch that has been silent for longest last heard something."""
    deaf_seconds: Callable[[], float]
    """How long kopf's watch has told nothing while deployments changed."""
    turns_since: Callable[[], float | None]
    """When the turn began that has been running for longest."""
    unready: Callable[[], str | None]
    """Why the process is not ready yet; None where it is."""
    metrics: Callable[[], Iterator[Metric]]

    def ill(self) -> str | None:
        """What is wrong with the process that a restart would cure; None where nothing is."""
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


async def serve_health(probe: Probe, host: str, port: int) -> web.AppRunner:
    """Answers until its cleanup() is awaited."""

    told = False

    async def alive(_: web.Request) -> web.Response:
        nonlocal told
        wrong = probe.ill()
        if wrong and not told:
            # The kubelet ends the process after a few such answers, and what they said would be gone with it.
            LOG.error("not alive, as /healthz answers: %s", wrong)
        told = bool(wrong)
        # Of a 503 kubectl shows no body, but words of its own.
        return web.Response(text=wrong or "ok", status=500 if wrong else 200)

    async def ready(_: web.Request) -> web.Response:
        missing = probe.unready()
        return web.Response(text=missing or "ok", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
        # The parameter of Prometheus' own clients: whoever asks for a few metrics is not sent those of ten thousand deployments.
        asked = frozenset(request.query.getall("name[]", ()))
        lines = exposition(one for one in probe.metrics() if not asked or one.name in asked)
        # A scraper that waits no longer says so itself; here it would be a traceback in each minute.
        with contextlib.suppress(ConnectionError):
            await answer.prepare(request)
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
    runner = runner_of(app)
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
