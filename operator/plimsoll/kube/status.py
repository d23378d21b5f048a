"""Writes the status of deployments by server-side apply, under a field manager of its own, and only when it says something new.

It remembers what was written last, since the resource as it was last seen may be older than that; and which fields an older CRD lacks, as
the API server refuses the whole of a status that has any of those.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final

from plimsoll import names
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Field, Invalid, undeclared
from plimsoll.kube.kinds import OWNER
from plimsoll.objects import Owner, canonical

LOG: Final = logging.getLogger(__name__)
LACKING_SECONDS: Final = 3600.0
"""How long a field is left out before it is tried again, as the CRD may have been brought meanwhile."""
NOTHING: Final[Mapping[str, Any]] = {}
UNANSWERED: Final = "", sys.maxsize
"""A write whose answer is not known: no status is taken for what stands there, whatever was seen."""


class StatusWriter:
    def __init__(self, door: Door, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._door = door
        self._clock = clock
        self._lacking: dict[Field, float] = {}
        """Fields that the cluster's CRD lacks, with when each is tried again."""
        self._written: dict[str, tuple[str, int]] = {}
        """By uid the digest of what was written last, and the resourceVersion that it got."""

    async def write(self, owner: Owner, wanted: Mapping[str, Any], seen: Object) -> int:
        """Writes the status, unless `seen` (the resource as it was last seen) has it already, or we wrote it since. Returns the version that
        the resource got by that, 0 where nothing was written. Raises what the door raises; for a resource that is gone that is NotFound or
        Conflict."""
        while True:
            declared = self._declared(wanted)
            try:
                return await self._write(owner, declared, seen)
            except Invalid as error:
                self._note(undeclared(error))
                if self._declared(wanted) == declared:
                    raise

    def _note(self, lacking: Set[Field]) -> None:
        more = lacking - self._lacking.keys()
        self._lacking |= dict.fromkeys(more, self._clock() + LACKING_SECONDS)
        if more:
            LOG.warning(
                "the cluster's CRD lacks %s, which is left out for an hour; `plimsoll crd` prints the CRD of this release",
                ", ".join(sorted(map(".".join, more))),
            )

    def _declared(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """The status without fields that the CRD lacks."""
        now = self._clock()
        self._lacking = {field: until for field, until in self._lacking.items() if until > now}
        for _, *field in self._lacking:
            wanted = _without(wanted, field)
        return wanted

    async def _write(self, owner: Owner, wanted: Mapping[str, Any], seen: Object) -> int:
        text = _digest(wanted)
        written, version = self._written.get(owner.uid, ("", 0))
        # If what was seen is newer than our own last write, somebody may have changed that.
        known = int(seen["metadata"]["resourceVersion"]) <= version
        if text == (written if known else _digest(seen.get("status") or NOTHING)):
            return 0
        body = {
            "apiVersion": OWNER.api_version,
            "kind": OWNER.name,
            "metadata": {"name": owner.name, "namespace": owner.namespace, "uid": owner.uid},
            "status": wanted,
        }
        path = f"{OWNER.path(owner.namespace, owner.name)}/status"
        self._written[owner.uid] = UNANSWERED
        answer = await self._door.apply(path, body, manager=names.MANAGER_STATUS)
        version = int(answer["metadata"]["resourceVersion"])
        self._written[owner.uid] = text, version
        return version

    def restored(self, uid: str) -> None:
        """Versions have gone back, as after the server's data were restored: nobody knows which status stands there."""
        self._written[uid] = UNANSWERED

    def forget(self, uid: str) -> None:
        """The resource is gone."""
        self._written.pop(uid, None)


def _without(value: Any, field: Sequence[str]) -> Any:
    """The value without a field, which in a list is that of each item."""
    if isinstance(value, list):
        return [_without(item, field) for item in value]
    first, *rest = field
    if not isinstance(value, Mapping) or first not in value:
        return value
    if not rest:
        return {name: item for name, item in value.items() if name != first}
    return {**value, first: _without(value[first], rest)}


def _digest(status: Mapping[str, Any]) -> str:
    """A digest is kept in place of the status, which has some thousand characters, as there are thousands of deployments."""
    return hashlib.sha256(canonical(status).encode()).hexdigest()
