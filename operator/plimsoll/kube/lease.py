"""Decides which of several operator pods leads, by a coordination Lease that is taken and renewed with optimistic locking.

The holder stops leading 10 s after it began its last successful renewal. Another pod takes over only once it has itself seen the Lease
unchanged for 15 s. Each counts with its own clock, from what it did or saw, so clocks may differ by any amount as long as they run equally
fast. A process that was suspended finds on waking that it does not lead any more before it writes, since `held` is computed when it is asked
for and not by a timer.
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
"""How long the holder holds the Lease after a renewal."""
RETRY_SECONDS: Final = 2.0
LEASE_CALL_SECONDS: Final = 5.0
"""Timeout of calls about the Lease: one that hangs must leave time for another."""


@dataclass(frozen=True, slots=True)
class _LeaseSeen:
    holder: str
    acquired: str
    renewed: str
    transitions: int
    seconds: float
    version: str
    watches: str


class Lease:
    """The Lease, and a process that wants to hold it. `identity` is a name that no other process has ever had; `watches` says what it watches,
    as it waits in vain for another that watches something else.

    It needs a door of its own, so that no other call of the operator's delays a renewal.
    """

    def __init__(
        self,
        door: Door,
        namespace: str,
        identity: str,
        *,
        watches: str = "",
        name: str = names.LEASE,
        pace: Pace | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.identity = identity
        self.holder = ""
        """Who holds it, as far as was seen."""
        self._watches = watches
        self._door = door
        self._namespace = namespace
        self._name = name
        self._path = LEASE.path(namespace, name)
        self._pace = pace or Pace()
        self._wall = wall
        self._until = float("-inf")
        self._seen: _LeaseSeen | None = None
        self._unchanged_since = 0.0
        self._written = False
        """Whether a write of ours may have taken it."""
        self.tried_at = self._pace.now()
        """When it was last tried to take or renew it, for the liveness probe."""

    @property
    def held(self) -> bool:
        """Whether this process holds it at this moment."""
        return self._pace.now() < self._until

    async def acquire(self) -> None:
        """Returns once it is held. When cancelled before, it is given back in case it was taken."""
        try:
            # An answer may come so late that it is not held any more.
            while not (await self._attempt() and self.held):
                await self._pace.sleep(RETRY_SECONDS * (1 + 0.2 * self._pace.chance()))
        except asyncio.CancelledError:
            await self.release()
            raise

    async def keep(self) -> None:
        """Renews it until it is lost, and then returns, upon which the process has to end."""
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
        """Gives it back when the process ends, so that another one need not wait. Whether it is ours is looked up first, as a write may have
        gone through whose answer nobody waited for."""
        self._until = float("-inf")
        if not self._written:
            return
        try:
            async with asyncio.timeout(
                LEASE_CALL_SECONDS
            ):  # another process waits little longer than that anyway
                seen = self._take(await self._door.get(self._path))
                if seen.holder == self.identity:
                    body = self._body(seen, holder="", seconds=1)
                    await self._door.replace(self._path, body, manager=names.MANAGER_CHILDREN)
        except (KubeError, TimeoutError) as error:
            why = str(error) or "no answer came in time"
            LOG.warning("the Lease %s/%s was not released: %s", self._namespace, self._name, why)

    async def _attempt(self) -> bool:
        """Looks, and writes where the Lease is ours or free. Returns whether it is ours then."""
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
            # It is ours in the version that we wrote. Should that have changed, the write meets a conflict, after which it is read.
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
        """After somebody else has written or deleted it: reads who holds it now."""
        if isinstance(error, NotFound):
            self._seen = None
            return
        self._take(await self._door.get(self._path))

    def _take(self, item: Object) -> _LeaseSeen:
        spec = item.get("spec") or {}
        seen = _LeaseSeen(
            holder=spec.get("holderIdentity") or "",
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=int(spec.get("leaseTransitions") or 0),
            seconds=float(spec.get("leaseDurationSeconds") or DURATION_SECONDS),
            version=item["metadata"]["resourceVersion"],
            watches=(item["metadata"].get("annotations") or {}).get(names.ANNOTATION_WATCHES) or "",
        )
        if seen != self._seen:
            self._unchanged_since = self._pace.now()
        before, self._seen, self.holder = self.holder, seen, seen.holder
        if seen.holder not in ("", self.identity, before) and seen.watches not in ("", self._watches):
            LOG.warning(
                "the Lease %s/%s is held by %s, which watches %s: until that ends this one, which watches %s, does nothing; of two releases "
                "each needs a namespace of its own",
                *(self._namespace, self._name, seen.holder, seen.watches, self._watches),
            )
        return seen

    def _body(self, seen: _LeaseSeen | None, *, holder: str, seconds: int) -> Object:
        metadata: Object = {"name": self._name, "namespace": self._namespace}
        if self._watches:
            metadata["annotations"] = {names.ANNOTATION_WATCHES: self._watches}
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
