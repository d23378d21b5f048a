"""A person's word on one deployment: an annotation written from outside the cluster, and what its status says of it.

Whoever may edit the deployment may write it. What the operator makes of it is the operator's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from plimsoll.kube.kinds import OWNER
from plimsoll.kube.reader import TIMEOUT_SECONDS, ClusterUnreadable, client_of


@dataclass(frozen=True, slots=True)
class Handed:
    """One deployment, by its name."""

    client: ApiClient
    namespace: str
    name: str

    def status(self) -> dict[str, Any]:
        """As it is now."""
        found: dict[str, Any] = self._call("GET", "get").get("status") or {}
        return found

    def annotate(self, name: str, value: str) -> None:
        self._call("PATCH", "patch", {"metadata": {"annotations": {name: value}}})

    def _call(self, method: str, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        path = OWNER.path(self.namespace, self.name)
        sent = {"Accept": "application/json"}
        if body is not None:
            sent["Content-Type"] = "application/merge-patch+json"
        request = self.client.param_serialize(
            method, path, header_params=sent, body=body, auth_settings=["BearerToken"]
        )
        try:
            answer = self.client.call_api(*request, _request_timeout=TIMEOUT_SECONDS)
            text = answer.read()  # type: ignore[no-untyped-call]
        except ApiException as error:
            raise ClusterUnreadable(f"{path}: {error.status} {error.reason}") from None
        except (HTTPError, OSError) as error:
            raise ClusterUnreadable(f"the cluster does not answer: {error}") from None
        if not 200 <= answer.status < 300:
            needed = f"; {verb} must be allowed" if answer.status in (401, 403) else ""
            raise ClusterUnreadable(f"{path}: {answer.status} {answer.reason}{needed}")
        found: dict[str, Any] = json.loads(text)
        return found


def handed(namespace: str, name: str, context: str | None) -> Handed:
    return Handed(client_of(context), namespace, name)
