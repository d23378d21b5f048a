"""Which pods wait for a volume that is being made. Neither they nor their scheduler say so; their claims do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.facts.examined import Examined, Object
from plimsoll.status.doctor.found import in_scope, key_of, metadata, name_of

SELECTED: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim that waited for its first pod: the node that the scheduler has chosen for that pod, on which a volume is to be made."""


def volumes_being_made(examined: Examined) -> Mapping[str, str]:
    """By pod (namespace/name): a claim that it mounts, for which a volume is being made. Until that is there, for ten minutes at most, the
    scheduler keeps the pod without a word, so that it looks like one that no scheduler has seen."""
    making = {key_of(one) for one in examined.claims if _being_made(one)}
    return {
        key_of(pod): name
        for pod in in_scope(examined, examined.pods)
        for name in _mounted(pod)
        if f"{metadata(pod).get('namespace', '')}/{name}" in making
    }


def _being_made(claim: Object) -> bool:
    pending = (claim.get("status") or {}).get("phase") == "Pending"
    return pending and SELECTED in (metadata(claim).get("annotations") or {})


def _mounted(pod: Object) -> Iterator[str]:
    """Names of the claims of a pod's volumes; one that is the pod's own is named after both."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            yield str(volume["persistentVolumeClaim"].get("claimName"))
        elif volume.get("ephemeral"):
            yield f"{name_of(pod)}-{volume.get('name')}"
