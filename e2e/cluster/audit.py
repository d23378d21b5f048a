"""The API server's own record of who asked what and how it was answered: what a test judges crashes and rights by."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cluster.faults.calls import Call, Where, read_call
from cluster.processes import ClusterFailed

ANY = Where()
FORBIDDEN = b'"authorization.k8s.io/decision":"forbid"'
"""In an entry. A quota answers with the same code as a want of rights, and so does a namespace that ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request."""

    call: Call
    user: str
    code: int
    at: str
    """When it came, to the microsecond."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The log of one cluster. The API server writes an entry before it answers, so what was answered is there."""

    file: Path

    def mark(self) -> int:
        """Now, for `since`."""
        return self._size()

    def entries(
        self, where: Where = ANY, *, user: str = "", codes: Collection[int] = (), since: int = 0
    ) -> list[Entry]:
        """In the order in which they were answered; a watch when it began. What is empty means any."""
        self._size()
        with self.file.open("rb") as log:
            log.seek(since)
            text = log.read()
        told: dict[str, dict[str, Any]] = {}
        for line in text[: text.rfind(b"\n") + 1].splitlines():
            event = json.loads(line)
            told.setdefault(
                event["auditID"], event
            )  # a watch is told of twice, when it begins and when it ends
        found = map(_entry, told.values())
        return [
            one
            for one in found
            if where.matches(one.call) and user in ("", one.user) and (not codes or one.code in codes)
        ]

    def writes(self, *, user: str = "", since: int = 0) -> list[Entry]:
        """Those that were done: asked for in earnest, and not refused."""
        return [one for one in self.entries(user=user, since=since) if one.call.is_write and one.code < 300]

    def forbidden(self, *, user: str, since: int = 0) -> list[Entry]:
        """What this user asked for without a right to it. Of a long log only these are taken apart."""
        self._size()
        with self.file.open("rb") as log:
            log.seek(since)
            found = [_entry(json.loads(line)) for line in log if FORBIDDEN in line and line.endswith(b"\n")]
        return [one for one in found if one.user == user]

    def _size(self) -> int:
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            raise ClusterFailed("there is no audit log; start the cluster with audit=True") from None


def _entry(event: dict[str, Any]) -> Entry:
    asked = read_call("GET", event["requestURI"])
    about = event.get("objectRef", {})
    # The verb is the server's own word, and so is the name where the request named none.
    call = replace(asked, verb=event["verb"], name=about.get("name", asked.name))
    return Entry(
        call=call,
        user=event["user"]["username"],
        code=event.get("responseStatus", {}).get("code", 0),
        at=event["requestReceivedTimestamp"],
    )
