"""What a process is said to have open after a cluster: what somebody still holds, and nothing else."""

import gc
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cluster.api import Api
from cluster.remains import open_files
from plimsoll.kube.certificates import made

RESET_AT_ONCE = struct.pack("ii", 1, 0)
TRIES = 300


@contextmanager
def starting() -> Iterator[int]:
    """The port of a server that resets so many connections before the handshake, as one may that has just begun to listen."""

    def reset(listening: socket.socket) -> None:
        for _ in range(TRIES):
            connection, _ = listening.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=reset, args=(listening,))
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_a_connection_that_was_reset_before_its_handshake_is_not_called_open(tmp_path: Path):
    authority = tmp_path / "ca.crt"
    authority.write_text(made(["127.0.0.1"], datetime(2027, 1, 15, tzinfo=UTC))[1])
    gc.disable()
    try:
        before = open_files()
        with starting() as port:
            api = Api(server=f"https://127.0.0.1:{port}", token="nobody", ca=authority)
            assert not any(api.is_ready() for _ in range(TRIES))
            api.close()
        assert open_files() - before == set()
    finally:
        gc.enable()


def test_what_somebody_holds_is_called_open():
    before = open_files()
    with socket.socket() as held:
        assert {f"{held.fileno()} "} == {one[: one.index(" ") + 1] for one in open_files() - before}
