"""Events that tell of decisions, for `kubectl describe`. Each is sent once and counted when it comes again. Nobody waits for one: it is tried
a few times where the server does not answer, and then rather lost.

An event's name follows from its content, so that an operator that has restarted does not send the same event twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll import names
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Conflict, KubeError, NotFound, NotLeading
from plimsoll.kube.kinds import EVENT
from plimsoll.kube.pace import Pace
from plimsoll.kube.times import micro_time
from plimsoll.objects import Owner

LOG: Final = logging.getLogger(__name__)
MOST: Final = 1000
"""How many events wait to be sent at most, and how many sent ones are remembered so that their repetitions are counted."""
SERIES_SECONDS: Final = 60.0
"""Between two writes of how often an event has come."""
TRIES: Final = 4
"""Of one event while the server does not answer, as beside engines that start; those behind it wait meanwhile, so that they come in order."""
NOTE_BYTES: Final = 1024
"""Bytes of a note that the API takes."""


@dataclass(frozen=True, slots=True)
class Event:
    """One decision about a deployment."""

    owner: Owner
    reason: str
    """A stable word."""
    note: str
    """A sentence."""
    action: str
    """What was done, or tried."""
    type: Literal["Normal", "Warning"] = "Normal"

    @property
    def name(self) -> str:
        said = f"{self.owner.uid}\n{self.type}\n{self.reason}\n{self.action}\n{self.note}"
        return f"{self.owner.name}.{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@dataclass(slots=True)
class _Told:
    count: int
    at: float


class Events:
    """A queue of events: `tell` puts one in, `run` sends them."""

    def __init__(
        self, door: Door, instance: str, *, pace: Pace | None = None, wall: Callable[[], float] = time.time
    ) -> None:
        self.dropped = 0
        """How many events were not sent, because too many waited or the API refused them."""
        self._door = door
        self._instance = instance
        self._pace = pace or Pace()
        self._wall = wall
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(MOST)
        self._told: OrderedDict[str, _Told] = OrderedDict()

    def tell(self, event: Event) -> None:
        """Puts an event in. It never waits and never fails."""
        try:
            self._waiting.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            event = await self._waiting.get()
            try:
                await self._tried(event)
            except KubeError as error:
                self.dropped += 1
                LOG.warning("event %s of %s was not told: %s", event.reason, event.owner.key, error)
            except Exception:
                # It must not end the task, as the next one may be sent.
                self.dropped += 1
                LOG.exception("event %s of %s was not told", event.reason, event.owner.key)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Waits until all that was put in has been sent."""
        await self._waiting.join()

    async def _tried(self, event: Event) -> None:
        for failures in range(1, TRIES):
            try:
                return await self._send(event)
            except KubeError as error:
                if not error.passes or isinstance(error, NotLeading):
                    raise
                await self._pace.sleep(self._pace.backoff(failures))
        return await self._send(event)

    async def _send(self, event: Event) -> None:
        told = self._told.get(event.name)
        if told is None:
            await self._first(event)
            return
        told.count += 1
        if self._pace.now() - told.at < SERIES_SECONDS:
            return
        told.at = self._pace.now()
        series = {"count": told.count, "lastObservedTime": micro_time(self._wall())}
        path = EVENT.path(event.owner.namespace, event.name)
        try:
            await self._door.patch(path, {"series": series}, manager=names.MANAGER_CHILDREN)
        except NotFound:
            # The cluster keeps events for an hour; after that the event is made again.
            await self._first(event)

    async def _first(self, event: Event) -> None:
        try:
            path = EVENT.collection(event.owner.namespace)
            await self._door.create(path, self._body(event), manager=names.MANAGER_CHILDREN)
        except Conflict:
            # It was sent before the operator restarted.
            pass
        self._told[event.name] = _Told(1, self._pace.now())
        self._told.move_to_end(event.name)
        if len(self._told) > MOST:
            self._told.popitem(last=False)

    def _body(self, event: Event) -> Object:
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"name": event.name, "namespace": event.owner.namespace},
            "eventTime": micro_time(self._wall()),
            "reportingController": f"{names.GROUP}/operator",
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "note": _cut(event.note),
            "type": event.type,
            "regarding": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "namespace": event.owner.namespace,
                "name": event.owner.name,
                "uid": event.owner.uid,
            },
        }


def _cut(note: str) -> str:
    text = note.encode()
    if len(text) <= NOTE_BYTES:
        return note
    return text[: NOTE_BYTES - len("…".encode())].decode(errors="ignore") + "…"
