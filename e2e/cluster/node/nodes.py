"""Real nodes of one cluster, from nothing to Ready: the network first, since the API server listens on it, then node by node.

Programs that run on them are told by `kubelet` and `runtime`; images by the `images` beside this package.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cluster.api import Api, ApiError, Object
from cluster.binaries import Places, ensure
from cluster.binaries.progress import Progress
from cluster.node import kubelet, packages
from cluster.node.image_store import ImageStore, Loan
from cluster.node.machine import Machine, end_cgroup, make_cgroup
from cluster.node.network import NODES, Addresses, Network
from cluster.node.runtime import Runtime, pause_archive
from cluster.processes import Processes

PROGRAMS: Final = ("kubelet", "kube-proxy", "coredns", "pause")
READY_SECONDS: Final = 120.0
"""12 s on an idle machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealNode:
    """One node, with pods that are real."""

    name: str
    address: str
    api: Api
    machine: Machine
    runtime: Runtime

    @property
    def kubelet_program(self) -> str:
        """What its kubelet is called among the cluster's programs."""
        return f"kubelet-{self.name}"

    @contextmanager
    def like(self, simulated: Object) -> Iterator[None]:
        """Inside the `with` it has the labels and devices of a fleet's node; the devices are granted, and are nothing."""
        labels = simulated["metadata"]["labels"]
        own = {key: value for key, value in labels.items() if not _is_own(key)}
        devices = {key: value for key, value in simulated["status"]["allocatable"].items() if "/" in key}
        self._patch(own, devices)
        try:
            yield
        finally:
            self._patch(dict.fromkeys(own), dict.fromkeys(devices))

    def _patch(self, labels: Mapping[str, str | None], devices: Mapping[str, str | None]) -> None:
        path = f"/api/v1/nodes/{self.name}"
        self.api.patch(path, {"metadata": {"labels": labels}})
        self.api.patch(f"{path}/status", {"status": {"capacity": devices, "allocatable": devices}})

    def is_ready(self) -> bool:
        """Whether pods are sent to it."""
        try:
            node = self.api.get(f"/api/v1/nodes/{self.name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        conditions = {one["type"]: one["status"] for one in node["status"].get("conditions") or ()}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")


@dataclass(slots=True, kw_only=True)
class RealNodes:
    """All of one cluster; made before its control plane starts, and joined to it after."""

    names: tuple[str, ...]
    processes: Processes
    programs: Mapping[str, Path]
    system: Mapping[str, Path]
    network: Network
    images: ImageStore
    nodes: list[RealNode] = field(default_factory=list)
    loans: list[Loan] = field(default_factory=list)

    @classmethod
    def prepare(cls, count: int, processes: Processes, places: Places, progress: Progress) -> RealNodes:
        """Everything that needs no API server; Unavailable where this machine cannot have real nodes."""
        if not 0 < count <= NODES:
            raise ValueError(f"a cluster has 1 to {NODES} real nodes, not {count}")
        packages.require_root()
        return cls(
            names=tuple(f"real-{number}" for number in range(1, count + 1)),
            processes=processes,
            programs=ensure(PROGRAMS, places, progress),
            system=packages.require(packages.NODE, progress),
            network=Network.start(processes),
            images=ImageStore.of(places),
        )

    @property
    def addresses(self) -> Addresses:
        return self.network.addresses

    @property
    def users(self) -> dict[str, str]:
        """Who needs a token of the API server, and in which group."""
        return {kubelet.node_user(name): kubelet.NODES_GROUP for name in self.names} | {
            kubelet.PROXY_USER: ""
        }

    def join(
        self, api: Api, kubeconfig: Callable[[str], Path], account_kubeconfig: Callable[[str, str], Path]
    ) -> None:
        """Returns when all are ready for pods."""
        pause = pause_archive(self.programs["pause"], self.processes.folder / "pause.tar")
        for place, name in enumerate(self.names):
            self.nodes.append(self._start(place, name, api, kubeconfig, pause))
        self._start_dns(api, account_kubeconfig)
        deadline = time.monotonic() + READY_SECONDS
        for node in self.nodes:
            self.processes.wait(node.kubelet_program, node.is_ready, deadline - time.monotonic())

    def stop(self) -> None:
        """After the cluster's programs were ended: what they leave takes a moment to go."""
        for machine in (self.network.switch, *(node.machine for node in self.nodes)):
            machine.wait_end()
        end_cgroup(self.processes.cgroup)
        for loan in self.loans:
            loan.close()

    def _start(
        self, place: int, name: str, api: Api, kubeconfig: Callable[[str], Path], pause: Path
    ) -> RealNode:
        machine = Machine.start(name, self.processes)
        self.network.attach(machine, place)
        folder = self.processes.folder / "nodes" / name
        runtime = Runtime(
            machine=machine,
            folder=folder / "runtime",
            root=folder / "containerd",
            plugins=self.system["ptp"].parent,
            pods=self.addresses.pods_of(place),
        )
        self.loans.append(self.images.lend(runtime.root))
        runtime.start(self.system["containerd"])
        runtime.load(pause)
        cgroup = f"{self.processes.cgroup}/{name}"
        make_cgroup(cgroup)
        told = kubelet.Kubelet(
            name=name,
            address=self.addresses.node(place),
            dns=self.addresses.host,
            folder=folder / "kubelet",
            cgroup=cgroup,
            kubeconfig=kubeconfig(kubelet.node_user(name)),
        )
        node = RealNode(name=name, address=told.address, api=api, machine=machine, runtime=runtime)
        machine.start_program(node.kubelet_program, [self.programs["kubelet"], *told.args()])
        proxy = kubelet.kube_proxy(
            name=name, kubeconfig=kubeconfig(kubelet.PROXY_USER), pods=self.addresses.pods
        )
        machine.start_program(f"kube-proxy-{name}", [self.programs["kube-proxy"], *proxy])
        return node

    def _start_dns(self, api: Api, kubeconfig: Callable[[str, str], Path]) -> None:
        account = kubelet.DNS_ACCOUNT
        api.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": account}})
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        api.create(f"{rbac}/clusterroles", kubelet.DNS_ROLE)
        binding: Object = {
            "metadata": {"name": kubelet.DNS_ROLE["metadata"]["name"]},
            "roleRef": {"kind": "ClusterRole", "name": kubelet.DNS_ROLE["metadata"]["name"]},
            "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": account}],
        }
        api.create(f"{rbac}/clusterrolebindings", binding)
        folder = self.processes.folder / "nodes"
        args = kubelet.coredns(
            address=self.addresses.host, kubeconfig=kubeconfig("kube-system", account), folder=folder
        )
        self.processes.start("coredns", [self.programs["coredns"], *args])
        self.processes.wait("coredns", lambda: _listens(self.addresses.host, 53), READY_SECONDS)


def _is_own(label: str) -> bool:
    """Whether a kubelet writes it of the machine it is on, or it says who made the node."""
    return "/" not in label or label.partition("/")[0] in {"kubernetes.io", "beta.kubernetes.io"}


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True
