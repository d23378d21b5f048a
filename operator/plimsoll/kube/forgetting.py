"""Reads and writes what was learned from outside the cluster, for a person who edits it. The operator notices within a minute."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from kubernetes.client import ApiClient

from plimsoll import names
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, ClusterUnreadable, call, client_of
from plimsoll.kube.kinds import OURS
from plimsoll.kube.reader import Lister


@dataclass(frozen=True, slots=True)
class LearnedObject:
    """The ConfigMap of what was learned, as it is in the cluster."""

    client: ApiClient
    body: dict[str, Any]

    @property
    def text(self) -> str:
        return str((self.body.get("data") or {}).get(names.LEARNED_KEY) or "")

    def replace(self, text: str) -> None:
        """Writes the text, unless somebody has written the object since it was read."""
        metadata = self.body["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{metadata['name']}"
        body = {**self.body, "data": {**(self.body.get("data") or {}), names.LEARNED_KEY: text}}
        status, reason, _ = call(self.client, "PUT", path, body, media="application/json")
        if status == 409:
            raise ClusterUnreadable(f"{path} was changed meanwhile; try again")
        if not 200 <= status < 300:
            needed = "; update must be allowed" if status == HTTPStatus.FORBIDDEN else ""
            raise ClusterUnreadable(f"{path}: {status} {reason}{needed}")


def learned_object(context: str | None, namespace: str | None = None) -> LearnedObject | None:
    """The ConfigMap of what was learned; None where nothing was yet. Anybody may make a ConfigMap of that name in their own namespace, so
    where there are several `namespace` has to say where the operator is."""
    client = client_of(context)
    lister = Lister(client, TIMEOUT_SECONDS)
    listed = lister.needed("/api/v1/configmaps", selector=OURS)
    there = {
        str(item["metadata"].get("namespace")): item
        for item in listed
        if (item.get("metadata") or {}).get("name") == names.LEARNED
    }
    if namespace is None and len(there) > 1:
        raise ClusterUnreadable(
            f"ConfigMap {names.LEARNED} is in namespaces {', '.join(sorted(there))}; say with --namespace which is the operator's"
        )
    found = next(iter(there.values()), None) if namespace is None else there.get(namespace)
    if found is None:
        return None
    whole: dict[str, Any] = json.loads(json.dumps(found))
    return LearnedObject(client, {**whole, "apiVersion": "v1", "kind": "ConfigMap"})
