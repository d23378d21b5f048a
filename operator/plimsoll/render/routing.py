"""The objects through which requests and scrapers reach pods: routes, InferencePool, Ingress, PodMonitor and NetworkPolicy.

Not every cluster serves all these APIs, so an object is made only where it is asked for and its API is served. `unserved` says what
was asked for and cannot be made, so that nobody waits for a route that will never come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from plimsoll import names
from plimsoll.api.problems import Problem
from plimsoll.api.v1alpha1.networking import Gateway, is_engines
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.command import PORT
from plimsoll.engines.timing import LEAST_WAIT, wait_seconds
from plimsoll.facts.capabilities import Capabilities
from plimsoll.objects import Manifest, Owner
from plimsoll.render.owned import leaders_of, members_of, owned
from plimsoll.render.probes import PORT_NAME
from plimsoll.render.revision import Revision, Workload
from plimsoll.render.start import RUNTIME_PORT, RUNTIME_PORT_NAME

GATEWAYS: Final = "gateway.networking.k8s.io"
ROUTE: Final = (GATEWAYS, "HTTPRoute")
POOL: Final = ("inference.networking.k8s.io", "InferencePool")
MONITOR: Final = ("monitoring.coreos.com", "PodMonitor")
LEADER_WORKER_SETS: Final = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
OPERATOR_PODS: Final = {names.LABEL_ROLE: names.OPERATOR}
"""Selects the operator's own pods, whatever name the chart gives them, and no other operator's pods."""
SCRAPED_S: Final = 15
"""Seconds between two scrapes. Prometheus' default is a minute, and by then the control loop takes a replica for silent."""


def unserved(
    spec: LLMDeploymentSpec, revisions: Sequence[Revision], capabilities: Capabilities
) -> tuple[Problem, ...]:
    """What the user asked for and cannot be made: its API is not served, or an InferencePool names no endpoint picker."""
    gateway = spec.networking.gateway
    wished = (
        (ROUTE, "spec.networking.gateway", gateway is not None),
        (
            POOL,
            "spec.networking.gateway.endpointPicker",
            spec.networking.picker is not None,
        ),
        (
            LEADER_WORKER_SETS,
            "spec.topology.groups",
            any(one.workload is Workload.LEADER_WORKER_SET for one in revisions),
        ),
    )
    missing = tuple(
        Problem(field, "", f"the cluster serves no {kind} ({group}); install its CRD, or leave the field out")
        for (group, kind), field, asked in wished
        if asked and (group, kind) not in capabilities
    )
    return (*missing, *_pickerless(gateway))


def _pickerless(gateway: Gateway | None) -> Iterator[Problem]:
    if gateway is not None and gateway.inference_pool and gateway.endpoint_picker is None:
        field = "spec.networking.gateway.inferencePool"
        why = "nobody would choose among the replicas of an InferencePool, so the route leads to the Service"
        yield Problem(field, "", f"{why}; name who chooses in endpointPicker, or leave the field out")


def routes(
    spec: LLMDeploymentSpec,
    owner: Owner,
    service: str,
    revisions: Sequence[Revision],
    capabilities: Capabilities,
) -> Iterator[Manifest]:
    gateway = spec.networking.gateway
    if gateway is not None and ROUTE in capabilities:
        picker = spec.networking.picker if POOL in capabilities else None
        if picker is not None:
            yield owned(
                "inferencepool",
                owner,
                kind="InferencePool",
                name=owner.name,
                selector=leaders_of(owner.name),
                port=PORT,
                picker=picker,
            )
        longest = max((wait_seconds(spec, one.entry) for one in revisions), default=LEAST_WAIT)
        backend = _backend(spec, owner, service, pooled=picker is not None)
        yield _route(gateway, owner, gateway.timeout_seconds or longest, backend)
    if spec.networking.ingress is not None:
        yield _ingress(spec, owner, service)
    grouped = any(one.pods_per_replica > 1 for one in revisions)
    if MONITOR in capabilities:
        yield _monitor(spec, owner, grouped=grouped)
    if spec.networking.allow_from or grouped:
        yield _policy(spec, owner, grouped=grouped)


