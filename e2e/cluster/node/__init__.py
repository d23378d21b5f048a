"""Real nodes: machines made of namespaces with a real kubelet and real containers, on a cluster's own network."""

from cluster.node.nodes import RealNode, RealNodes
from cluster.node.packages import Unavailable

__all__ = ["RealNode", "RealNodes", "Unavailable"]
