"""Ways in that are made as they are asked for, and through which requests still may find no replica: others decide that as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll.api.v1alpha1.networking import is_engines
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.plan import Finding, Severity

_TAKE_OFF: Final = ("rewrite", "strip", "middlewares", "path-prefix", "transforms")
"""In the names of annotations by which controllers of an Ingress take a prefix off, or may: nginx', HAProxy's, Kong's, Traefik's and of
clouds."""


def check_ways_in(intent: Intent) -> Iterator[Finding]:
    yield from _ingress_path(intent)
    yield from _pool_without_tls(intent)
    yield from _picker_shut_out(intent)


def _ingress_path(intent: Intent) -> Iterator[Finding]:
    """A route of the Gateway API takes a prefix off, and an Ingress has no word for that."""
    ingress = intent.spec.networking.ingress
    if ingress is None or is_engines(ingress.path) or intent.spec.engine.tells("--root-path"):
        return
    if any(word in name for name in ingress.annotations for word in _TAKE_OFF):
        return
    yield Finding(
        severity=Severity.WARNING,
        reason="PathUnknownToEngine",
        message=f"an Ingress hands its path on, and the engine knows none below {ingress.path}, so that it answers 404 unless the "
        "controller takes that off",
        field="networking.ingress.path",
        value=ingress.path,
        remedy=f"--root-path={ingress.path} in engine.extraArgs, or the annotation by which the controller takes a prefix off",
    )


def _pool_without_tls(intent: Intent) -> Iterator[Finding]:
    """An InferencePool cannot say that its replicas speak TLS, as a Service does by its appProtocol."""
    networking = intent.spec.networking
    if networking.picker is None or networking.tls_secret is None:
        return
    yield Finding(
        severity=Severity.WARNING,
        reason="PoolAskedWithoutTLS",
        message="gateways ask the replicas of an InferencePool, which networking.gateway.endpointPicker makes, in plain HTTP, and with "
        "networking.tlsSecret those answer TLS alone: no request through the gateway succeeds unless that is told to speak it",
        field="networking.tlsSecret",
        value=networking.tls_secret,
        remedy="leave one of the two out, or have the gateway speak TLS to the pool by a policy of its own (of Istio, a DestinationRule)",
    )


def _picker_shut_out(intent: Intent) -> Iterator[Finding]:
    """A picker reads metrics at the port of the API, from the namespace of its InferencePool."""
    networking, field = intent.spec.networking, "networking.allowFrom"
    if networking.picker is None or not networking.allow_from or intent.namespace in networking.allow_from:
        return
    yield Finding(
        severity=Severity.WARNING,
        reason="PickerShutOut",
        message=f"{field} shuts out the endpoint picker, whose pods are in the deployment's own namespace: it sees the metrics of no replica, "
        "and chooses without knowing how they fare, if at all",
        field=field,
        value=", ".join(networking.allow_from),
        remedy=f"{intent.namespace} in {field} as well",
    )