def _backend(spec: LLMDeploymentSpec, owner: Owner, service: str, *, pooled: bool) -> dict[str, Any]:
    if pooled:
        return {"group": POOL[0], "kind": POOL[1], "name": owner.name, "port": PORT, "weight": 1}
    port = spec.networking.service.port
    return {"group": "", "kind": "Service", "name": service, "port": port, "weight": 1}


def _route(gateway: Gateway, owner: Owner, timeout_s: int, backend: dict[str, Any]) -> Manifest:
    parent: dict[str, Any] = {"group": GATEWAYS, "kind": "Gateway", "name": gateway.name}
    if gateway.namespace is not None:
        parent["namespace"] = gateway.namespace
    if gateway.listener is not None:
        parent["sectionName"] = gateway.listener
    return owned(
        "httproute",
        owner,
        kind="HTTPRoute",
        name=names.child_name(owner.name, "route"),
        parent=parent,
        hostnames=gateway.hostnames,
        backend=backend,
        path=gateway.path or "/",
        taken_off=not is_engines(gateway.path),
        # The Gateway API takes at most five digits, which a day has.
        timeout=f"{timeout_s}s",
    )


def _ingress(spec: LLMDeploymentSpec, owner: Owner, service: str) -> Manifest:
    asked = spec.networking.ingress
    if asked is None:
        raise ValueError("there is an Ingress only where the resource asks for one")
    backend = {"service": {"name": service, "port": {"number": spec.networking.service.port}}}
    path = {"path": asked.path or "/", "pathType": "Prefix", "backend": backend}
    return owned(
        "ingress",
        owner,
        kind="Ingress",
        name=names.child_name(owner.name, "route"),
        annotations=asked.annotations,
        class_name=asked.class_name,
        rules=[{"host": host, "http": {"paths": [path]}} for host in asked.hosts],
        tls=[{"hosts": asked.hosts, "secretName": asked.tls_secret}] if asked.tls_secret is not None else [],
    )


def _monitor(spec: LLMDeploymentSpec, owner: Owner, *, grouped: bool) -> Manifest:
    """Scrapes the engine, and the supervisor where the NetworkPolicy lets scrapers reach it. A pod without the supervisor's port is not
    asked there."""
    endpoint: dict[str, Any] = {
        "port": PORT_NAME,
        "path": "/metrics",
        "scheme": "http",
        "interval": f"{SCRAPED_S}s",
    }
    reports = {"port": RUNTIME_PORT_NAME, "path": "/metrics", "scheme": "http"}
    if spec.networking.tls_secret is not None:
        # The certificate is for the Service's name, but a scraper connects to the addresses of pods.
        endpoint |= {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}
    return owned(
        "podmonitor",
        owner,
        kind="PodMonitor",
        name=owner.name,
        endpoints=[endpoint, reports] if spec.networking.allow_from or not grouped else [endpoint],
        kept=[names.LABEL_DEPLOYMENT, names.LABEL_SET],
        selector=leaders_of(owner.name),
    )


def _policy(spec: LLMDeploymentSpec, owner: Owner, *, grouped: bool) -> Manifest:
    """Who may connect to serving pods. Ranks of a group talk over ports that they choose themselves and trust whoever answers, so there
    only the deployment's own pods may. The supervisor's port is open to the operator, in any namespace, and to those that may call the API."""
    api: dict[str, Any] = {"ports": [{"port": PORT, "protocol": "TCP"}]}
    reports: dict[str, Any] = {
        "ports": [{"port": RUNTIME_PORT, "protocol": "TCP"}],
        "from": [{"namespaceSelector": {}, "podSelector": {"matchLabels": OPERATOR_PODS}}],
    }
    if spec.networking.allow_from:
        allowed = {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": sorted(spec.networking.allow_from),
        }
        callers = {"namespaceSelector": {"matchExpressions": [allowed]}}
        api["from"] = [callers]
        reports["from"].append(callers)
    among = {"from": [{"podSelector": {"matchLabels": members_of(owner.name)}}]}
    return owned(
        "networkpolicy",
        owner,
        kind="NetworkPolicy",
        name=names.child_name(owner.name, "netpol"),
        ingress=[api, reports, *([among] if grouped else [])],
        selector=members_of(owner.name),
    )
