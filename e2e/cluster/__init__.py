"""A real Kubernetes control plane on one machine, for tests, demonstrations and a person at a prompt."""

from cluster.cluster import Cluster
from cluster.processes import ClusterFailed

__all__ = ["Cluster", "ClusterFailed"]
