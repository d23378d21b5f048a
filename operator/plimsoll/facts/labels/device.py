"""What a reader of node labels answers: kinds of devices a node offers to pods, or why it cannot be used.

One reader a vendor (`nvidia`, `amd`, ...), all of the same form; a reader sees a node's labels and what the node can
allocate, nothing else, and never guesses: a product it cannot name is a problem that says which label would name it.
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
    """Of a node that counts all the same, as one without accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The part of a node that vendors' readers look at."""

    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    """Extended resources, in devices."""
    declared_pins: tuple[Pair, ...] = ()
    """The labels of that node class."""
    declared_product: str | None = None
    """The product an admin's node class gives to this node, for nodes that no labeller visits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One kind of schedulable device on a node; all of `count` are alike."""

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
    """The same for devices by claim: an expression over their attributes."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    reason: ProblemReason
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    devices: tuple[Device, ...] = ()
    problems: tuple[Problem, ...] = ()
    plugged: frozenset[Vendor] = frozenset()
    """Vendors whose cards a device plugin hands out, whether its node's labels can be read or not."""

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            self.devices + other.devices, self.problems + other.problems, self.plugged | other.plugged
        )


def problem(reason: ProblemReason, message: str) -> Reading:
    return Reading(problems=(Problem(reason, message),))


def whole_number(labels: Mapping[str, str], key: str) -> int | None:
    """The label's value where it is a positive whole number; None where it is absent or anything else."""
    value = labels.get(key, "")
    return int(value) if value.isascii() and value.isdigit() and int(value) > 0 else None
