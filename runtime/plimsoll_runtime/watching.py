"""What a supervisor is told of, and the threads that tell it: how the engine fares, and how its group does."""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path
from typing import NamedTuple, Union

from plimsoll_runtime.address import Address
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.fetching import Fetching
from plimsoll_runtime.group import REPORT_SECONDS, Answer, Leader, Place, Report, ask_leader
from plimsoll_runtime.readings import SILENT, Reading, reading_of
from plimsoll_runtime.said import ADAPTER_LOADED as LOADED
from plimsoll_runtime.said import FETCHING, SERVING, STARTING, Said
from plimsoll_runtime.words import tell


class Signal(NamedTuple):
    number: int


class Told(NamedTuple):
    reading: Reading | None
    at: float


class ChildEnded(NamedTuple):
    """Some child has ended; `Child.bury` finds out which."""


class Over(NamedTuple):
    """The group is over for this member."""

    failure: Failure


class Stranded(NamedTuple):
    """An engine without a server has lost its workers, and stays."""

    line: str


Event = Union[Signal, Told, ChildEnded, Over, Stranded]


class Watch(threading.Thread):
    """Reads the engine's metrics: often until it serves and while it is to end, rarely between. And how its download goes."""

    def __init__(
        self,
        address: Address | None,
        model: Path | None,
        events: queue.SimpleQueue[Event],
        said: Said,
        *,
        hang: float,
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self._rare = min(15.0, hang / 4) if hang > 0 else 15.0
        self._fetching = None if model is None else Fetching(model)
        self._address, self._events, self._said = address, events, said
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - an engine that is not watched goes on serving
                tell(f"cannot see how the engine fares: {error!r}")
            self._wait()

    def _look(self) -> None:
        if self._address is not None:
            self._read(self._address)
        if self._fetching is not None and self._said.state in (STARTING, FETCHING):
            self._said.fetches(self._fetching.look(time.monotonic()))

    def _read(self, address: Address) -> None:
        answer = address.get("/metrics", timeout=10.0)
        reading = None
        if answer is not None:
            reading = reading_of(answer[1]) if answer[0] == 200 else SILENT
        self._said.read(reading)
        self._events.put(Told(reading, time.monotonic()))

    def _wait(self) -> None:
        """A state that changes ends a long pause."""
        began, state = time.monotonic(), self._said.state
        while time.monotonic() - began < self._pause() and self._said.state == state:
            if self._ended.wait(0.1):
                return

    def _pause(self) -> float:
        return self._rare if self._said.state == SERVING else 0.5


class Companion(threading.Thread):
    """Reports to the leader as long as this member lives, and says when the group is over."""

    def __init__(self, place: Place, run: str, events: queue.SimpleQueue[Event], said: Said) -> None:
        """`place` with the leader's address for its name."""
        super().__init__(name="companion", daemon=True)
        self._place, self._leads, self._events, self._said = place, run, events, said
        self._leader = Leader(time.monotonic(), run)
        self._ended = threading.Event()
        self.leader_there = True

    def end(self) -> None:
        self._ended.set()

    def report(self, failure: Failure | None = None, timeout: float = 5.0) -> Answer | None:
        return ask_leader(
            self._place, Report(self._place.rank, self._said.run, failure, self._leads, self._held()), timeout
        )

    def _held(self) -> tuple[str, ...] | None:
        kept = self._said.adapters
        return None if kept is None else tuple(str(one["id"]) for one in kept if one["state"] == LOADED)

    def run(self) -> None:
        while not self._ended.wait(REPORT_SECONDS):
            answer = self.report()
            self.leader_there = answer is not None
            if answer is not None and answer.serves:
                self._said.serves(time.monotonic())
            failure = self._leader.take(answer, time.monotonic())
            if failure is not None:
                self._events.put(Over(failure))
                return
