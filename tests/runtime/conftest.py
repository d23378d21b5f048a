"""A supervisor as containers run it: the packed file, by a Python of its own, with an engine that tests command."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build import build
from cluster.processes import free_port
from plimsoll_runtime.child import Child
from tests.runtime.hub_site import Cdn
from tests.runtime.registry_site import ModelScopeSite
from tests.runtime.small_model import shards

ENGINE = Path(__file__).parent / "engine.py"
PATIENCE = 90.0


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("runtime") / "plimsoll_runtime.pyz")


class Undying(Child):
    """An engine that the kernel is still taking down, as it does for seconds while GPU memory is given back."""

    def __init__(self) -> None:
        self.code, self.kills = None, 0

    def kill_all(self) -> None:
        self.kills += 1


class Started:
    """One supervisor with its engine."""

    def __init__(self, packed: Path, folder: Path) -> None:
        self._packed, self.folder = packed, folder
        self.message = folder / "termination-log"
        self.requests = folder / "requests"
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self, *argv: str, own: tuple[str, ...] = (), environment: dict[str, str] | None = None) -> None:
        words = [sys.executable, "-I", "-S", str(self._packed), "serve"]
        words += [
            f"--port-file={self.folder / 'port'}",
            "--port=0",
            f"--termination-log={self.message}",
            *own,
        ]
        self.output = (self.folder / "output").open("wb")
        self.process = subprocess.Popen(
            [*words, "--", *argv],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env={"PATH": os.defpath, **(environment or {})},
        )

    def engine(self, *words: str, own: tuple[str, ...] = ()) -> None:
        """With our small engine, on a port that it gets."""
        told = ["serve", "tiny", f"--port={free_port()}", f"--requests={self.requests}", *words]
        self.start(sys.executable, str(ENGINE), *told, own=own)

    def said(self) -> str:
        return (self.folder / "output").read_text()

    def ask(self, path: str) -> tuple[int, str]:
        deadline = time.monotonic() + PATIENCE
        while not (port := self._port()):
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.02)
        url = f"http://127.0.0.1:{port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def _port(self) -> str:
        """Empty until it is known."""
        try:
            return (self.folder / "port").read_text()
        except FileNotFoundError:
            return ""

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.ask("/facts")[1])
        return facts

    def until(self, state: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while (facts := self.facts())["state"] != state:
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.02)
        return facts

    def until_said(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.said():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.02)

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self) -> int:
        assert self.process is not None
        return self.process.wait(PATIENCE)

    def failure(self) -> dict[str, Any]:
        failure: dict[str, Any] = json.loads(self.message.read_text())
        return failure

    def close(self) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(5)
                except subprocess.TimeoutExpired:
                    self.process.kill()
            self.process.wait()
            self.output.close()


@pytest.fixture
def supervised(packed: Path, tmp_path: Path) -> Iterator[Started]:
    one = Started(packed, tmp_path)
    yield one
    one.close()


@pytest.fixture
def supervised_two(packed: Path, tmp_path: Path) -> Iterator[tuple[Started, Started]]:
    """A leader and a member; each with a folder of its own."""
    both = []
    for name in ("leader", "member"):
        (tmp_path / name).mkdir()
        both.append(Started(packed, tmp_path / name))
    yield both[0], both[1]
    for one in reversed(both):
        one.close()


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    one = Cdn()
    yield one
    one.close()
    gc.collect()


@pytest.fixture
def modelscope() -> Iterator[ModelScopeSite]:
    one = ModelScopeSite(shards())
    yield one
    one.close()
