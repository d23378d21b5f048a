"""Brings a fleet's objects into a running cluster, where kwok plays the kubelets, and takes them out again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cluster import claims
from cluster.api import Api, ApiError, Object
from cluster.fleet import KUBELET, OTHERS, Fleet
from cluster.processes import ClusterFailed, Processes
from cluster.stages import config
from cluster.stages.habits import Habits
from cluster.stages.nodes import CONDITIONS

POD_ADDRESSES: Final = "10.252.0.0/16"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CLASSES: Final = f"{claims.API}/deviceclasses"
SLICES: Final = f"{claims.API}/resourceslices"
CLAIMS: Final = f"{claims.API}/namespaces/{OTHERS}/resourceclaims"
LOST: Final = "lost"
SEEN_SECONDS: Final = 0.5
WRITERS: Final = 8
READY_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulator:
    """The simulated part of one cluster."""

    api: Api
    processes: Processes
    program: Path
    kubeconfig: Path
    node_grace_seconds: int | None
    """Where silent nodes are noticed, nodes have heartbeats."""

    def load(self, fleet: Fleet) -> None:
        """Returns when every node is ready and every pod of others runs."""
        if fleet.kubelet not in self.processes.names:
            self._start(fleet.kubelet, fleet.habits)
        if self.api.items("/api/v1/nodes", labelSelector=fleet.selector, limit="1"):
            raise ClusterFailed(f"the fleet {fleet.name} is loaded already; unload it first")
        if fleet.slices:
            _each(
                claims.device_classes(),
                lambda one: self.api.apply(f"{CLASSES}/{one['metadata']['name']}", one),
            )
        _each(fleet.nodes, self.register)
        _each(fleet.slices, lambda one: self.api.create(SLICES, one))
        if fleet.nodes:
            self._until(lambda: self._all_usable(fleet), f"nodes of {fleet.name} are not ready")
            if self.node_grace_seconds is not None:
                # kwok leaves a pod aside, for good, that comes before it has seen its own lease of the node.
                self._until(lambda: self._all_leased(fleet), f"nodes of {fleet.name} have no heartbeat")
                time.sleep(SEEN_SECONDS)
        if fleet.pods:
            self._namespace()
            _each(fleet.claims, lambda claim: self.api.create(CLAIMS, claim))
            _each(fleet.pods, lambda pod: self.api.create(f"/api/v1/namespaces/{OTHERS}/pods", pod))
            self._until(lambda: self._all_run(fleet), f"pods on {fleet.name} do not run")

    def register(self, node: Object) -> None:
        """As a kubelet that is ready at once: of a thousand that say so later each costs three more writes and twice the time."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - what a kubelet would write
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        conditions = [{**condition, **times} for condition in CONDITIONS]
        self.api.create("/api/v1/nodes", {**node, "status": {**node["status"], "conditions": conditions}})

    def unload(self, fleet: Fleet) -> None:
        """Its nodes go, and with them every pod that was on one."""
        # Nodes first, or what replaces a removed pod lands on them. One by one: the server takes a minute for a collection of
        # a thousand when it has little of the machine. Those that came later than the fleet go too.
        nodes = self.api.items("/api/v1/nodes", labelSelector=fleet.selector)
        _each(nodes, self._remove)
        if fleet.slices:
            self.api.delete(f"{SLICES}?labelSelector={fleet.selector}")
        if self.node_grace_seconds is not None:
            # What is left of a node would be taken for the next one of its name, and be collected under it.
            _each(nodes, lambda node: self._remove_at(f"{LEASES}/{node['metadata']['name']}"))
        there = {node["metadata"]["name"] for node in nodes}
        while pods := [pod for pod in self.api.items("/api/v1/pods") if pod["spec"].get("nodeName") in there]:
            _each(pods, self._remove)
        if fleet.claims:
            # Their pods are gone, so nothing would take the names of the allocated devices off them.
            for claim in self.api.items(CLAIMS, labelSelector=fleet.selector):
                self._give_back(claim)
        if fleet.habits:
            self.processes.kill(fleet.kubelet)

    def lose(self, node: str) -> None:
        """Its kubelet is heard of no more: after the cluster's grace period the node is not ready, and its pods are not reached."""
        if self.node_grace_seconds is None:
            raise ClusterFailed("nobody would notice; make the Cluster with node_grace_seconds (4 is enough)")
        was = self.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"][KUBELET]
        if was != LOST:
            labels = {KUBELET: LOST, f"{KUBELET}-before": was}
            self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})

    def bring_back(self, node: str) -> None:
        """Its kubelet is there again, with the pods as it left them."""
        labels = self.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
        if labels[KUBELET] == LOST:
            before = {KUBELET: labels[f"{KUBELET}-before"], f"{KUBELET}-before": None}
            self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": before}})

    def _start(self, name: str, habits: Habits) -> None:
        stages = self.processes.folder / f"{name}.yaml"
        stages.write_text(config(habits))
        args = [
            f"--kubeconfig={self.kubeconfig}",
            f"--config={stages}",
            f"--manage-nodes-with-label-selector={KUBELET}={name}",
            # Renewed four times in its duration, so several times in the grace period.
            f"--node-lease-duration-seconds={(self.node_grace_seconds or 0) * 4 // 5}",
            f"--cidr={POD_ADDRESSES}",
            "--v=WARN",
        ]
        self.processes.start(name, [self.program, *args])

    def _namespace(self) -> None:
        body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}}
        self.api.apply(f"/api/v1/namespaces/{OTHERS}", body)
        accounts = f"/api/v1/namespaces/{OTHERS}/serviceaccounts"
        self._until(lambda: bool(self.api.items(accounts)), f"{OTHERS} has no account, and pods are refused")

    def _give_back(self, claim: Object) -> None:
        path = f"{CLAIMS}/{claim['metadata']['name']}"
        self._remove_at(path)
        try:
            self.api.patch(path, {"metadata": {"finalizers": None}})
        except ApiError as error:
            if error.status != 404:
                raise

    def _remove(self, thing: Object) -> None:
        about = thing["metadata"]
        where = f"namespaces/{about['namespace']}/pods" if "namespace" in about else "nodes"
        self._remove_at(f"/api/v1/{where}/{about['name']}?gracePeriodSeconds=0")

    def _remove_at(self, path: str) -> None:
        try:
            self.api.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise

    def _all_usable(self, fleet: Fleet) -> bool:
        # A list of a thousand nodes costs the server half a second, so all are asked about when the last one made is usable.
        last = fleet.nodes[-1]["metadata"]["name"]
        if not is_usable(self.api.get(f"/api/v1/nodes/{last}")):
            return False
        return all(is_usable(node) for node in self.api.items("/api/v1/nodes", labelSelector=fleet.selector))

    def _all_leased(self, fleet: Fleet) -> bool:
        leased = {lease["metadata"]["name"] for lease in self.api.items(LEASES)}
        return leased >= {node["metadata"]["name"] for node in fleet.nodes}

    def _all_run(self, fleet: Fleet) -> bool:
        pods = self.api.items(f"/api/v1/namespaces/{OTHERS}/pods", labelSelector=fleet.selector)
        return all(pod["status"].get("phase") == "Running" for pod in pods)

    def _until(self, done: Callable[[], bool], otherwise: str) -> None:
        asked = time.monotonic()
        deadline = asked + READY_SECONDS
        while not done():
            self.processes.check()
            answered = time.monotonic()
            if answered > deadline:
                raise ClusterFailed(f"{otherwise} after {READY_SECONDS:.0f} s{self.processes.tail('kwok')}")
            # Leave most of the time to the work itself.
            time.sleep(max(0.1, 3 * (answered - asked)))
            asked = time.monotonic()


def is_usable(node: Object) -> bool:
    """Ready, and no longer kept free by the controller that has yet to see that."""
    conditions = {one["type"]: one["status"] for one in node["status"].get("conditions") or ()}
    taints = node["spec"].get("taints") or ()
    return conditions.get("Ready") == "True" and not any(
        taint["key"].startswith("node.kubernetes.io/") for taint in taints
    )


def _each(objects: Iterable[Object], call: Callable[[Object], object]) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in pool.map(call, objects):
            pass
