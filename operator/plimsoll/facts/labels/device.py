"""What a reader of node labels returns: the kinds of devices that a node offers to pods, or why it cannot be used.

There is a reader for each vendor (`nvidia`, `amd`, ...), all of the same form. A reader sees only a node's labels and what the node can
allocate, and never guesses: where it cannot tell the product, it returns a problem that says which label would name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.facts.gpus import Gpu, Vendor

Pair = tuple[str, str]
"""A label's key and value."""


class ProblemReason(StrEnum):
    UNKNOWN_PRODUCT = "UnknownProduct"
    MISSING_LABEL = "MissingLabel"
    CONTRADICTORY_LABELS = "ContradictoryLabels"
    MIXED_DEVICES = "MixedDevices"
    INVALID_VALUE = "InvalidValue"
    NO_DRIVER = "NoDriver"
    """The node counts all the same, as one without accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The part of a node that vendors' readers look at."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    """Extended resources, in devices."""
    declared_pins: tuple[Pair, ...] = ()
    """The labels of the admin's node class that this node belongs to."""
    declared_product: str | None = None
    """The product that this node class names, for nodes that no labeller labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One kind of schedulable device on a node, of which there are `count`."""

    gpu: Gpu
    memory_bytes: int
    resource: str
    count: int
    sharing: int = 1
    partition: str | None = None
    card: str | None = None
    """Catalogue name of the card that a partition is a part of."""
    via_dra: bool = False
    driver: str | None = None
    fabric: str | None = None
    pins: tuple[Pair, ...] = ()
    """Labels that a pod must select to land on these devices and no others that share the resource's name."""
    claim_selector: str | None = None
    """The same for devices that pods get by claim: an expression over device attributes."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Why devices of a node cannot be used."""

    reason: ProblemReason
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader found on a node."""

    devices: tuple[Device, ...] = ()
    problems: tuple[Problem, ...] = ()
    plugged: frozenset[Vendor] = frozenset()
    """Vendors whose cards a device plugin hands out on the node, whether the labels can be understood or not."""

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            self.devices + other.devices, self.problems + other.problems, self.plugged | other.plugged
        )


def problem(reason: ProblemReason, message: str) -> Reading:
    """A reading with nothing but a problem."""
    return Reading(problems=(Problem(reason, message),))


def whole_number(labels: Mapping[str, str], key: str) -> int | None:
    """The label's value where it is a positive whole number; None where it is absent or anything else."""
    value = labels.get(key, "")
    return int(value) if value.isascii() and value.isdigit() and int(value) > 0 else None
