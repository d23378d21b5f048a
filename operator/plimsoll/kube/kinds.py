"""The kinds of objects that are read and written, and the paths under which the API serves them.

This is a table and needs no discovery: the kinds that we use are fixed, and RBAC names exactly these. Which of the optional kinds a cluster
serves is found out by `capabilities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.objects import Ref


@dataclass(frozen=True, slots=True)
class Kind:
    api_version: str
    name: str
    plural: str
    namespaced: bool = True
    optional: bool = False
    """Its API may be missing."""
    lasts: bool = False
    """Whether it exists for as long as its owner does, so that the operator never deletes it."""

    @property
    def group(self) -> str:
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    def collection(self, namespace: str | None = None) -> str:
        """The path of all objects of this kind, or of those in a namespace."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        """The path of one object."""
        return f"{self.collection(namespace if self.namespaced else None)}/{name}"


DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments")
STATEFUL_SET: Final = Kind("apps/v1", "StatefulSet", "statefulsets")
LEADER_WORKER_SET: Final = Kind(
    "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", optional=True
)
WORKLOADS: Final = (DEPLOYMENT, STATEFUL_SET, LEADER_WORKER_SET)
"""Kinds that make pods."""
CONTROLLER_REVISION: Final = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
CONFIG_MAP: Final = Kind("v1", "ConfigMap", "configmaps")
CHILDREN: Final = (
    *WORKLOADS,
    CONTROLLER_REVISION,
    CONFIG_MAP,
    Kind("v1", "Service", "services"),
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", lasts=True),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("networking.k8s.io/v1", "Ingress", "ingresses"),
    Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes", optional=True),
    Kind("inference.networking.k8s.io/v1", "InferencePool", "inferencepools", optional=True),
    Kind("monitoring.coreos.com/v1", "PodMonitor", "podmonitors", optional=True, lasts=True),
    Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates", optional=True),
)
"""Kinds of objects that an LLMDeployment may own."""
OURS: Final = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"
"""Label selector of all objects that Plimsoll made."""

SCALED_OBJECT: Final = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects", optional=True)
AUTOSCALER: Final = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
SLICE: Final = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False, optional=True)
"""Devices that pods get by claims. They are read in the version alone in which templates of claims are written: where Kubernetes serves
only an older one (before 1.34), nothing could be run on what is planned on."""
CLAIM: Final = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", optional=True)

OWNER: Final = Kind(names.API_VERSION, names.KIND, names.PLURAL)
POD: Final = Kind("v1", "Pod", "pods")
NODE: Final = Kind("v1", "Node", "nodes", namespaced=False)
CRD: Final = Kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
LEASE: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
EVENT: Final = Kind("events.k8s.io/v1", "Event", "events")
SECRET: Final = Kind("v1", "Secret", "secrets")
WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
LOCAL_REVIEW: Final = Kind("authorization.k8s.io/v1", "LocalSubjectAccessReview", "localsubjectaccessreviews")
"""Like the two kinds above it, only the admission webhook uses it."""

_BY_NAME: Mapping[tuple[str, str], Kind] = {
    (kind.api_version, kind.name): kind for kind in (*CHILDREN, OWNER, POD, NODE, CRD, LEASE, EVENT)
}


def kind_of(ref: Ref) -> Kind:
    """The kind of an object. Raises ValueError for one that is not in the table."""
    kind = _BY_NAME.get((ref.api_version, ref.kind))
    if kind is None:
        raise ValueError(
            f"{ref.api_version} {ref.kind} is no kind that is written here; add it to kinds.CHILDREN"
        )
    return kind


def path_of(ref: Ref) -> str:
    return kind_of(ref).path(ref.namespace, ref.name)


def resource_in(path: str) -> str:
    """The plural in a path, with its subresource, as a label of metrics."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join((parts[0], *parts[2:])) if parts else "discovery"
