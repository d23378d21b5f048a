"""Writes the status of deployments by server-side apply, under a field manager of its own, and only when it says something new.

It remembers what was written last, since the resource as it was last seen may be older than that.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from typing import Any, Final

from plimsoll import names
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import OWNER
from plimsoll.objects import Owner, canonical

NOTHING: Final[Mapping[str, Any]] = {}
UNANSWERED: Final = "", sys.maxsize
"""A write whose answer is not known: no status is taken for what stands there, whatever was seen."""


class StatusWriter:
    def __init__(self, door: Door) -> None:
        self._door = door
        self._written: dict[str, tuple[str, int]] = {}
        """By uid the digest of what was written last, and the resourceVersion that it got."""

    async def write(self, owner: Owner, wanted: Mapping[str, Any], seen: Object) -> int:
        """Writes the status, unless `seen` (the resource as it was last seen) has it already, or we wrote it since. Returns the version that
        the resource got by that, 0 where nothing was written. Raises what the door raises; for a resource that is gone that is NotFound or
        Conflict."""
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


def _digest(status: Mapping[str, Any]) -> str:
    """A digest is kept in place of the status, which has some thousand characters, as there are thousands of deployments."""
    return hashlib.sha256(canonical(status).encode()).hexdigest()
