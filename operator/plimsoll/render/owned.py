"""What marks an object as a deployment's: owner reference, labels, and the digest by which a change is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll import names
from plimsoll.objects import Manifest, Owner, manifest
from plimsoll.render.templating import made


def owned(
    template: str,
    owner: Owner,
    /,
    *,
    kind: str,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    images: tuple[str, ...] = (),
    **values: object,
) -> Manifest:
    """An object of the deployment's made from its template, with a digest of all the rest of it as an annotation."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": owner.namespace,
        "labels": {**(labels or {}), **labels_of(owner)},
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    if owner.uid:
        metadata["ownerReferences"] = [_reference(owner)]
    filled = made(template, kind=kind, metadata=metadata, images=images, **values)
    stamped = {**(annotations or {}), names.ANNOTATION_HASH: filled.digest}
    return manifest({**filled.body, "metadata": {**metadata, "annotations": stamped}})


def labels_of(owner: Owner) -> dict[str, str]:
    """Labels of every object and pod of the deployment, which win over the user's own."""
    return {
        names.LABEL_NAME: "vllm",
        names.LABEL_INSTANCE: owner.name,
        names.LABEL_COMPONENT: names.SERVING,
        names.LABEL_MANAGED_BY: names.MANAGED_BY,
        names.LABEL_DEPLOYMENT: owner.name,
    }


def leaders_of(deployment: str) -> dict[str, str]:
    """Selects the pods of all sets that answer requests."""
    return {names.LABEL_DEPLOYMENT: deployment, names.LABEL_LEADER: "true"}


def members_of(deployment: str) -> dict[str, str]:
    """Selects all serving pods, also those of a group that do not answer requests."""
    return {names.LABEL_DEPLOYMENT: deployment, names.LABEL_ROLE: names.SERVING}


def _reference(owner: Owner) -> dict[str, object]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
