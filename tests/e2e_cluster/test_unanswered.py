"""What tests of a busy machine do where its API server does not answer: they ask again, and tell if it never does."""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cluster.api import Api, ApiError, Object, Unanswered
from cluster.metrics import MetricsServer
from common import PATIENCE_SECONDS, eventually
from turns.traffic import Traffic, stand_in

ANSWER = b'{"items": []}'


@contextmanager
def server(answers: Callable[[int], int]) -> Iterator[Api]:
    """Gives each request, by how many came before it, this status; 0 hangs up instead."""
    came = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if status := answers(next(came)):
                self.send_response(status)
                self.send_header("Content-Length", str(len(ANSWER)))
                self.end_headers()
                self.wfile.write(ANSWER)

        def log_message(self, *_: object) -> None:
            """Tests look at what came of it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield Api(server=f"http://127.0.0.1:{http.server_port}", token="nobody", ca=Path("none"))
        finally:
            http.shutdown()
            thread.join()


def test_a_poll_that_nobody_answers_is_made_again():
    with server(lambda before: 0 if before < 2 else 200) as api:
        assert eventually(lambda: api.items("/pods") == [])


def test_a_server_that_never_answers_is_told_as_that_rather_than_as_what_does_not_hold():
    with server(lambda _: 0) as api, pytest.raises(Unanswered):
        eventually(lambda: api.items("/pods") == [], patience=0.0)


def test_a_poll_that_is_refused_ends_at_once():
    with server(lambda before: 403 if before == 0 else 200) as api, pytest.raises(ApiError):
        eventually(lambda: api.items("/pods") == [])


def test_traffic_goes_on_where_a_list_of_its_pods_does_not_come():
    listed = threading.Event()

    def pods(api: Api) -> list[Object]:
        found = api.items("/pods")
        listed.set()
        return found

    with (
        server(lambda before: 0 if before < 2 else 200) as api,
        MetricsServer() as pages,
        Traffic(stand_in(pages), lambda: pods(api)),
    ):
        assert listed.wait(PATIENCE_SECONDS)
