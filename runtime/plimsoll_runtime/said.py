"""What is known of one engine at a moment, shared by the threads that learn it and the one that answers, and how it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from plimsoll_runtime import SCHEMA, VERSION
from plimsoll_runtime.address import without_secrets
from plimsoll_runtime.failure import Failure, Warned
from plimsoll_runtime.fetching import Progress
from plimsoll_runtime.gpus import Devices
from plimsoll_runtime.readings import Reading
from plimsoll_runtime.startup import Startup

PREFLIGHT, FETCHING, STARTING, SERVING, DRAINING, FAILED = (
    "preflight",
    "fetching",
    "starting",
    "serving",
    "draining",
    "failed",
)
ADAPTER_LOADED = "Loaded"
STATES = (PREFLIGHT, FETCHING, STARTING, SERVING, DRAINING, FAILED)


class Said:
    def __init__(self, argv: Sequence[str], now: float) -> None:
        self._lock = threading.Lock()
        self._argv = without_secrets(argv)
        self._engine = _name(argv)
        self._state = PREFLIGHT
        self._startup = Startup(now)
        self._failure: Failure | None = None
        self._reading: Reading | None = None
        self._devices: Devices | None = None
        self._warnings: tuple[Warned, ...] = ()
        self._progress: Progress | None = None
        self._fetched: dict[str, str] = {}
        self._fetch_began: float | None = None
        self._begun = False
        self._waits: str | None = None
        self._adapters: list[dict[str, object]] | None = None
        self.run = f"{time.time_ns():x}"
        """Of this start, so that members of a group can tell it from another."""

    @property
    def state(self) -> str:
        with self._lock:
            return self._state

    @property
    def phase(self) -> str:
        with self._lock:
            return self._startup.phase

    @property
    def begun(self) -> bool:
        """Whether there has been an engine, that others may wait for."""
        with self._lock:
            return self._begun

    @property
    def served(self) -> bool:
        with self._lock:
            return self._startup.ended is not None

    @property
    def failure(self) -> Failure | None:
        with self._lock:
            return self._failure

    @property
    def reading(self) -> Reading | None:
        with self._lock:
            return self._reading

    def enter(self, state: str) -> None:
        with self._lock:
            self._state = state

    def line(self, text: str, now: float) -> None:
        with self._lock:
            self._startup.take(text, now)

    def read(self, reading: Reading | None) -> None:
        with self._lock:
            self._reading = reading

    def sees(self, devices: Devices | None, warnings: Sequence[Warned] = ()) -> None:
        with self._lock:
            self._devices, self._warnings = devices, tuple(warnings)

    def waits(self, text: str | None) -> None:
        """For another pod or a server, in words; None when it waits no longer."""
        with self._lock:
            self._waits = text

    def fetches(self, progress: Progress | None) -> None:
        """A part of a start."""
        with self._lock:
            if self._state in (STARTING, FETCHING):
                self._progress = progress
                self._state = STARTING if progress is None else FETCHING

    def begins_to_fetch(self, now: float) -> None:
        """By the supervisor, before there is an engine."""
        with self._lock:
            self._state, self._fetch_began = FETCHING, now

    def brought(self, source: str, revision: str) -> None:
        with self._lock:
            self._fetched[source] = revision

    def begins(self, now: float) -> None:
        """An engine is started."""
        with self._lock:
            self._state, self._begun = STARTING, True
            self._startup = Startup(now, self._fetch_began)

    def serves(self, now: float) -> None:
        """Only out of a start: what is to end goes on to."""
        with self._lock:
            if self._state not in (STARTING, FETCHING):
                return
            self._progress = None
            self._startup.served(now)
            self._state = SERVING

    def keeps(self, adapters: list[dict[str, object]]) -> None:
        with self._lock:
            self._adapters = adapters

    @property
    def adapters(self) -> list[dict[str, object]] | None:
        """As they are told; None where nobody keeps any."""
        with self._lock:
            return self._adapters

    def fails(self, failure: Failure) -> None:
        with self._lock:
            self._failure = failure
            self._state = FAILED

    def facts(self, now: float) -> dict[str, object]:
        """The answer of GET /facts."""
        with self._lock:
            startup, reading = self._startup, self._reading
            measured = startup.figures().told()
            if reading is not None:
                measured["blocks"] = measured["blocks"] or reading.blocks
                measured["blockSize"] = reading.block_size
                measured["kvTokens"] = measured["kvTokens"] or reading.kv_tokens
            return {
                "schema": SCHEMA,
                "runtime": VERSION,
                "run": self.run,
                "state": self._state,
                "phase": self._phase_text(),
                "engine": {"name": self._engine, "version": startup.version},
                "phases": [phase._asdict() for phase in startup.phases(now)],
                "progress": None if self._progress is None else self._progress.told(),
                "fetched": [
                    {"source": source, "revision": self._fetched[source]} for source in self._fetched
                ],
                "measured": measured,
                "requests": None
                if reading is None
                else {"running": reading.running, "waiting": reading.waiting},
                "devices": None if self._devices is None else self._devices.told(),
                "warnings": [warning.told() for warning in self._warnings],
                "failure": None if self._failure is None else self._failure.told(),
                "adapters": self._adapters,
                "argv": self._argv,
            }

    def _phase_text(self) -> str:
        if self._waits is not None and self._state in (PREFLIGHT, FETCHING):
            return self._waits
        if self._state == FETCHING and self._progress is not None:
            return self._progress.text()
        if self._state == FETCHING:
            return "looking for the model"
        return self._startup.text() if self._state == STARTING else self._state


def _name(argv: Sequence[str]) -> str | None:
    """Of the engine, by the program's own name."""
    for word in argv[:3]:
        for name in ("vllm", "sglang", "trtllm", "ray"):
            if name in word.rpartition("/")[2].lower():
                return name
    return None
