"""The shape of a node: everything in which nodes may differ for planning. Nodes of one shape form one pool.

Labels are no part of a shape, as thousands of nodes differ in labels that nobody selects by. They are kept beside it, and `fleet` divides
pools by those that a node selector names. `nodes` reads nodes into these values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from plimsoll.facts.inventory import Taint
from plimsoll.facts.labels import Device, Problem, Reading
from plimsoll.facts.labels.dra import Identity

Pair = tuple[str, str]
"""A label's key and value."""
KEPT_DIGITS = 5
"""Binary digits to which sizes of hosts are rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """All of a node's shape but its devices."""

    zone: str | None = None
    arch: str | None = None
    rdma: bool | None = None
    """As a label says; None is unknown."""
    taints: tuple[Taint, ...] = ()
    host_memory_bytes: int | None = None
    host_cpus: int | None = None
    node_class: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of device in its place. Equal shapes have equal digests."""

    device: Device
    place: Place
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        device, place = self.device, self.place
        identity = (
            (device.gpu.name, device.memory_bytes, device.resource, device.count, device.sharing),
            (str(device.gpu.link.kind), device.gpu.link.domain, device.partition, device.via_dra),
            (
                device.driver,
                device.fabric,
                device.notes,
                place.zone,
                place.host_memory_bytes,
                place.host_cpus,
            ),
            (device.pins, device.claim_selector, place.arch, place.rdma),
            (place.node_class, *((taint.key, taint.value, taint.effect) for taint in place.taints)),
        )
        object.__setattr__(self, "digest", hashlib.sha256(repr(identity).encode()).hexdigest())

    def pool_key(self, selected: Sequence[Pair] = ()) -> str:
        """The key of a pool: readable words, then enough of a digest to tell pools apart. It can be the value of a label."""
        digest = self.digest
        if selected:
            digest = hashlib.sha256((digest + repr(sorted(selected))).encode()).hexdigest()
        zone = f"-{self.place.zone}" if self.place.zone else ""
        head = f"{self.device.gpu.name}-x{self.device.count}{zone}"
        plain = re.sub(r"[^a-z0-9.]+", "-", head.lower())[:52].strip("-.")
        return f"{plain}-{digest[:10]}"


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of device on one node. Devices that pods get by claims have identities; those of device plugins are only counted."""

    shape: Shape
    identities: tuple[tuple[Identity, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node as it was read. `away` says why no new pods may go there; it is empty where they may."""

    name: str
    place: Place
    reading: Reading
    """What its labels say. ResourceSlices are not in it, as they come and go while the node stays the same."""
    offers: tuple[Offer, ...]
    problems: tuple[Problem, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]
    away: str
    cpu_millis: int
    memory_bytes: int
    disk_bytes: int | None
    """Local disk that pods may ask for; None where the node does not say."""
    cordoned_at: float | None = None
    """When it was cordoned, in seconds since the epoch; None where it is not, or the time is not known."""

    @property
    def pairs(self) -> set[Pair]:
        """Its labels."""
        return set(zip(self.keys, self.values, strict=True))


def size_class(amount: int) -> int | None:
    """The amount rounded down to a few binary digits, so that hosts of one model have equal sizes; None where it is not known."""
    if amount <= 0:
        return None
    step = 1 << max(0, amount.bit_length() - KEPT_DIGITS)
    return amount // step * step
