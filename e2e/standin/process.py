"""One stand-in engine as a process: refused flags, a start in phases with nobody on the port, an end by signal or by fault.

Its log has the lines that tell a real start's phases, so that what reads real logs can be tried on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from plimsoll.simulate.interference import NONE, Interference
from plimsoll.simulate.steps import StepTimes
from standin.api import routes
from standin.argv import CONFIGURATION, PARSER, FlagsRefused
from standin.instance import Instance, State
from standin.start import NEWEST, started
from standin.told import TIMES, Told

PORT: Final = 8000
DIED: Final = 1
_LOOK_S: Final = 0.05
_ENDING_S: Final = 0.2
"""Between the last word to a client and the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What is to happen to it beyond its command line."""

    version: str = NEWEST
    gpu: str | None = None
    taken_gib: float = 0.0
    """Of the GPU's memory, by others."""
    times: StepTimes = TIMES
    """Where no GPU is named."""
    interference: Interference = NONE
    start_s: float = 0.0
    """From the first line of its log until it listens."""
    crash_s: float | None = None
    """After it began to serve; so with the others."""
    oom_s: float | None = None
    hang_s: float | None = None


def run(words: Sequence[str], fate: Fate) -> int:
    """The words behind `vllm serve`; the exit code."""
    try:
        otherwise = Told(times=fate.times, interference=fate.interference)
        told = started(
            words, version=fate.version, gpu=fate.gpu, otherwise=otherwise, taken_gib=fate.taken_gib
        )
    except FlagsRefused as refused:
        if refused.code != PARSER:
            _log(f"vLLM API server version {fate.version}")
            asyncio.run(asyncio.sleep(fate.start_s / 4))
        sys.stderr.write(refused.text)
        return refused.code
    return asyncio.run(_life(words, told, fate))


async def _life(words: Sequence[str], told: Told, fate: Fate) -> int:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    for line in _phases(told, fate):
        _log(line)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), fate.start_s / 6)
            return CONFIGURATION  # a start that is interrupted ends at once
    instance = Instance(told)
    host, port = _address(words)
    app = web.Application(client_max_size=1 << 26)
    app.add_routes(routes(lambda _: instance))
    app.add_routes(_controls(instance, stop))
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_ENDING_S)
    await runner.setup()
    await web.TCPSite(runner, host, port, backlog=1024).start()
    _log(f"Starting vLLM server on http://{host}:{runner.addresses[0][1]}")
    _log("Application startup complete.")
    faults = asyncio.create_task(_faults(instance, fate))
    try:
        return await _serve(instance, stop)
    finally:
        faults.cancel()
        await asyncio.gather(faults, return_exceptions=True)
        await instance.close()
        await runner.cleanup()


async def _serve(instance: Instance, stop: asyncio.Event) -> int:
    while not stop.is_set() and instance.state is not State.DEAD:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _LOOK_S)
    if instance.state is State.DEAD:
        _log("EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.")
        await asyncio.sleep(_ENDING_S)
        return DIED
    drain_s = instance.told.drain_s
    _log("[shutdown] API server: shutdown triggered")
    _log(f"[shutdown] EngineCore: start mode={'drain' if drain_s else 'abort'} timeout={drain_s:g}s")
    if drain_s:
        instance.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                while instance.busy:
                    await asyncio.sleep(_LOOK_S)
                    instance.look()
    instance.abort()
    await asyncio.sleep(_ENDING_S)
    _log("[shutdown] MPClient: complete")
    return 0


async def _faults(instance: Instance, fate: Fate) -> None:
    """In the order in which they are due."""
    due: list[tuple[float, Callable[[Instance], None]]] = [
        (at, what)
        for at, what in ((fate.crash_s, Instance.die), (fate.oom_s, _killed), (fate.hang_s, Instance.hang))
        if at is not None
    ]
    since = 0.0
    for at, what in sorted(due, key=lambda one: one[0]):
        await asyncio.sleep(at - since)
        since = at
        what(instance)


def _killed(_instance: Instance) -> None:
    """As a host without memory does it."""
    os.kill(os.getpid(), signal.SIGKILL)


def _controls(instance: Instance, stop: asyncio.Event) -> Iterator[web.RouteDef]:
    """POST /standin/WHAT, for a test that chooses its moment."""
    for name, what in (("crash", Instance.die), ("hang", Instance.hang), ("oom", _killed)):

        async def control(_request: web.Request, what: Callable[[Instance], None] = what) -> web.Response:
            what(instance)
            return web.Response()

        yield web.post(f"/standin/{name}", control)

    async def end(_request: web.Request) -> web.Response:
        stop.set()
        return web.Response()

    yield web.post("/standin/stop", end)


def _phases(told: Told, fate: Fate) -> Iterator[str]:
    """Of a start, as its log tells them; a sixth of its time each."""
    limits = told.limits
    tokens, times = limits.kv_tokens, limits.kv_tokens / limits.max_model_len
    part = fate.start_s / 6
    yield f"vLLM API server version {told.version}"
    yield f"Initializing a V1 LLM engine (v{told.version}) with config: model={told.model!r}"
    yield f"Starting to load model {told.model}..."
    yield f"Model loading took 1.00 GiB memory and {part:.6f} seconds"
    yield (
        f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {limits.max_model_len:,} tokens per request: "
        f"{times:.2f}x"
    )
    yield f"init engine (profile, create kv cache, warmup model) took {2 * part:.2f} s (compilation: 0.00 s)"


def _address(words: Sequence[str]) -> tuple[str, int]:
    host, port = "0.0.0.0", PORT
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        value = value or (words[place + 1] if place + 1 < len(words) else "")
        if name == "--host":
            host = value
        elif name == "--port":
            port = int(value)
    return host, port


def _log(line: str) -> None:
    sys.stderr.write(f"INFO [standin] {line}\n")
    sys.stderr.flush()
