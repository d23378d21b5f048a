"""Reads a cluster once, for `plimsoll doctor`, with the rights of the person who asks.

What that person may not list is left out and noted. Only a cluster that does not answer at all, or not to that person, is an error.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.examined import Examined
from plimsoll.kube import kinds
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, client_of
from plimsoll.kube.kinds import Kind
from plimsoll.kube.reader import Lister, Objects
from plimsoll.kube.serving import SERVING_PODS

_QUOTA: Final = Kind("v1", "ResourceQuota", "resourcequotas")
_CLAIM: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
_CLASS: Final = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
_EVENT: Final = Kind("v1", "Event", "events")
"""The older form of events, for its field selectors."""


def read_examined(
    context: str | None, namespace: str | None, now: float, *, timeout_seconds: int = TIMEOUT_SECONDS
) -> Examined:
    """Reads one namespace, or all; nodes and other kinds outside namespaces are read in any case."""
    look = _Look(Lister(client_of(context), timeout_seconds), namespace)
    parts: dict[str, Objects] = {
        "nodes": look.of("nodes", kinds.NODE),
        "slices": look.slices(),
        "crds": look.of("crds", kinds.CRD, fields=f"metadata.name={names.CRD_NAME}"),
        "leases": look.of("leases", kinds.LEASE, fields=f"metadata.name={names.LEASE}", everywhere=True),
        "deployments": look.of("deployments", kinds.OWNER),
        "workloads": look.of("workloads", kinds.DEPLOYMENT, kinds.OURS)
        + look.of("workloads", kinds.STATEFUL_SET, kinds.OURS),
        "pods": look.of("pods", kinds.POD, SERVING_PODS),
        "events": look.of("events", _EVENT, fields="type=Warning")
        + look.of("events", _EVENT, fields="reason=Killing"),
        "quotas": look.of("quotas", _QUOTA),
        "claims": look.of("claims", _CLAIM),
        "classes": look.of("classes", _CLASS),
        "autoscalers": look.of("autoscalers", kinds.AUTOSCALER)
        + look.of("scaled objects", kinds.SCALED_OBJECT),
    }
    if "crds" in look.unseen and "deployments" in look.unserved:
        # That they are no kind of this cluster is the CRD's check to say, which cannot be made.
        look.unseen["deployments"] = look.unserved["deployments"]
    return Examined(now=now, unseen=look.unseen, config=OperatorConfig(), **parts)


class _Look:
    def __init__(self, lister: Lister, namespace: str | None) -> None:
        self._lister = lister
        self._namespace = namespace
        self.unseen: dict[str, str] = {}
        self.unserved: dict[str, str] = {}

    def of(
        self,
        part: str,
        kind: Kind,
        selector: str | None = None,
        *,
        fields: str | None = None,
        everywhere: bool = False,
    ) -> Objects:
        space = self._namespace if kind.namespaced and not everywhere else None
        before = len(self._lister.notes)
        found = self._lister.optional(kind.collection(space), selector=selector, fields=fields)
        for note in self._lister.notes[before:]:
            # A kind that the cluster does not serve has no objects, so nothing is unseen.
            (self.unserved if ": 404 " in note else self.unseen)[part] = note
        # Not every server honours field selectors.
        return tuple(one for one in found if _fits(one, fields))

    def slices(self) -> Objects:
        before = len(self._lister.notes)
        found = self._lister.if_served(kinds.SLICE, "devices of DRA are not seen")
        if self._lister.notes[before:]:
            self.unseen["slices"] = self._lister.notes[-1]
        return found


def _fits(item: Any, fields: str | None) -> bool:
    if fields is None:
        return True
    path, _, value = fields.partition("=")
    for step in path.split("."):
        item = (item or {}).get(step)
    return bool(item == value)
