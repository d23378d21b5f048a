"""Who answers byte by byte is given up by the same deadline as who is silent, and holds neither a thread nor a connection after it."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plimsoll.facts.engines import engine_facts
from plimsoll.prometheus.client import Prometheus
from plimsoll.prometheus.pods import Page, scrape
from plimsoll.prometheus.vocabulary import vocabulary
from tests.prometheus.serving import body, server

WORDS = vocabulary([engine_facts("vllm", "0.33.0").metrics])
PACE_S = 0.02
DEADLINE_S = 0.5
AT_MOST_S = 30.0
"""Far beyond the deadline, and far below what is trickled."""
HEAD = b"HTTP/1.1 200 OK\r\n"
BEGINNINGS = {
    "a header": HEAD + b"X-Slow: ",
    "a body of a known length": HEAD + b"Content-Length: 100000\r\n\r\n",
    "a body that ends with the connection": HEAD + b"\r\n",
    "a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nfff0\r\n",
    "the length of a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;",
    "an error": b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n",
}


@contextmanager
def trickling(beginning: bytes, left: threading.Event) -> Iterator[str]:
    """A server that never comes to an end; `left` is set once whoever asked has hung up."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.recv(65536)
                self.request.sendall(beginning)
                while not over.wait(PACE_S):
                    self.request.sendall(b" ")
            except OSError:
                left.set()

    class Served(socketserver.ThreadingTCPServer):
        daemon_threads = True

    served = Served(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{served.server_address[1]}"
    finally:
        over.set()
        served.shutdown()
        served.server_close()
        thread.join()


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_prometheus_that_trickles_is_hung_up_on_when_the_time_is_over(beginning: bytes) -> None:
    left = threading.Event()

    async def run(url: str) -> dict[str, str]:
        client = Prometheus(url, deadline_s=DEADLINE_S)
        try:
            return dict((await client.ask({"a": "x"}, lambda _, rows: list(rows))).errors)
        finally:
            client.close()

    with trickling(beginning, left) as url:
        assert asyncio.run(run(url)) == {"a": "no answer in time"}
        assert left.wait(AT_MOST_S), "the thread is still held"


@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_pod_that_trickles_its_page_is_hung_up_on_when_the_time_is_over(beginning: bytes) -> None:
    left = threading.Event()

    async def run(url: str) -> dict[str, str]:
        found = await scrape([Page("slow", f"{url}/metrics")], WORDS, now=7.0, deadline_s=DEADLINE_S)
        return dict(found.errors)

    with trickling(beginning, left) as url:
        (why,) = asyncio.run(run(url)).values()
        assert left.wait(AT_MOST_S), "the connection is still held"
    assert why == f"no answer within {DEADLINE_S:g} s" or "HTTP 500" in why


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_larger_than_memory_has_room_for_is_not_taken_in(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.prometheus.client.LARGEST_ANSWER", 100)

    async def run(url: str) -> dict[str, str]:
        client = Prometheus(url, deadline_s=600.0)
        try:
            return dict((await client.ask({"a": "x", "b": "y"}, lambda _, rows: list(rows))).errors)
        finally:
            client.close()

    with server(lambda query: (status, b" " * 101) if query == "x" else body([])) as url:
        assert asyncio.run(run(url)) == {"a": "the answer is larger than 100 bytes"}
