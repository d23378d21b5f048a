"""Where a deployment is reached and what was planned for it, read once for whoever measures it.

Addresses are those inside the cluster: of its Service, by its name where it shows a certificate of that name, and of its pods for their
metrics. From outside the cluster another address has to be given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll import names
from plimsoll.kube import kinds
from plimsoll.kube.by_hand import TIMEOUT_SECONDS, client_of
from plimsoll.kube.kinds import Kind
from plimsoll.kube.reader import Lister, Objects
from plimsoll.kube.serving import SERVING_PODS

_SERVICE: Final = Kind("v1", "Service", "services")
_HEADLESS: Final = ("", "None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    deployment: Mapping[str, Any]
    """As the API server has it."""
    plan: str | None
    """The pinned plan's text; None where there is none, or it may not be read."""
    url: str | None
    """Address of its Service inside the cluster; None where there is no Service yet."""
    pages: tuple[str, ...]
    """Addresses of its ready replicas' metrics, one a replica."""
    pods: frozenset[tuple[str, str]]
    """Namespace and name of all its pods, also of workers that answer no requests."""
    notes: tuple[str, ...]
    """What could not be read."""

    @property
    def title(self) -> str:
        metadata = self.deployment["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"


def read_endpoint(
    name: str, namespace: str | None, context: str | None, *, timeout_seconds: int = TIMEOUT_SECONDS
) -> Endpoint:
    """Reads the deployment of that name, in that namespace or the only one that has it. LookupError says what there is instead."""
    lister = Lister(client_of(context), timeout_seconds)
    deployment = _one(lister.needed(kinds.OWNER.collection(namespace), namespace), name, namespace)
    space = deployment["metadata"]["namespace"]
    ours = f"{names.LABEL_DEPLOYMENT}={name}"
    services = lister.optional(_SERVICE.collection(space), "its Service is not seen", ours)
    maps = lister.optional(kinds.CONFIG_MAP.collection(space), "its plan is not seen", ours)
    pods = lister.optional(
        kinds.POD.collection(space), "its pods' metrics are not seen", f"{ours},{SERVING_PODS}"
    )
    url = next(filter(None, map(_service_url, services)), None)
    scheme = "https" if url is not None and url.startswith("https:") else "http"
    return Endpoint(
        deployment=deployment,
        plan=next((item["data"][names.PLAN_KEY] for item in maps if names.PLAN_KEY in _data(item)), None),
        url=url,
        pages=tuple(sorted(filter(None, (_page(pod, scheme) for pod in pods)))),
        pods=frozenset((space, one["metadata"]["name"]) for one in pods),
        notes=tuple(lister.notes),
    )


def _one(found: Objects, name: str, namespace: str | None) -> Mapping[str, Any]:
    named = [one for one in found if one["metadata"]["name"] == name]
    if len(named) == 1:
        return named[0]
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    if named:
        spaces = ", ".join(sorted(one["metadata"]["namespace"] for one in named))
        raise LookupError(f"{names.KIND} {name!r} is in {spaces}; say which with -n NAMESPACE")
    there = sorted({one["metadata"]["name"] for one in found})
    raise LookupError(f"no {names.KIND} {name!r} {where}: there are {', '.join(there) or 'none'}")


def _data(item: Mapping[str, Any]) -> Mapping[str, str]:
    return item.get("data") or {}


def _service_url(service: Mapping[str, Any]) -> str | None:
    """The address of a Service that leads to all replicas; None for a headless one, which only gives pods names."""
    spec = service["spec"]
    address, ports = spec.get("clusterIP") or "", spec.get("ports") or ()
    if address in _HEADLESS or not ports:
        return None
    scheme, metadata = ports[0].get("appProtocol") or "http", service["metadata"]
    host = f"{metadata['name']}.{metadata['namespace']}.svc" if scheme == "https" else _host(address)
    return f"{scheme}://{host}:{ports[0]['port']}"


def _page(pod: Mapping[str, Any], scheme: str) -> str | None:
    """The address of a ready pod's metrics; None for workers, which have no port for requests."""
    status = pod.get("status") or {}
    conditions = status.get("conditions") or ()
    if not any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return None
    ports = [port for one in pod["spec"]["containers"] for port in one.get("ports") or ()]
    port = next((one["containerPort"] for one in ports if one.get("name") == "http"), None)
    address = status.get("podIP")
    return f"{scheme}://{_host(address)}:{port}/metrics" if address and port else None


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
