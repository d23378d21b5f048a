"""Reads Kubernetes nodes, as the API gives them, into the small records from which an inventory is kept.

Records of nodes share what they have in common (place, devices, label keys), so that ten thousand like nodes take little more memory than
their names. `labels` knows what labels mean, `node_classes` what the admin says of nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from plimsoll.api.config import NodeClass
from plimsoll.facts.amounts import millicores, whole
from plimsoll.facts.inventory import Taint
from plimsoll.facts.labels import (
    DEVICE_LABELS,
    Device,
    NodeFacts,
    Problem,
    ProblemReason,
    Reading,
    amd,
    cards,
    cpu,
    dra,
    gaudi,
    intel,
    nvidia,
    read_node,
)
from plimsoll.facts.node_classes import BadNodeClass, class_of, linked
from plimsoll.facts.pods import DISK
from plimsoll.facts.shapes import Node, Offer, Place, Shape, size_class

ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
ARCH = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
OS = "kubernetes.io/os"
RDMA = "feature.node.kubernetes.io/rdma.available"
_LEAVING_TAINTS = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"})
CORDONED = "node.kubernetes.io/unschedulable"
_STATE_TAINTS = ("node.kubernetes.io/", "DeletionCandidateOfClusterAutoscaler")
_STARTING = ("not-ready", "uninitialized", "unregistered")
"""Endings of taints that are taken off once a node is ready, such as agent-not-ready of any agent."""
_START_UP = "startup-taint."
"""Prefix of taints that tell a cluster autoscaler that they will be taken off."""
_KEEPS_OUT = frozenset({"NoSchedule", "NoExecute"})
_PROMISES = (
    (nvidia.PRODUCT, nvidia.RESOURCE),
    (nvidia.GKE_PRODUCT, nvidia.RESOURCE),
    (amd.PRODUCT, amd.RESOURCE),
    (intel.PRODUCT, " or ".join(intel.RESOURCES)),
    (gaudi.PRODUCT, gaudi.RESOURCE),
)
"""Labels that name a product, and the resource that its device plugin offers."""
_MOST_READINGS = 4096
"""How many distinct readings are kept for sharing. A label that differs on every node must not make as many of them as there are nodes."""

T = TypeVar("T")


class NodeParser:
    """Parses nodes one by one and remembers what they share."""

    def __init__(self, classes: Sequence[NodeClass] = ()) -> None:
        self._classes = {one.name: one for one in classes}
        self._readings: dict[tuple[object, ...], Reading] = {}
        self._shapes: dict[str, Shape] = {}
        self._places: dict[Place, Place] = {}
        self._keys: dict[tuple[str, ...], tuple[str, ...]] = {}

    def parse(self, node: Mapping[str, Any], slices: Sequence[dra.Slice] = ()) -> Node:
        metadata, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
        labels: dict[str, str] = {key: str(value) for key, value in (metadata.get("labels") or {}).items()}
        one = class_of(labels, tuple(self._classes.values()))
        memory, cores, disk, reading = self._read(labels, status.get("allocatable") or {}, one)
        taints, told = _taints(spec.get("taints") or ())
        place = Place(
            zone=next((labels[key] for key in ZONE if labels.get(key)), None),
            arch=next((labels[key] for key in ARCH if labels.get(key)), None),
            rdma=True if labels.get(RDMA) == "true" else None,
            taints=taints,
            host_memory_bytes=size_class(memory),
            host_cpus=size_class(cores // 1000),
            node_class=one.name if one else None,
        )
        keys = tuple(sorted(labels))
        parsed = Node(
            name=metadata.get("name", ""),
            place=_shared(self._places, place, place),
            reading=reading,
            offers=(),
            problems=(),
            keys=_shared(self._keys, keys, keys),
            values=tuple(sys.intern(labels[key]) for key in keys),
            away=_away(metadata, spec, status, told),
            cpu_millis=cores,
            memory_bytes=memory,
            disk_bytes=disk,
            cordoned_at=_cordoned_at(spec),
        )
        return self.with_slices(parsed, slices)

    def with_slices(self, node: Node, slices: Sequence[dra.Slice]) -> Node:
        """The node with what these ResourceSlices add to its labels' devices."""
        found, problems = _devices(node, slices, self._classes.get(node.place.node_class or ""))
        offers = tuple(Offer(self._shape(kind.device, node.place), kind.identities) for kind in found)
        return replace(node, offers=offers, problems=problems)

    def _shape(self, device: Device, place: Place) -> Shape:
        shape = Shape(device, place)
        return _shared(self._shapes, shape.digest, shape)

    def _read(
        self, labels: Mapping[str, str], allocatable: Mapping[str, Any], one: NodeClass | None
    ) -> tuple[int, int, int | None, Reading]:
        """Memory, millicores, local disk, and what the labels say of the devices."""
        try:
            memory = whole(allocatable.get("memory", 0))
            cores = millicores(allocatable.get("cpu", 0))
            disk = whole(allocatable[DISK]) if DISK in allocatable else None
            extended = {name: whole(value) for name, value in allocatable.items() if "/" in name}
        except ValueError as error:
            bad = Problem(ProblemReason.INVALID_VALUE, f"status.allocatable: {error}")
            return 0, 0, None, Reading(problems=(bad,))
        product = one.gpu_product if one else None
        telling = tuple(sorted(item for item in labels.items() if item[0].startswith(DEVICE_LABELS)))
        pins = tuple(sorted(one.labels.items())) if one else ()
        key = (telling, tuple(sorted(extended.items())), product, pins)
        if key not in self._readings:
            facts = NodeFacts(
                labels=dict(telling), allocatable=extended, declared_product=product, declared_pins=pins
            )
            _shared(self._readings, key, read_node(facts))
        return memory, cores, disk, self._readings[key]


