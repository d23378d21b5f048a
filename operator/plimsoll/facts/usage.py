"""What is taken of the nodes: by all pods, and by claims to single devices.

It is kept by node and by deployment of ours, so that a plan can be made as if a deployment's own pods were not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.facts.labels.dra import Identity, claimed
from plimsoll.facts.pods import PodUse, parse_pod

OTHERS = ""
"""Stands in place of a deployment for all pods that are of none of ours."""


@dataclass(slots=True)
class _Use:
    """What the pods of one deployment, or all other pods, take of one node."""

    pods: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    devices: dict[str, int] = field(default_factory=dict)


class Usage:
    """What pods and claims take, kept current."""

    def __init__(self) -> None:
        self._pods: dict[str, PodUse] = {}
        self._uses: dict[str, dict[str, _Use]] = {}
        self._claims: dict[str, tuple[Identity, ...]] = {}
        self._claimed: dict[Identity, dict[str, tuple[str, ...]]] = {}

    def add_pod(self, pod: Mapping[str, Any]) -> tuple[str, ...]:
        """Counts a new or changed pod; names the nodes whose use changed."""
        use = parse_pod(pod)
        if use is None:
            metadata = pod.get("metadata") or {}
            return self.remove_pod(f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}")
        before = self._pods.get(use.key)
        if before == use:
            return ()
        changed = self.remove_pod(use.key) if before is not None else ()
        self._pods[use.key] = use
        self._count(use, 1)
        return (*changed, use.node)

    def remove_pod(self, key: str) -> tuple[str, ...]:
        use = self._pods.pop(key, None)
        if use is None:
            return ()
        self._count(use, -1)
        return (use.node,)

    def add_claim(self, item: Mapping[str, Any]) -> None:
        metadata = item.get("metadata") or {}
        key = f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}"
        self.remove_claim(key)
        devices, pods = claimed(item)
        if devices:
            self._claims[key] = devices
            for device in devices:
                self._claimed.setdefault(device, {})[key] = pods

    def remove_claim(self, key: str) -> None:
        for device in self._claims.pop(key, ()):
            claims = self._claimed[device]
            del claims[key]
            if not claims:
                del self._claimed[device]

    def devices(self, node: str, resource: str, without: Collection[str] = ()) -> int:
        """Devices of a plugin's resource that pods hold on a node."""
        uses = self._uses.get(node)
        if uses is None:
            return 0
        return sum(
            use.devices.get(resource, 0) for owner, use in uses.items() if not owner or owner not in without
        )

    def host(self, node: str, without: Collection[str] = ()) -> tuple[int, int, int]:
        """Millicores, bytes of memory and of local disk that pods have asked for on a node."""
        cpu = memory = disk = 0
        for owner, use in self._uses.get(node, {}).items():
            if not owner or owner not in without:
                cpu, memory, disk = cpu + use.cpu_millis, memory + use.memory_bytes, disk + use.disk_bytes
        return cpu, memory, disk

    def held(self, node: str, resource: str) -> Iterator[tuple[str, int]]:
        """Devices of a resource by each deployment of ours."""
        for owner, use in self._uses.get(node, {}).items():
            if owner and use.devices.get(resource):
                yield owner, use.devices[resource]

    def claimants(self, identities: tuple[Identity, ...]) -> set[str] | None:
        """Who has claimed a device: deployments of ours, or OTHERS for all others; None where nobody has. Several identities may stand for
        one device."""
        pods = [pods for one in identities for pods in self._claimed.get(one, {}).values()]
        if not pods:
            return None
        return {self._owner(pod) for users in pods for pod in users} or {OTHERS}

    def _owner(self, pod: str) -> str:
        use = self._pods.get(pod)
        return (use.deployment if use else None) or OTHERS

    def _count(self, use: PodUse, sign: int) -> None:
        uses = self._uses.setdefault(use.node, {})
        owner = use.deployment or OTHERS
        total = uses.setdefault(owner, _Use())
        total.pods += sign
        total.cpu_millis += sign * use.cpu_millis
        total.memory_bytes += sign * use.memory_bytes
        total.disk_bytes += sign * use.disk_bytes
        for resource, count in use.devices:
            total.devices[resource] = total.devices.get(resource, 0) + sign * count
        if not total.pods:
            del uses[owner]
            if not uses:
                del self._uses[use.node]
