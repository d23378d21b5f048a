"""How the operator's process ends: when it is asked to, wherever it is; when another acts; and never because it waits for something."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plimsoll.handlers import ending
from plimsoll.handlers.admission import WebhookOptions
from plimsoll.handlers.ending import LeaseLost, ended, raise_end, unless
from plimsoll.handlers.life import Life
from plimsoll.handlers.options import Options
from plimsoll.kube import lease
from tests.kube import virtual
from tests.kube.api_server import kubeconfig

CHART = Path(__file__).parents[2] / "charts/plimsoll/templates/deployment.yaml"
HOOK = WebhookOptions(port=0, hosts=("webhook.svc",), secret="webhook")


@asynccontextmanager
async def silent() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """The address of an API server that takes every call and answers none; and whether it was called."""
    called = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", called
    finally:
        server.close()


@pytest.mark.parametrize("webhook", [None, HOOK], ids=["plain", "with a webhook"])
def test_who_is_asked_to_end_while_the_cluster_is_not_seen_yet_ends_at_once(
    tmp_path: Path, webhook: WebhookOptions | None
) -> None:
    async def main() -> None:
        async with silent() as (address, called):
            with kubeconfig(tmp_path, address):
                life = Life(Options(port=None, offline=True, webhook=webhook))
                running = asyncio.create_task(life.run())
                await called.wait()
                life.stop()
                await running
                assert not life.ready.is_set()

    async def bounded() -> None:
        # Far less than the cluster is waited for.
        async with asyncio.timeout(60):
            await main()

    asyncio.run(bounded())


async def fails() -> None:
    raise ValueError("no")


def test_work_is_done_unless_the_end_comes_first() -> None:
    async def main() -> None:
        stop, beside = asyncio.Event(), asyncio.create_task(asyncio.sleep(5))
        assert await unless(stop, asyncio.sleep(1), beside, None)
        assert not await unless(stop, asyncio.sleep(9), beside)
        with pytest.raises(ValueError, match="no"):
            await unless(stop, fails())
        stop.set()
        assert not await unless(stop, asyncio.sleep(1))

    virtual.run(main())


def test_what_should_have_gone_on_is_told_by_its_error_or_its_name() -> None:
    async def main() -> None:
        goes_on = asyncio.create_task(asyncio.sleep(9))
        done, failed = asyncio.create_task(asyncio.sleep(0)), asyncio.create_task(fails())
        await asyncio.sleep(1)
        raise_end({"stop": done, "turns": goes_on})
        with pytest.raises(LeaseLost):
            raise_end({"stop": goes_on, "lease": done})
        with pytest.raises(RuntimeError, match="turns ended"):
            raise_end({"stop": goes_on, "turns": done})
        with pytest.raises(ValueError, match="no"):
            raise_end({"stop": goes_on, "turns": failed})
        await ended(goes_on)
        assert goes_on.cancelled()

    virtual.run(main())


def test_the_parts_end_before_the_last_resort_and_that_before_the_kubelet_kills() -> None:
    granted = re.search(r"terminationGracePeriodSeconds: (\d+)", CHART.read_text())
    assert granted is not None
    # Three servers: for probes, for admission and for alerts.
    parts = ending.TURNS_SECONDS + ending.LESSONS_SECONDS + 3 * ending.ANSWERS_SECONDS
    parts += lease.LEASE_CALL_SECONDS + ending.KOPF_SECONDS
    assert parts < ending.LAST_RESORT_SECONDS < float(granted[1])


def test_what_nobody_can_cancel_is_named_and_ends_with_the_process() -> None:
    program = """
import threading
from plimsoll.handlers import ending

hangs = threading.Event()

def a_thread_that_hangs():
    hangs.set()
    threading.Event().wait()

threading.Thread(target=a_thread_that_hangs).start()
hangs.wait()
ending.LAST_RESORT_SECONDS = 0.2
ending.end_by_force()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "a_thread_that_hangs" in ended.stderr
