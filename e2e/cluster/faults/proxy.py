"""Stands between a client and the API server, passes everything on, and plays the faults that a test asks for.

It runs in a thread of its own, so a test sets rules and reads counts while it works. What happens on a connection is `passing`'s.
HTTP/1.1 only, without upgrades: `kubectl exec` goes to the server itself.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from cluster.api import Api
from cluster.faults.calls import Where
from cluster.faults.counts import Counts
from cluster.faults.passing import HEAD_LIMIT, POLL_SECONDS, Passing, Traffic
from cluster.faults.rules import ANY, Fault, Rule
from cluster.faults.stop import Stop
from cluster.faults.watches import Watch

HANDSHAKE_SECONDS: Final = 10
LAST_TURNS: Final = 10
"""Of the loop, in which what was ended last is taken apart: each layer of a connection tells the next one in a turn of its own."""


class FaultProxy:
    """Use it with `with`. It goes by the API server's own certificate, so that clients trust both alike."""

    def __init__(self, server: str, *, certificate: Path, key: Path) -> None:
        at = urlsplit(server)
        assert at.hostname is not None
        assert at.port is not None
        trust = ssl.create_default_context(cafile=str(certificate))
        self._traffic = Traffic(host=at.hostname, port=at.port, trust=trust)
        # Never in plain HTTP: kubectl and Go's clients send no token there.
        self._own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._own.load_cert_chain(certificate, key)
        self._passing: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.WriteTransport] = set()
        self.server = ""
        """Where clients reach it."""

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._traffic.rules.clear()
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    @property
    def counts(self) -> Counts:
        """What went through."""
        return self._traffic.counts

    def kubeconfig(self, direct: Path) -> Path:
        """One like the given file that leads through this proxy, beside it."""
        content = json.loads(direct.read_text())
        for one in content["clusters"]:
            one["cluster"]["server"] = self.server
        file = direct.with_name(f"{direct.stem}-through-{urlsplit(self.server).port}.yaml")
        file.touch(mode=0o600)
        file.write_text(json.dumps(content, indent=2) + "\n")
        return file

    def api(self, direct: Api) -> Api:
        """A client like the given one that goes through this proxy."""
        return Api(server=self.server, token=direct.token, ca=direct.ca)

    def add(
        self,
        fault: Fault,
        where: Where = ANY,
        *,
        share: float = 1.0,
        times: int | None = None,
        seed: int = 0,
        after: int = 0,
    ) -> Rule:
        """From now on; a `with` around it ends it."""
        return self._traffic.rules.add(fault, where, share=share, times=times, seed=seed, after=after)

    def stop_after(self, writes: int, where: Where = ANY, *, answered: bool = True) -> Stop:
        """After so many writes that match everything is refused, as if the client had died just then; see `Stop`."""
        if self._traffic.stop is not None and not self._traffic.stop.released:
            raise RuntimeError("a stop stands already; release it first")
        stop = Stop(writes, where, answered=answered, then=lambda: self._each_watch(ANY, Watch.cut))
        self._traffic.stop = stop
        if writes == 0:
            self.cut_watches()
        return stop

    def cut_watches(self, where: Where = ANY) -> int:
        """Those that are open now; how many."""
        return self._in_loop(lambda: self._each_watch(where, Watch.cut))

    def expire_watches(self, where: Where = ANY) -> int:
        """Those that are open now get the error event of an expired version, and end; how many."""
        return self._in_loop(lambda: self._each_watch(where, Watch.expire))

    def _each_watch(self, where: Where, act: Callable[[Watch], None]) -> int:
        meant = [watch for watch in self._traffic.watches if where.matches(watch.call)]
        for watch in meant:
            act(watch)
        return len(meant)

    def _in_loop(self, call: Callable[[], int]) -> int:
        async def run() -> int:
            return call()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        server = await self._loop.create_server(
            lambda: Connection(self._open, self._accept),
            "127.0.0.1",
            0,
            ssl=self._own,
            backlog=1024,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        port = server.sockets[0].getsockname()[1]
        self.server = f"https://127.0.0.1:{port}"
        ready.set()
        await self._end.wait()
        for (
            listening
        ) in server.sockets:  # a server that is closed breaks what it let in and has not begun yet
            self._loop.remove_reader(listening)
        await asyncio.sleep(0)
        server.close()
        await self._leave_all()

    async def _leave_all(self) -> None:
        """Also those who are let in this very moment: a handshake or a task that is cancelled before it began would close nothing."""
        while asyncio.all_tasks() - {asyncio.current_task()} or self._open:
            for task in self._passing:
                task.cancel()
            for connection in self._open:
                connection.abort()
            await asyncio.sleep(POLL_SECONDS)  # what was ended is gone a turn later
        # So are the connections to the server of those that ended last, however slowly turns follow on one another.
        for _ in range(LAST_TURNS):
            await asyncio.sleep(0)

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        await Passing(self._traffic, reader, writer).run()
        self._passing.discard(task)


class Connection(asyncio.StreamReaderProtocol):
    """A client's, counted among the open ones from the end of its handshake until it is gone."""

    def __init__(
        self,
        open_ones: set[asyncio.WriteTransport],
        accept: Callable[[StreamReader, StreamWriter], Awaitable[None]],
    ) -> None:
        super().__init__(StreamReader(limit=HEAD_LIMIT), accept)
        self._open_ones = open_ones

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport_made = transport
        self._open_ones.add(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_ones.discard(self._transport_made)
        super().connection_lost(exc)
