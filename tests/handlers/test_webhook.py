"""The webhook's server over its life: it listens once it can, and what keeps it from that is told and tried again."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plimsoll.facts.resolve import Resolver
from plimsoll.handlers import admission
from plimsoll.handlers.admission import WebhookOptions
from plimsoll.handlers.ending import ended
from plimsoll.handlers.webhook import AGAIN_SECONDS, Webhook
from plimsoll.kube.keeping import LOOK_SECONDS
from plimsoll.planning.plan import Plan
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.seen import Seen
from tests.handlers.test_admission import desk
from tests.kube.test_keeping import HOOK, Server

HERE = "127.0.0.1"


@contextmanager
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as other:
        other.bind((HERE, 0))
        other.listen()
        yield other.getsockname()[1]


def webhook(server: Server, port: int) -> Webhook:
    return Webhook(
        desk(),
        server,  # type: ignore[arg-type]
        WebhookOptions(port=port, hosts=(HERE,), secret="webhook", configuration="hook"),
        namespace="plimsoll",
        host=HERE,
        leads=lambda: True,
        now=time.time,
    )


async def answers(server: Server, port: int) -> bool:
    """Whether somebody is there who shows what the API server was told to trust."""
    bundle = base64.b64decode(server.objects[HOOK]["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    try:
        _, writer = await asyncio.open_connection(HERE, port, ssl=ssl.create_default_context(cadata=bundle))
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def test_a_port_that_somebody_has_is_told_and_tried_again_until_it_is_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        server = Server()
        with taken() as port:
            hook = webhook(server, port)
            assert "certificate" in (hook.unheard or "")
            assert [await hook.look() for _ in range(3)] == [AGAIN_SECONDS] * 3
            assert "in use" in (hook.unheard or "")
        try:
            assert await hook.look() == LOOK_SECONDS
            assert hook.unheard is None
            assert await answers(server, port)
        finally:
            await hook.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    told = [one for one in caplog.messages if "does not listen" in one]
    assert len(told) == 1, "once for as long as it stays so"
    assert "in use" in told[0]


def test_a_planner_that_fails_keeps_nobody_from_being_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def planned(seen: Seen) -> Plan:
        raise ArithmeticError(seen.deployment.name)

    monkeypatch.setattr(admission, "foreseen", planned)

    async def run() -> None:
        hook = webhook(Server(), 0)
        hook._admission._world.models = Models(Resolver(), lambda: 0.0)
        task = asyncio.create_task(hook.run())
        async with asyncio.timeout(60):
            while hook.unheard is not None and not task.done():
                await asyncio.sleep(0.01)
        assert not task.done()
        await ended(task)

    asyncio.run(run())
    assert "ArithmeticError: plain" in caplog.text
