"""What the operator keeps beside the pinned plans of deployments, for whoever asks from outside: read only."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll import names
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, ClusterUnreadable, client_of
from plimsoll.kube.kinds import CONFIG_MAP
from plimsoll.kube.reader import OURS, Lister


def read_kept(
    context: str | None, namespace: str | None, name: str, *, timeout_seconds: int = TIMEOUT_SECONDS
) -> dict[str, Mapping[str, str]]:
    """Data of the plan's ConfigMap by namespace/name, of the deployments of that name."""
    lister = Lister(client_of(context), timeout_seconds)
    selector = f"{OURS},{names.LABEL_DEPLOYMENT}={name}"
    listed = lister.optional(CONFIG_MAP.collection(namespace), "what is kept cannot be read", selector)
    if lister.notes:
        raise ClusterUnreadable("; ".join(lister.notes))
    found = {}
    for one in listed:
        metadata = one["metadata"]
        # The list of a server that ignores selectors holds others too.
        owner = (metadata.get("labels") or {}).get(names.LABEL_DEPLOYMENT)
        if owner == name and names.PLAN_KEY in (one.get("data") or {}):
            found[f"{metadata['namespace']}/{name}"] = one["data"]
    return dict(sorted(found.items()))
