"""Lists of a cluster's objects as plain dicts, read only, for one look from outside the cluster.

The kubeconfig's contexts and ways to sign in are the client library's work; its generated models are not used, since
facts are read from the objects as the API gives them. Watching belongs to the operator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from plimsoll import names
from plimsoll.facts.capabilities import Capabilities
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, ClusterUnreadable, call, client_of
from plimsoll.kube.kinds import CHILDREN

Objects = tuple[Mapping[str, Any], ...]

PAGE: Final = 500
DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
SEED: Final = f"metadata.name={names.LEARNED_SEED}"
"""Nobody but an admin makes it, so it need not bear our label."""
PROGRAM: Final = ["python", "-m", "plimsoll"]
"""How the chart starts the operator. Many an operator's pods bear the label of one; this program is ours alone."""
OURS: Final = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What Plimsoll itself keeps in a cluster's ConfigMaps."""

    plans: Mapping[str, Mapping[str, Any]]
    """Pinned plans by namespace/name."""
    beside: Mapping[str, Mapping[str, str]]
    """What else is in their ConfigMaps."""
    learned: str | None
    seed: str | None = None
    """What an admin handed in to be known beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything of a cluster that planning reads."""

    nodes: Objects
    pods: Objects
    slices: Objects
    claims: Objects
    deployments: Objects
    sets: Objects
    """Revisions of serving sets, by which pods are made whatever renders them today."""
    kept: Kept
    served: Capabilities
    """Optional kinds that it serves."""
    notes: tuple[str, ...]
    """Kinds that could not be listed, and what that means for the answer."""


def read_cluster(context: str | None = None, *, timeout_seconds: int = TIMEOUT_SECONDS) -> Cluster:
    """List what planning needs, through a context of the kubeconfig or the current one."""
    lister = Lister(client_of(context), timeout_seconds)
    nodes, pods = lister.needed("/api/v1/nodes"), lister.needed("/api/v1/pods")
    return Cluster(
        nodes=nodes,
        pods=pods,
        slices=lister.versions("resourceslices", "devices of DRA are not seen"),
        claims=lister.versions("resourceclaims", "what claims take of DRA devices is not seen"),
        deployments=lister.optional(
            f"/apis/{names.API_VERSION}/{names.PLURAL}",
            f"the cluster has no {names.KIND}s; apply the CRD to have them",
        ),
        sets=lister.optional("/apis/apps/v1/controllerrevisions", "serving sets are not seen", OURS),
        kept=_kept(
            (
                *lister.optional("/api/v1/configmaps", "pinned plans are not seen", OURS),
                *lister.optional("/api/v1/configmaps", "no seed is seen", fields=SEED),
            ),
            _homes(pods),
            lister.notes,
        ),
        served=lister.served(),
        notes=tuple(lister.notes),
    )


def _homes(pods: Objects) -> frozenset[str]:
    """Namespaces where an operator runs."""
    return frozenset(str(pod["metadata"].get("namespace")) for pod in pods if _is_operator(pod))


def _is_operator(pod: Mapping[str, Any]) -> bool:
    labels = (pod.get("metadata") or {}).get("labels") or {}
    containers = (pod.get("spec") or {}).get("containers") or ()
    return labels.get(names.LABEL_COMPONENT) == names.OPERATOR and any(
        one.get("command") == PROGRAM for one in containers
    )


def _own(name: str, config_maps: Objects, homes: frozenset[str], notes: list[str]) -> str | None:
    """What lies under this name beside the operator: anybody may make a ConfigMap of that name in a namespace of their own."""
    there = {
        str(item["metadata"].get("namespace")): (item.get("data") or {}).get(names.LEARNED_KEY)
        for item in config_maps
        if (item.get("metadata") or {}).get("name") == name
    }
    chosen = sorted(homes & there.keys()) or sorted(there)
    if not chosen:
        return None
    if len(there) > 1:
        why = (
            "an operator runs"
            if chosen[0] in homes
            else "no operator's pod is seen, and it is the first by name"
        )
        notes.append(
            f"ConfigMap {name} is in namespaces {', '.join(sorted(there))}; read in {chosen[0]}, where {why}"
        )
    return there[chosen[0]]


