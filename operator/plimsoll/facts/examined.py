"""One look at a cluster by somebody who wonders why nothing serves: objects as the API gave them, at one time.

Read by `kube.examining`, judged by `status.doctor`. A kind that could not be listed is empty and stands in `unseen`, so that
nothing is concluded from its absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.api.config import OperatorConfig

Object = Mapping[str, Any]
Objects = tuple[Object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    now: float
    nodes: Objects = ()
    slices: Objects = ()
    crds: Objects = ()
    """The one of our kind."""
    leases: Objects = ()
    """Those of the operator's name."""
    deployments: Objects = ()
    """LLMDeployments, those that are asked about."""
    workloads: Objects = ()
    """Deployments and StatefulSets that are ours."""
    pods: Objects = ()
    """Serving pods."""
    events: Objects = ()
    """Warnings, and ends of containers that the kubelet caused."""
    quotas: Objects = ()
    claims: Objects = ()
    classes: Objects = ()
    autoscalers: Objects = ()
    """HorizontalPodAutoscalers and ScaledObjects."""
    config: OperatorConfig = field(default_factory=OperatorConfig)
    """The admin's, whose node classes say what labels leave out."""
    unseen: Mapping[str, str] | None = None
    """By field of this class, why it could not be read."""

    def blind(self, field: str) -> bool:
        """Whether nothing may be concluded from this field's being empty."""
        return field in (self.unseen or {})
