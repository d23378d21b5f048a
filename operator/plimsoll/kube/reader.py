"""Lists a cluster's objects as plain dicts, for commands that read it once from outside.

The client library handles the kubeconfig's contexts and ways to sign in. Its generated models are not used, since facts are read from the
objects as the API gives them.
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
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, ClusterUnreadable, call, client_of, cure_of
from plimsoll.kube.kinds import CHILDREN, CLAIM, OURS, SLICE, Kind

Objects = tuple[Mapping[str, Any], ...]

PAGE_ITEMS: Final = 500
SEED: Final = f"metadata.name={names.LEARNED_SEED}"
"""Field selector of the admin's ConfigMap, which need not have our label."""
PROGRAM: Final = ["python", "-m", "plimsoll"]
"""How the chart starts the operator. Other operators' pods may have the same label, but not this command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptData:
    """What Plimsoll itself keeps in a cluster's ConfigMaps."""

    plans: Mapping[str, Mapping[str, Any]]
    """Pinned plans by namespace/name."""
    beside: Mapping[str, Mapping[str, str]]
    """The other data of the plans' ConfigMaps, by namespace/name."""
    learned: str | None
    seed: str | None = None
    """What an admin handed in as learned elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything of a cluster that planning reads."""

    nodes: Objects
    pods: Objects
    slices: Objects
    claims: Objects
    deployments: Objects
    sets: Objects
    """Revisions of serving sets. Pods are made by them, whatever would be rendered today."""
    kept: KeptData
    served: Capabilities
    """Optional kinds that the cluster serves."""
    notes: tuple[str, ...]
    """Kinds that could not be listed, and what that means for the answer."""


def read_cluster(context: str | None = None, *, timeout_seconds: int = TIMEOUT_SECONDS) -> Cluster:
    """Lists what planning needs, through a context of the kubeconfig or the current one."""
    lister = Lister(client_of(context), timeout_seconds)
    nodes, pods = lister.needed("/api/v1/nodes"), lister.needed("/api/v1/pods")
    return Cluster(
        nodes=nodes,
        pods=pods,
        slices=lister.if_served(SLICE, "devices of DRA are not seen"),
        claims=lister.if_served(CLAIM, "what claims take of DRA devices is not seen"),
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


def _operators(name: str, config_maps: Objects, homes: frozenset[str], notes: list[str]) -> str | None:
    """What was learned in the ConfigMap of this name in the operator's namespace. Anybody may make one in a namespace of their own."""
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


def _kept(config_maps: Objects, homes: frozenset[str], notes: list[str]) -> KeptData:
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
    return KeptData(
        plans=plans,
        beside=beside,
        learned=_operators(names.LEARNED, config_maps, homes, notes),
        seed=_operators(names.LEARNED_SEED, config_maps, homes, notes),
    )


class Lister:
    """Reads whole lists, page by page. `notes` says which optional lists could not be read."""

    def __init__(self, client: ApiClient, timeout_seconds: int) -> None:
        self._client = client
        self._timeout = timeout_seconds
        self.notes: list[str] = []

    def needed(self, path: str, namespace: str | None = "", selector: str | None = None) -> Objects:
        """A list without which nothing can be said. `namespace` is the one that was asked for, where a user can choose."""
        try:
            return self._pages(path, selector)
        except ApiException as error:
            raise ClusterUnreadable(
                f"the cluster answered {error.status} {error.reason} for {path}{cure_of(error.status, namespace)}"
            ) from None

    def optional(
        self, path: str, otherwise: str = "", selector: str | None = None, fields: str | None = None
    ) -> Objects:
        """A list that a cluster may lack or forbid; then it is empty, and a note says so and what follows (`otherwise`)."""
        try:
            return self._pages(path, selector, fields)
        except ApiException as error:
            follows = f"; {otherwise}" if otherwise else ""
            self.notes.append(f"{path}: {error.status} {error.reason}{follows}")
        return ()

    def served(self) -> Capabilities:
        """The optional kinds of children that the cluster serves, in the versions in which they are written."""
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

    def if_served(self, kind: Kind, otherwise: str) -> Objects:
        """A kind that not every cluster serves; that one does not is not noted."""
        try:
            return self._pages(kind.collection())
        except ApiException as error:
            if error.status != 404:
                self.notes.append(f"{kind.plural}: {error.status} {error.reason}; {otherwise}")
        return ()

    def _pages(self, path: str, selector: str | None = None, fields: str | None = None) -> Objects:
        found: list[Mapping[str, Any]] = []
        query: list[tuple[str, object]] = [("limit", PAGE_ITEMS)]
        if selector is not None:
            query.append(("labelSelector", selector))
        if fields is not None:
            query.append(("fieldSelector", fields))
        more = ""
        while True:
            page = self._get(path, [*query, ("continue", more)] if more else query)
            # A list names the kind once for all; it is put into each object, as `kubectl get -o yaml` shows them.
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
        if status == 401:
            # Whoever is not known can read nothing else either, so that no list is merely lacking.
            raise ClusterUnreadable(
                f"{path}: 401 {reason}; the cluster does not take your credentials: sign in anew"
            )
        if not 200 <= status < 300:
            raise ApiException(status=status, reason=reason)
        try:
            page = json.loads(text)
        except ValueError:
            page = None
        if not isinstance(page, dict):
            raise ClusterUnreadable(
                f"{path}: what answers there is no API server ({status}, and no JSON): look at the kubeconfig's server, at proxies, and "
                "whether a page wants you to sign in"
            )
        return page