def _kept(config_maps: Objects, homes: frozenset[str], notes: list[str]) -> Kept:
    plans: dict[str, Mapping[str, Any]] = {}
    beside: dict[str, Mapping[str, str]] = {}
    for item in config_maps:
        metadata, data = item.get("metadata") or {}, item.get("data") or {}
        owner = (metadata.get("labels") or {}).get(names.LABEL_DEPLOYMENT)
        if owner and names.PLAN_KEY in data:
            key = f"{metadata.get('namespace')}/{owner}"
            plans[key] = json.loads(data[names.PLAN_KEY])
            others = {name: text for name, text in data.items() if name != names.PLAN_KEY}
            if others:
                beside[key] = others
    return Kept(
        plans=plans,
        beside=beside,
        learned=_own(names.LEARNED, config_maps, homes, notes),
        seed=_own(names.LEARNED_SEED, config_maps, homes, notes),
    )


class Lister:
    """Whole lists, page by page; what may be missing is noted."""

    def __init__(self, client: ApiClient, timeout_seconds: int) -> None:
        self._client = client
        self._timeout = timeout_seconds
        self.notes: list[str] = []

    def needed(self, path: str) -> Objects:
        try:
            return self._pages(path)
        except ApiException as error:
            raise ClusterUnreadable(
                f"the cluster answered {error.status} {error.reason} for {path}; list must be allowed"
            ) from None

    def optional(
        self, path: str, otherwise: str, selector: str | None = None, fields: str | None = None
    ) -> Objects:
        """What a cluster may lack or forbid; then it is empty and said."""
        try:
            return self._pages(path, selector, fields)
        except ApiException as error:
            self.notes.append(f"{path}: {error.status} {error.reason}; {otherwise}")
        return ()

    def served(self) -> Capabilities:
        """The optional kinds that objects of ours may be of, in the versions that they are written in."""
        found = set()
        for version in sorted({kind.api_version for kind in CHILDREN if kind.optional}):
            try:
                resources = self._get(f"/apis/{version}", []).get("resources") or ()
            except ApiException:
                continue
            there = {one.get("kind") for one in resources}
            found |= {
                (kind.group, kind.name)
                for kind in CHILDREN
                if kind.api_version == version and kind.name in there
            }
        return frozenset(found)

    def versions(self, plural: str, otherwise: str) -> Objects:
        """A kind of DRA in the newest version that the cluster serves; older clusters serve none, which is no news."""
        for version in DRA_VERSIONS:
            try:
                return self._pages(f"/apis/resource.k8s.io/{version}/{plural}")
            except ApiException as error:
                if error.status != 404:
                    self.notes.append(f"{plural}: {error.status} {error.reason}; {otherwise}")
                    return ()
        return ()

    def _pages(self, path: str, selector: str | None = None, fields: str | None = None) -> Objects:
        found: list[Mapping[str, Any]] = []
        query: list[tuple[str, object]] = [("limit", PAGE)]
        if selector is not None:
            query.append(("labelSelector", selector))
        if fields is not None:
            query.append(("fieldSelector", fields))
        more = ""
        while True:
            page = self._get(path, [*query, ("continue", more)] if more else query)
            # Lists name the kind once; the objects get it back, as `kubectl get -o yaml` shows them.
            about = {
                "apiVersion": page.get("apiVersion"),
                "kind": str(page.get("kind", "")).removesuffix("List"),
            }
            found += [about | item for item in page.get("items") or ()]
            more = (page.get("metadata") or {}).get("continue") or ""
            if not more:
                return tuple(found)

    def _get(self, path: str, query: list[tuple[str, object]]) -> dict[str, Any]:
        status, reason, text = call(self._client, "GET", path, query=query, timeout_seconds=self._timeout)
        if not 200 <= status < 300:
            raise ApiException(status=status, reason=reason)
        page: dict[str, Any] = json.loads(text)
        return page