def _shared(known: dict[Any, T], key: object, value: T) -> T:
    """The value that was first seen under a key. The table of values is emptied when it is full."""
    if len(known) >= _MOST_READINGS and key not in known:
        known.clear()
    return known.setdefault(key, value)


def _devices(
    node: Node, slices: Sequence[dra.Slice], one: NodeClass | None
) -> tuple[list[dra.Claimable], tuple[Problem, ...]]:
    by_claim, problems = dra.read(slices) if slices else ((), ())
    problems += node.reading.problems
    found = [dra.Claimable(device, ()) for device in node.reading.devices]
    labels = dict(zip(node.keys, node.values, strict=True))
    # A card that both a device plugin and a driver for claims hand out is one card, so only the plugin's count is used. Where the labels do
    # not say what the plugin's cards are, none of them counts, as it is not known either which of them pods hold.
    fabric = labels.get(nvidia.CLIQUE)
    found += (
        dra.with_fabric(kind, fabric)
        for kind in by_claim
        if kind.device.gpu.vendor not in node.reading.plugged
    )
    if not found and not problems:
        device, problems = _host(labels, node.memory_bytes)
        found = [dra.Claimable(device, ())] if device else []
    try:
        return [dra.Claimable(linked(kind.device, one), kind.identities) for kind in found], problems
    except BadNodeClass as error:
        return [], (*problems, Problem(ProblemReason.CONTRADICTORY_LABELS, str(error)))


def _host(labels: dict[str, str], memory: int) -> tuple[Device | None, tuple[Problem, ...]]:
    """The device of a host without accelerators. Where labels name accelerators that nothing hands out it is a problem and no CPU node."""
    for label, resource in _PROMISES:
        if labels.get(label):
            message = (
                f"label {label} is {labels[label]}, but the node offers no {resource} and no ResourceSlice: the "
                "device plugin does not run there, or all its devices are unhealthy, or a driver gives them by claims (DRA), which needs "
                "Kubernetes 1.34"
            )
            return None, (Problem(ProblemReason.CONTRADICTORY_LABELS, message),)
    if labels.get(OS, "linux") != "linux":
        return None, ()
    return cpu.host(labels, size_class(memory)), cards.unused(labels)


def _taints(taints: Sequence[Mapping[str, Any]]) -> tuple[tuple[Taint, ...], str]:
    """The taints that pods must tolerate; and the node's state, as told by the taints by which Kubernetes and autoscalers mark it."""
    kept, state = [], ""
    for taint in taints:
        key = taint.get("key", "")
        if key in _LEAVING_TAINTS:
            state = "deleting"
        elif key.startswith(_STATE_TAINTS):
            continue
        elif _starts(key) and taint.get("effect") in _KEEPS_OUT:
            state = state or "not ready"
        else:
            kept.append(Taint(key=key, value=taint.get("value") or "", effect=taint.get("effect", "")))
    return tuple(sorted(kept, key=lambda taint: (taint.key, taint.value, taint.effect))), state


def _starts(key: str) -> bool:
    """Whether a taint is one that is taken off once the node is ready."""
    return key.startswith(_START_UP) or key.rpartition("/")[2].lower().endswith(_STARTING)


def _away(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any], told: str) -> str:
    """Why nothing new may go to a node; empty where it may. `told` is the state that taints say."""
    if told == "deleting" or metadata.get("deletionTimestamp"):
        return "deleting"
    if spec.get("unschedulable"):
        return "cordoned"
    conditions = status.get("conditions")
    ready = next((item.get("status") for item in conditions or () if item.get("type") == "Ready"), None)
    if conditions is None or ready == "True":
        return told
    # The kubelet of a new node says itself that it is not ready; from a node that is gone nothing is heard, so that Ready is Unknown.
    return "unreachable" if ready == "Unknown" else "not ready"


def _cordoned_at(spec: Mapping[str, Any]) -> float | None:
    """When a node was cordoned, by the taint that Kubernetes' node controller then adds; None where it was not, or the taint is not there."""
    if not spec.get("unschedulable"):
        return None
    added = (taint.get("timeAdded") for taint in spec.get("taints") or () if taint.get("key") == CORDONED)
    text = next(filter(None, added), None)
    return None if text is None else datetime.fromisoformat(text).timestamp()
