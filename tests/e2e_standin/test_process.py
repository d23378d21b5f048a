"""A stand-in engine as a process: how it refuses, starts, is told to end, and fails."""

import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from common import eventually

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def engine(*options: str, words: tuple[str, ...] = ()) -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = free_port()
    told = ["serve", "tiny", f"--port={port}", "--host", "127.0.0.1", *words]
    argv = [sys.executable, "-m", "standin", *options, *told]
    with subprocess.Popen(argv, cwd=ROOT / "e2e", stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return json.loads(text) if text.startswith(b"{") else text.decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


def serves(url: str) -> bool:
    return bool(asked(f"{url}/health") == "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--nosuch-flag",), 2, "unrecognized arguments: --nosuch-flag"),
        (("--max-num-seqs", "0"), 1, "Input should be greater than or equal to 1"),
    ],
)
def test_flags_that_are_refused_end_it(words: tuple[str, ...], code: int, said: str):
    with engine(words=words) as (process, _):
        _, log = process.communicate(timeout=60)
    assert process.returncode == code
    assert said in log


def test_nobody_is_on_the_port_until_it_has_started_and_a_signal_ends_the_start():
    with engine("--start-seconds", "600") as (process, url):
        assert process.stderr is not None
        assert "vLLM API server version 0.33.0" in process.stderr.readline()
        assert asked(f"{url}/health") is None
        process.terminate()
        assert process.wait(60) != 0


def answers(url: str, found: list[Any]) -> threading.Thread:
    def ask() -> None:
        found.append(asked(f"{url}/v1/completions", {"prompt": [1], "max_tokens": 100}))

    thread = threading.Thread(target=ask)
    thread.start()
    assert eventually(
        lambda: 'num_requests_running{engine="0",model_name="tiny"} 1.0' in (asked(f"{url}/metrics") or "")
    )
    return thread


@pytest.mark.parametrize(("words", "finish"), [((), "abort"), (("--shutdown-timeout", "60"), "length")])
def test_told_to_end_it_aborts_or_drains(words: tuple[str, ...], finish: str):
    with engine(words=words) as (process, url):
        assert eventually(lambda: serves(url))
        found: list[Any] = []
        thread = answers(url, found)
        process.terminate()
        thread.join(60)
        assert process.wait(60) == 0
    assert found[0]["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize(("what", "code"), [("crash", 1), ("oom", -signal.SIGKILL)])
def test_it_dies_when_it_is_to(what: str, code: int):
    with engine() as (process, url):
        assert eventually(lambda: serves(url))
        with suppress(OSError):
            asked(f"{url}/standin/{what}", {})
        assert process.wait(60) == code


def test_faults_come_by_themselves_where_they_are_asked_for():
    with engine("--crash-after", "0.1") as (process, _):
        _, log = process.communicate(timeout=60)
        assert process.returncode == 1
    assert "EngineDeadError" in log
