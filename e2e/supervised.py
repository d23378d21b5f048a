"""The supervisor around the real engine as a plain process: started as a container starts it, asked, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cluster.engine import ENVIRONMENT
from cluster.processes import free_port

SERVE: Final = ("-m", "vllm.entrypoints.cli.main", "serve")
PATIENCE_SECONDS: Final = 900.0
"""Of a busy machine; an idle one takes half a minute to serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one start is told, beyond what all are."""

    words: Sequence[str] = ()
    own: Sequence[str] = ()
    """Of the supervisor."""
    environment: Mapping[str, str] = field(default_factory=dict)
    kv_gib: int = 1
    load: str = "dummy"
    within: Sequence[str | Path] = ()
    """A program that becomes the supervisor when it has made its surroundings."""
    program: Sequence[str | Path] = ()
    """Instead of the engine's Python."""


class Supervised:
    def __init__(self, python: Path, packed: Path, folder: Path) -> None:
        """`packed` is the supervisor, `folder` is for what this one writes."""
        self._python, self._packed, self._folder = python, packed, folder
        self.message = folder / "termination-log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, model: str | Path, told: Told) -> None:
        engine, side = free_port(), free_port()
        self.port = engine
        self.url, self._side = f"http://127.0.0.1:{engine}", f"http://127.0.0.1:{side}"
        program = told.program or (self._python, *SERVE)
        words = [model, f"--load-format={told.load}", "--enforce-eager", "--served-model-name=dense"]
        words += ["--max-model-len=4096", "--host=127.0.0.1", f"--port={engine}", *told.words]
        own = [f"--port={side}", f"--termination-log={self.message}", *told.own]
        argv = [*told.within, sys.executable, "-I", "-S", self._packed, "serve", *own, "--", *program, *words]
        fixed = {"PATH": os.defpath, "HOME": str(self._folder), "VLLM_CPU_KVCACHE_SPACE": str(told.kv_gib)}
        with (self._folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**ENVIRONMENT, **fixed, **told.environment},
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def facts(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._side}/facts", timeout=10) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    def serving(self) -> dict[str, Any]:
        return self._until(lambda facts: facts.get("state") == "serving", "serve")

    def answering(self) -> dict[str, Any]:
        """When a request runs."""
        return self._until(lambda facts: bool((facts.get("requests") or {}).get("running")), "answer")

    def _until(self, reached: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            facts = self._told()
            if reached(facts):
                return facts
            time.sleep(0.1)
        raise AssertionError(f"does not {what}: {self.said()}")

    def never_serving(self) -> None:
        """Returns when it has ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            if time.monotonic() > deadline or self._told().get("state") == "serving":
                raise AssertionError(f"does not end: {self.said()}")
            time.sleep(0.5)

    def _told(self) -> dict[str, Any]:
        """The facts, where it tells them yet."""
        try:
            return self.facts()
        except OSError:
            return {}

    def failure(self) -> dict[str, Any]:
        """After the end."""
        self.process.wait(PATIENCE_SECONDS)
        told: dict[str, Any] = json.loads(self.message.read_text())
        return told

    def said(self) -> str:
        return (self._folder / "output").read_text(errors="replace")

    def family(self) -> dict[int, str]:
        """The processes below it, with what each calls itself."""
        return descendants(self.process.pid)

    def one(self, name: str) -> int:
        """The process of its family that calls itself so."""
        return next(pid for pid, called in self.family().items() if name in called)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGTERM)  # no answer is waited for
            self._process.wait(PATIENCE_SECONDS)


def descendants(parent: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for thread in _listed(Path(f"/proc/{parent}/task")):
        for pid in map(int, _read(thread / "children").split()):
            found[pid] = _read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")
            found |= descendants(pid)
    return found


# A thread or a process may end while it is looked at; of one that answered a moment ago that is likely.


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
