"""Reads, from outside the cluster, what the operator keeps in the ConfigMaps of deployments' plans."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll import names
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, client_of
from plimsoll.kube.kinds import CONFIG_MAP, OURS
from plimsoll.kube.reader import Lister


def read_kept(
    context: str | None, namespace: str | None, name: str, *, timeout_seconds: int = TIMEOUT_SECONDS
) -> dict[str, Mapping[str, str]]:
    """The data of the plans' ConfigMaps, by namespace/name, of all deployments of that name."""
    lister = Lister(client_of(context), timeout_seconds)
    selector = f"{OURS},{names.LABEL_DEPLOYMENT}={name}"
    listed = lister.needed(CONFIG_MAP.collection(namespace), namespace, selector)
    found = {}
    for one in listed:
        metadata = one["metadata"]
        # Not every server honours selectors.
        owner = (metadata.get("labels") or {}).get(names.LABEL_DEPLOYMENT)
        if owner == name and names.PLAN_KEY in (one.get("data") or {}):
            found[f"{metadata['namespace']}/{name}"] = one["data"]
    return dict(sorted(found.items()))
