"""Many stand-in engines behind one port: each plays a pod at /NAMESPACE/POD, with its metrics page and its API.

A Prometheus scrapes them there (`PodDiscovery.stand_in` is this address), or through targets made by hand. Traffic is a
knob: so many requests a second, spread over the pods that serve as a Service spreads connections, at random.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from aiohttp import web

from cluster.metrics.config import Target
from standin.api import routes
from standin.instance import Instance, State
from standin.start import told_of
from standin.told import Told

TICK_S: Final = 0.05
Answer = TypeVar("Answer")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What comes in, over all pods together."""

    requests_per_second: float = 0.0
    input_tokens: int = 512
    output_tokens: int = 128
    spread: float = 0.5
    """Of both lengths: the standard deviation of their logarithm."""


class Fleet:
    """Use it with `with`. Engines live in a thread of their own; everything here may be called from the test's."""

    def __init__(self, told: Told | None = None, *, gpu: str | None = None, seed: int = 1) -> None:
        """`told` is what an engine is told whose pod says nothing else; with a GPU, pods of models that the catalogue knows
        get their cache by the ledger and their speed by the planner's constants."""
        self._told = told or Told()
        self._gpu = gpu
        self._random = random.Random(f"fleet {seed}")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stand-in engines", daemon=True)
        self._pods: dict[Key, Instance] = {}
        self._lives: dict[Key, tuple[object, ...]] = {}
        """Of pods of a cluster: what changes when another process takes a pod's name, or its place."""
        self._load = Load()
        self._sent = self._lost = 0
        self._tick: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._runner, port = self._do(self._listen())
        self.address: str = f"127.0.0.1:{port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._do(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    # What a test does

    def add(self, namespace: str, name: str, told: Told | None = None) -> str:
        """A pod that serves from now on; its address, at which /metrics and /v1 are."""

        async def add() -> None:
            await self._remove((namespace, name))
            self._pods[namespace, name] = Instance(told or self._told)
            self._lives[namespace, name] = ()

        self._do(add())
        return f"http://{self.address}/{namespace}/{name}"

    def remove(self, namespace: str, name: str) -> None:
        """The pod is gone, and what it was answering is lost."""
        self._do(self._remove((namespace, name)))

    def keep(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Exactly these pods, as the API server lists them: ready ones serve with the limits that their arguments say,
        others do not, and those that are no longer listed are gone. One that its container restarted begins anew."""

        async def keep() -> None:
            found = {key: seen for key, seen in map(self._seen, pods) if seen is not None}
            for key in [key for key in self._pods if key not in found]:
                await self._remove(key)
            for key, (told, *life) in found.items():
                if key not in self._pods or self._lives[key] != (told, *life):
                    await self._remove(key)
                    self._pods[key], self._lives[key] = Instance(told), (told, *life)

        self._do(keep())

    def load(
        self,
        requests_per_second: float,
        *,
        input_tokens: int = 512,
        output_tokens: int = 128,
        spread: float = 0.5,
    ) -> None:
        """How much comes in from now on."""
        self._load = Load(
            requests_per_second=requests_per_second,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            spread=spread,
        )

    def target(self, namespace: str, name: str, uid: str = "") -> Target:
        """Something to scrape, that looks like a discovered pod."""
        labels = {"namespace": namespace, "pod": name, "uid": uid or f"uid-of-{name}"}
        return Target(address=self.address, path=f"/{namespace}/{name}/metrics", labels=labels)

    def crash(self, namespace: str, name: str) -> None:
        """The engine dies with all it has and is started again at once, its counters at zero."""
        self.tell(namespace, name, Instance.restart)

    def hang(self, namespace: str, name: str) -> None:
        self.tell(namespace, name, Instance.hang)

    def tell(self, namespace: str, name: str, what: Callable[[Instance], Answer]) -> Answer:
        """Anything else, in the engines' own thread."""

        async def tell() -> Answer:
            instance = self._pods[namespace, name]
            instance.look()
            return what(instance)

        return self._do(tell())

    @property
    def pods(self) -> Sequence[Key]:
        return sorted(self._pods)

    @property
    def counted(self) -> tuple[int, int]:
        """Requests sent by the knob, and those of them that no pod took."""
        return self._sent, self._lost

    # In the engines' thread

    def _seen(self, body: Mapping[str, Any]) -> tuple[Key, tuple[Told, object, object] | None]:
        """What a ready pod's engine is told, and which life of it this is."""
        metadata, status = body["metadata"], body.get("status") or {}
        key = (metadata["namespace"], metadata["name"])
        conditions = status.get("conditions") or ()
        ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
        told = told_of(body, self._told, self._gpu)
        if not ready or metadata.get("deletionTimestamp") or told is None:
            return key, None
        restarts = tuple(one.get("restartCount") for one in status.get("containerStatuses") or ())
        return key, (told, metadata.get("uid"), restarts)

    def _do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> tuple[web.AppRunner, int]:
        app = web.Application(client_max_size=1 << 26)
        app.add_routes(routes(self._served, "/{namespace}/{pod}"))
        app.router.add_get("/{namespace}/{pod}", self._page)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        self._tick = asyncio.create_task(self._traffic())
        return runner, runner.addresses[0][1]

    async def _close(self) -> None:
        if self._tick is not None:
            self._tick.cancel()
            with suppress(asyncio.CancelledError):
                await self._tick  # what went wrong in it is the test's to know
        for key in list(self._pods):
            await self._remove(key)
        await self._runner.cleanup()

    async def _remove(self, key: Key) -> None:
        self._lives.pop(key, None)
        instance = self._pods.pop(key, None)
        if instance is not None:
            await instance.close()

    def _served(self, request: web.Request) -> Instance:
        instance = self._pods.get((request.match_info["namespace"], request.match_info["pod"]))
        if instance is None or instance.state is State.DEAD:
            raise web.HTTPNotFound(text="no such pod\n")
        return instance

    async def _page(self, request: web.Request) -> web.Response:
        """Where `PodDiscovery.stand_in` looks."""
        return web.Response(text=self._served(request).metrics())

    async def _traffic(self) -> None:
        """Arrivals at random, each at its own moment, although they are handed over at every tick."""
        last = self._loop.time()
        while True:
            await asyncio.sleep(TICK_S)
            now = self._loop.time()
            load, ready = self._load, [one for one in self._pods.values() if one.state is State.SERVING]
            at = last
            if load.requests_per_second > 0:
                while (at := at + self._random.expovariate(load.requests_per_second)) < now:
                    self._send(load, ready, now - at)
            for instance in ready:
                instance.look()
            last = now

    def _send(self, load: Load, ready: Sequence[Instance], ago: float) -> None:
        self._sent += 1
        given, asked = (
            max(1, round(median * self._random.lognormvariate(0, load.spread)))
            for median in (load.input_tokens, load.output_tokens)
        )
        if not ready:
            self._lost += 1
            return
        instance = self._random.choice(ready)
        if instance.submit(given, asked, at=max(0.0, instance.now - ago)) is None:
            self._lost += 1
