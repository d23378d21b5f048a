"""A known server on a real port, in a thread with a loop of its own, for commands that are run as a user runs them."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

from tests.load.known_server import Behaviour, KnownServer


@contextmanager
def listening(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, KnownServer]]:
    """The address, and the server to ask what it saw."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> tuple[web.AppRunner, KnownServer]:
        server = KnownServer(behaviour)
        runner = web.AppRunner(server.app(), access_log=None, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        return runner, server

    runner, server = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{runner.addresses[0][1]}", server
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
