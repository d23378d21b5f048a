"""How the operator's process was started."""

from __future__ import annotations

from dataclasses import dataclass, field

from plimsoll.api.config import OperatorConfig
from plimsoll.handlers.admission import WebhookOptions
from plimsoll.handlers.alerted import AlertsOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    context: str | None = None
    kubeconfig: str | None = None
    namespaces: tuple[str, ...] = ()
    """Namespaces that are watched. Empty: all of the cluster."""
    config: OperatorConfig = field(default_factory=OperatorConfig)
    """The admin's file. Without it nothing is trusted that an admin has to allow."""
    lease_namespace: str | None = None
    """None: no Lease is taken, so no other operator may run."""
    own_namespace: str | None = None
    """Namespace of the objects that the operator itself needs."""
    webhook: WebhookOptions | None = None
    alerts: AlertsOptions | None = None
    identity: str = ""
    host: str = "0.0.0.0"  # noqa: S104 - the kubelet and Prometheus ask from outside
    port: int | None = 8080
    offline: bool = False
    signals: bool = False
    """Whether SIGTERM and SIGINT end it."""
