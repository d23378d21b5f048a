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
    """Empty: all of the cluster."""
    config: OperatorConfig = field(default_factory=OperatorConfig)
    """Without the admin's file nothing unusual is trusted."""
    lease_namespace: str | None = None
    """None: no Lease; nobody else may run."""
    own_namespace: str | None = None
    """Where what the operator itself needs lies."""
    webhook: WebhookOptions | None = None
    alerts: AlertsOptions | None = None
    identity: str = ""
    host: str = "0.0.0.0"  # noqa: S104 - the kubelet and Prometheus ask from outside
    port: int | None = 8080
    offline: bool = False
    signals: bool = False
    """Whether the process's signals end it."""
