"""Which of two operator pods acts: a coordination Lease, taken and renewed with optimistic locking.

The holder counts itself out 10 s after it began its last renewal that went through; another waits until it has itself seen the
Lease unchanged for 15 s. Both count with their own clock, from what they did or saw, so that clocks may differ by anything;
what they must agree on is how long a second is. A process that was stopped and goes on finds itself counted out before it
writes, since `held` is computed when it is asked and not when a timer fires.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Conflict, KubeError, NotFound
from plimsoll.kube.kinds import LEASE
from plimsoll.kube.pace import Pace
from plimsoll.kube.times import micro_time

LOG: Final = logging.getLogger(__name__)
DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 10.0
"""Without a renewal for so long, the holder holds it no longer."""
RETRY_SECONDS: Final = 2.0
CALL_SECONDS: Final = 5.0
"""Of the door that it has for itself: a call that hangs must leave time for another."""


@dataclass(frozen=True, slots=True)
class _Seen:
    holder: str
    acquired: str
    renewed: str
    transitions: int
    seconds: float
    version: str


class Lease:
    """One Lease and one who wants it, by a name that no other process has ever had.

    Give it a door of its own, so that no call of the operator's stands before a renewal.
    """

    def __init__(
        self,
        door: Door,
        namespace: str,
        identity: str,
        *,
        name: str = names.LEASE,
        pace: Pace | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.identity = identity
        self.holder = ""
        """Who has it, as far as was seen."""
        self._door = door
        self._namespace = namespace
        self._name = name
        self._path = LEASE.path(namespace, name)
        self._pace = pace or Pace()
        self._wall = wall
        self._until = float("-inf")
        self._seen: _Seen | None = None
        self._unchanged_since = 0.0
        self._written = False
        """Whether it may be ours, as far as is known here."""
        self.tried_at = self._pace.now()
        """For liveness: whether the loop that renews still turns."""

    @property
    def held(self) -> bool:
        """Whether this one may act at this moment."""
        return self._pace.now() < self._until

    async def acquire(self) -> None:
        """Returns once it is held; who is cancelled on the way gives up what it may have taken."""
        try:
            while not await self._attempt():
                await self._pace.sleep(RETRY_SECONDS * (1 + 0.2 * self._pace.chance()))
        except asyncio.CancelledError:
            await self.release()
            raise

    async def keep(self) -> None:
        """Renews until it is lost, and then returns: whoever awaits this ends the process."""
        while True:
            await self._pace.sleep(RETRY_SECONDS)
            try:
                async with asyncio.timeout(self._until - self._pace.now()):
                    renewed = await self._attempt()
            except TimeoutError:
                renewed = False
            if renewed:
                continue
            if not self.held or self.holder not in (self.identity, ""):
                self._until, self._written = float("-inf"), False
                LOG.error(
                    "the Lease %s/%s is lost; %s has it", self._namespace, self._name, self.holder or "nobody"
                )
                return

    async def release(self) -> None:
        """Given up on the way out, so that another need not wait. Whose it is is looked up: a write may have gone through whose
        answer nobody waited for."""
        self._until = float("-inf")
        if not self._written:
            return
        try:
            async with asyncio.timeout(CALL_SECONDS):  # nobody waits much longer for it anyway
                seen = self._take(await self._door.get(self._path))
                if seen.holder == self.identity:
                    body = self._body(seen, holder="", seconds=1)
                    await self._door.replace(self._path, body, manager=names.MANAGER_CHILDREN)
        except (KubeError, TimeoutError) as error:
            why = str(error) or "no answer came in time"
            LOG.warning("the Lease %s/%s was not released: %s", self._namespace, self._name, why)

    async def _attempt(self) -> bool:
        """One look, and one write where it is ours or free; whether it went through."""
        self.tried_at = began = self._pace.now()
        try:
            if not await self._look():
                return False
            written = await self._write()
        except Conflict:
            return False
        except KubeError as error:
            LOG.warning("the Lease %s/%s cannot be renewed: %s", self._namespace, self._name, error)
            return False
        self._take(written)
        self._until = began + RENEW_SECONDS
        return True

    async def _look(self) -> bool:
        """Whether it may be written: it is not there, it is ours, it was given up, or it has not changed for its duration."""
        if self.held:
            # Ours at the version that we wrote; if it no longer is, the write meets a conflict, and then we look.
            return True
        try:
            self._take(await self._door.get(self._path))
        except NotFound:
            self._seen = None
            return True
        seen = self._seen
        if seen is None or seen.holder in ("", self.identity):
            return True
        return self._pace.now() - self._unchanged_since > max(seen.seconds, DURATION_SECONDS)

    async def _write(self) -> Object:
        self._written = True
        if self._seen is None:
            path = LEASE.collection(self._namespace)
            body = self._body(None, holder=self.identity, seconds=DURATION_SECONDS)
            return await self._door.create(path, body, manager=names.MANAGER_CHILDREN, metadata=False)
        body = self._body(self._seen, holder=self.identity, seconds=DURATION_SECONDS)
        try:
            return await self._door.replace(self._path, body, manager=names.MANAGER_CHILDREN)
        except (Conflict, NotFound) as error:
            await self._after(error)
            raise

    async def _after(self, error: KubeError) -> None:
        """Someone wrote it meanwhile, or deleted it: who has it now."""
        if isinstance(error, NotFound):
            self._seen = None
            return
        self._take(await self._door.get(self._path))

    def _take(self, item: Object) -> _Seen:
        spec = item.get("spec") or {}
        seen = _Seen(
            holder=spec.get("holderIdentity") or "",
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=int(spec.get("leaseTransitions") or 0),
            seconds=float(spec.get("leaseDurationSeconds") or DURATION_SECONDS),
            version=item["metadata"]["resourceVersion"],
        )
        if seen != self._seen:
            self._unchanged_since = self._pace.now()
        self._seen, self.holder = seen, seen.holder
        return seen

    def _body(self, seen: _Seen | None, *, holder: str, seconds: int) -> Object:
        metadata: Object = {"name": self._name, "namespace": self._namespace}
        now = micro_time(self._wall())
        spec: Object = {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "renewTime": now,
            "leaseTransitions": 0,
            "acquireTime": now,
        }
        if seen is not None:
            metadata["resourceVersion"] = seen.version
            same = seen.holder == holder
            spec["leaseTransitions"] = seen.transitions + (not same)
            spec["acquireTime"] = seen.acquired or now if same else now
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": metadata,
            "spec": spec,
        }
