"""A Kubernetes node as the small record an inventory is kept from, and the parts in which nodes can be alike.

Everything planning tells nodes apart by is in `Shape`, so nodes of one shape form one pool. Labels are no part of it:
thousands of nodes differ in labels nobody selects by. They are kept beside it, and `fleet` divides pools by those that a
node selector names.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.api.quantity import parse_bytes, parse_millicores
from plimsoll.facts.inventory import Taint
from plimsoll.facts.labels import Device, NodeFacts, Problem, ProblemReason, read_node

ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_LEAVING_TAINTS = frozenset(
    {"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All that planning can tell nodes apart by, for one kind of device on them. Equal shapes have equal digests."""

    device: Device
    zone: str | None
    taints: tuple[Taint, ...]
    host_memory_bytes: int | None
    host_cpus: int | None
    node_class: str | None
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        device = self.device
        identity = (
            (device.gpu.name, device.memory_bytes, device.resource, device.count, device.sharing),
            (device.partition, device.via_dra, device.driver, device.fabric, device.notes),
            (self.zone, tuple((taint.key, taint.value, taint.effect) for taint in self.taints)),
            (self.host_memory_bytes, self.host_cpus, self.node_class),
        )
        object.__setattr__(self, "digest", hashlib.sha256(repr(identity).encode()).hexdigest())

    def pool_key(self, selected: Sequence[tuple[str, str]] = ()) -> str:
        """Readable first, then as much of a digest as tells two pools apart; fits a label's value."""
        digest = self.digest
        if selected:
            digest = hashlib.sha256((digest + repr(sorted(selected))).encode()).hexdigest()
        head = f"{self.device.gpu.name}-x{self.device.count}" + (f"-{self.zone}" if self.zone else "")
        plain = re.sub(r"[^a-z0-9.]+", "-", head.lower())[:52].strip("-.")
        return f"{plain}-{digest[:10]}"


@dataclass(slots=True)
class Node:
    """One node, parsed. `away` says why nothing new may go there; empty where it may."""

    name: str
    shapes: tuple[Shape, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]
    away: str
    cpu_millis: int
    memory_bytes: int
    problems: tuple[Problem, ...]

    @property
    def labels(self) -> dict[str, str]:
        return dict(zip(self.keys, self.values, strict=True))


class NodeParser:
    """Parses nodes and shares what they have in common, so that ten thousand alike cost little more than their names."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}
        self._keys: dict[tuple[str, ...], tuple[str, ...]] = {}

    def parse(self, node: Mapping[str, Any], extra_devices: Sequence[Device] = ()) -> Node:
        metadata, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
        labels: dict[str, str] = metadata.get("labels") or {}
        allocatable = status.get("allocatable") or {}
        devices, problems = _devices(labels, allocatable)
        memory, cpu = parse_bytes(allocatable.get("memory", 0)), parse_millicores(allocatable.get("cpu", 0))
        taints, leaving = _taints(spec.get("taints") or ())
        zone = next((labels[key] for key in ZONE if labels.get(key)), None)
        shapes = tuple(
            self._share(
                Shape(
                    device=device,
                    zone=zone,
                    taints=taints,
                    host_memory_bytes=size_class(memory),
                    host_cpus=size_class(cpu // 1000),
                    node_class=None,
                )
            )
            for device in (*devices, *extra_devices)
        )
        names = tuple(sorted(labels))
        return Node(
            name=metadata.get("name", ""),
            shapes=shapes,
            keys=self._keys.setdefault(names, names),
            values=tuple(sys.intern(str(labels[name])) for name in names),
            away=leaving or _away(metadata, spec, status),
            cpu_millis=cpu,
            memory_bytes=memory,
            problems=problems,
        )

    def _share(self, shape: Shape) -> Shape:
        return self._shapes.setdefault(shape.digest, shape)


def size_class(amount: int) -> int | None:
    """The amount cut to five binary digits, so that hosts of one make fall together; None where it is not known."""
    if amount <= 0:
        return None
    step = max(1, 1 << (amount.bit_length() - 5))
    return amount // step * step


def _devices(
    labels: Mapping[str, str], allocatable: Mapping[str, Any]
) -> tuple[tuple[Device, ...], tuple[Problem, ...]]:
    extended: dict[str, int] = {}
    for name, value in allocatable.items():
        if "/" in name:
            try:
                extended[name] = parse_bytes(value)
            except ValueError as error:
                bad = Problem(ProblemReason.INVALID_VALUE, f"status.allocatable[{name}]: {error}")
                return (), (bad,)
    reading = read_node(NodeFacts(labels=labels, allocatable=extended))
    return reading.devices, reading.problems


def _taints(taints: Sequence[Mapping[str, Any]]) -> tuple[tuple[Taint, ...], str]:
    """Taints that pods may bear, apart from those by which Kubernetes and autoscalers mark a node's state."""
    kept, leaving = [], ""
    for taint in taints:
        key = taint.get("key", "")
        if key in _LEAVING_TAINTS:
            leaving = "deleting"
        elif not key.startswith("node.kubernetes.io/"):
            kept.append(Taint(key=key, value=taint.get("value") or "", effect=taint.get("effect", "")))
    return tuple(sorted(kept, key=lambda taint: (taint.key, taint.value, taint.effect))), leaving


def _away(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if metadata.get("deletionTimestamp"):
        return "deleting"
    if spec.get("unschedulable"):
        return "cordoned"
    conditions = status.get("conditions")
    ready = next((item.get("status") for item in conditions or () if item.get("type") == "Ready"), None)
    return "not ready" if conditions is not None and ready != "True" else ""
