"""Writes an annotation on a deployment from outside the cluster, and reads its status to see what the operator made of it.

Whoever may edit the deployment may do so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiClient

from plimsoll.kube.by_hand import ClusterUnreadable, Unanswered, call, client_of
from plimsoll.kube.kinds import OWNER


@dataclass(frozen=True, slots=True)
class Handed:
    """A deployment that something is handed in for, by its name."""

    client: ApiClient
    namespace: str
    name: str

    def status(self) -> dict[str, Any]:
        """The present status."""
        found: dict[str, Any] = self._call("GET", "get").get("status") or {}
        return found

    def annotate(self, name: str, value: str) -> None:
        self._call("PATCH", "patch", {"metadata": {"annotations": {name: value}}})

    def _call(self, method: str, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        path = OWNER.path(self.namespace, self.name)
        media = "" if body is None else "application/merge-patch+json"
        status, reason, text = call(self.client, method, path, body, media=media)
        if status == 429 or status >= 500:
            raise Unanswered(f"{path}: {status} {reason}")
        if not 200 <= status < 300:
            needed = f"; {verb} must be allowed" if status in (401, 403) else ""
            raise ClusterUnreadable(f"{path}: {status} {reason}{needed}")
        found: dict[str, Any] = json.loads(text)
        return found


def handed(namespace: str, name: str, context: str | None) -> Handed:
    return Handed(client_of(context), namespace, name)
