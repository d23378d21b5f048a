"""All objects of a cluster that are looked at to find out why nothing serves, as the API gave them at one time.

`kube.examining` reads them, `status.doctor` judges them. A kind that could not be listed is empty here and named in `unseen`, so that
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
    """The objects of one look at a cluster."""

    now: float
    nodes: Objects = ()
    slices: Objects = ()
    crds: Objects = ()
    """The CustomResourceDefinition of LLMDeployments."""
    leases: Objects = ()
    """Leases with the operator's name."""
    deployments: Objects = ()
    """The LLMDeployments that are asked about."""
    workloads: Objects = ()
    """Deployments and StatefulSets that the operator made."""
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
    """The admin's config, whose node classes say what labels leave out."""
    unseen: Mapping[str, str] | None = None
    """By field of this class: why it could not be read."""

    def blind(self, field: str) -> bool:
        """Whether a field could not be read, so that nothing may be concluded from its being empty."""
        return field in (self.unseen or {})
