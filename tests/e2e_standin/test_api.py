"""The stand-in's API, asked by the client that measures real engines, and by hand."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from plimsoll.load.bench import bench
from plimsoll.load.client import Api, Endpoint
from plimsoll.load.drive import Limits as Bounds
from plimsoll.load.lengths import Fixed
from plimsoll.load.workload import ClosedLoop, Workload
from standin.api import routes
from standin.instance import Instance
from standin.told import LIMITS, Told
from tests.load.virtual import virtually

TOLD = Told(model="tiny", limits=replace(LIMITS, max_model_len=4096))
Connector = Callable[[], aiohttp.BaseConnector]


@asynccontextmanager
async def serving(told: Told = TOLD) -> AsyncIterator[tuple[Instance, Connector]]:
    """On a socket of the file system, so that time may be virtual."""
    instance = Instance(told)
    app = web.Application()
    app.add_routes(routes(lambda _: instance))
    with tempfile.TemporaryDirectory() as folder:
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        path = str(Path(folder) / "s")
        await web.UnixSite(runner, path).start()
        try:
            yield instance, lambda: aiohttp.UnixConnector(path, limit=0, force_close=True)
        finally:
            await instance.close()
            await runner.cleanup()


def asked(path: str, body: Any = None, before: Callable[[Instance], None] | None = None) -> tuple[int, Any]:
    async def work() -> tuple[int, Any]:
        async with (
            serving() as (instance, connector),
            aiohttp.ClientSession(connector=connector()) as session,
        ):
            if before is not None:
                before(instance)
            how = session.get if body is None else session.post
            async with how(f"http://tiny{path}", **({} if body is None else {"json": body})) as response:
                text = await response.text()
                return response.status, await response.json() if text.startswith("{") else text

    return virtually(work())


@pytest.mark.parametrize("api", list(Api))
def test_the_client_of_real_engines_measures_it(api: Api):
    async def work() -> Any:
        async with serving() as (_, connector):
            return await bench(
                Endpoint(url="http://tiny", api=api),
                Workload(pattern=ClosedLoop(4), input_tokens=Fixed(200), output_tokens=Fixed(20)),
                Bounds(seconds=20.0, warmup_s=2.0, drain_s=10.0, in_flight=64),
                connector=connector,
            )

    result = virtually(work())
    times = TOLD.times
    assert result.counts.bad == 0
    assert result.counts.ok > 50
    assert result.itl_ms.p50 == pytest.approx(1000 * times.decode[4], rel=0.1)
    assert result.lengths.output_mean == 20
    assert result.lengths.input_error_percent < 2


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        (
            "/v1/completions",
            {"model": "other", "prompt": "a"},
            404,
            "The model `other` does not exist. Valid aliases: tiny.",
        ),
        ("/v1/completions", {}, 400, "Either prompt or prompt_embeds must be provided"),
        ("/v1/chat/completions", {"messages": []}, 400, "messages must be a list"),
        ("/v1/chat/completions", {"messages": ["a"]}, 400, "messages must be a list"),
        ("/v1/completions", {"prompt": "a", "max_tokens": 0}, 400, "max_tokens must be at least 1, got 0"),
        ("/v1/completions", {"prompt": "a", "max_tokens": "x"}, 400, "max_tokens must be at least 1, got x"),
        ("/v1/completions", [], 400, "the body must be an object"),
        ("/v1/completions", {"prompt": [5] * 5000}, 400, "maximum context length is 4096 tokens"),
    ],
)
def test_a_wrong_request_is_refused_in_the_engines_words(path: str, body: Any, status: int, said: str):
    found, answer = asked(path, body)
    assert (found, answer["error"]["code"]) == (status, status)
    assert said in answer["error"]["message"]


def test_an_answer_ends_where_the_context_does():
    _, answer = asked("/v1/completions", {"prompt": [5] * 4000, "max_tokens": 1000})
    assert answer["usage"] == {"prompt_tokens": 4000, "total_tokens": 4096, "completion_tokens": 96}
    assert answer["choices"][0]["finish_reason"] == "length"


def test_one_that_drains_is_healthy_and_aborts():
    assert asked("/health", before=Instance.drain)[0] == 200
    status, answer = asked("/v1/completions", {"prompt": [1], "max_tokens": 4}, before=Instance.drain)
    assert (status, answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == (
        200,
        "abort",
        0,
    )


def test_its_models_and_its_version_are_listed():
    _, models = asked("/v1/models")
    assert [(one["id"], one["max_model_len"]) for one in models["data"]] == [("tiny", 4096)]
    assert asked("/version") == (200, {"version": "0.33.0"})


def test_a_death_cuts_the_stream():
    async def work() -> Any:
        async with (
            serving() as (instance, connector),
            aiohttp.ClientSession(connector=connector()) as session,
        ):
            body = {"prompt": [1], "max_tokens": 1000, "stream": True}
            async with session.post("http://tiny/v1/completions", json=body) as response:
                await response.content.readany()
                instance.die()
                await response.read()

    with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientOSError)):
        virtually(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_closes_its_connection_where_the_engine_is_told_to_and_a_scrape_never_does(
    *, closes: bool, stream: bool
):
    async def work() -> tuple[bool, bool, bool]:
        async with (
            serving(replace(TOLD, closes=closes)) as (_, connector),
            aiohttp.ClientSession(connector=connector()) as session,
        ):
            body = {"prompt": [1, 2, 3], "max_tokens": 2, "stream": stream}

            async def closed(how: str, path: str, **said: Any) -> bool:
                # The connector itself asks for a close in each request unless another header says otherwise.
                kept = {"Connection": "keep-alive"}
                async with session.request(how, f"http://tiny{path}", headers=kept, **said) as response:
                    await response.read()
                    return response.headers.get("Connection") == "close"

            return (
                await closed("POST", "/v1/completions", json=body),
                await closed("POST", "/v1/completions", json={}),
                await closed("GET", "/metrics"),
            )

    assert virtually(work()) == (closes, closes, False)
