"""How the node's own programs are told: kubelet, kube-proxy, and the names of the cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.api import Object
from cluster.node.runtime import SOCKET

DOMAIN: Final = "cluster.local"
PROXY_USER: Final = "system:kube-proxy"
NODES_GROUP: Final = "system:nodes"
DNS_ROLE: Final[Object] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "e2e:coredns"},
    "rules": [
        {"apiGroups": [""], "resources": ["services", "namespaces", "pods"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ],
}
DNS_ACCOUNT: Final = "coredns"


def node_user(name: str) -> str:
    """Who a node's kubelet is to the API server."""
    return f"system:node:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """One node's."""

    name: str
    address: str
    dns: str
    folder: Path
    cgroup: str
    kubeconfig: Path

    def config(self) -> dict[str, object]:
        """As a default cluster's, apart from what a test machine needs."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            # Only the host has a way to it. The API server, which makes its own certificate, has none to show here.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDomain": DOMAIN,
            "clusterDNS": [self.dns],
            "resolvConf": "",
            # The disk is the host's, and how full it is nothing that the cluster should act on.
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "0%",
                "imagefs.available": "0%",
            },
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "10s",
            "logging": {"verbosity": 1},
        }

    def args(self) -> list[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "config.json"
        file.write_text(json.dumps(self.config()))
        return [
            f"--config={file}",
            f"--kubeconfig={self.kubeconfig}",
            f"--root-dir={self.folder / 'root'}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
        ]


def kube_proxy(*, name: str, kubeconfig: Path, pods: str) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={name}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={pods}",
        "--healthz-bind-address=",
        # The kernel's table of connections is the host's to size.
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
    ]


def coredns(*, address: str, kubeconfig: Path, folder: Path) -> list[str]:
    """Answers on the host's address; of other names it knows nothing."""
    file = folder / "Corefile"
    file.write_text(f"""
{DOMAIN} in-addr.arpa ip6.arpa {{
    bind {address}
    errors
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
    }}
}}
. {{
    bind {address}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
""")
    return ["-conf", str(file), "-quiet"]
