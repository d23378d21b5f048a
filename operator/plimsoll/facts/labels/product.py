"""How every vendor's reader turns a product's name into a catalogue entry, or into a problem that says what would help."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.facts.gpus import Gpu, UnknownGpu, Vendor, gpu_named
from plimsoll.facts.labels.device import NodeFacts, Pair, ProblemReason, Reading, problem


@dataclass(frozen=True, slots=True)
class Named:
    """A product, and the labels that name it, so that a pod which selects them lands on no other product."""

    gpu: Gpu
    pins: tuple[Pair, ...] = ()


def named(
    name: str, *, vendor: Vendor, resource: str, pins: tuple[Pair, ...] = (), source: str = ""
) -> Named | Reading:
    """The entry that `name` means; a problem where there is none, or where it is of another vendor than the resource."""
    source = source or "label " + " with ".join(f"{key}={value}" for key, value in pins)
    try:
        gpu = gpu_named(name)
    except UnknownGpu as unknown:
        near = f" (near are {', '.join(unknown.near)})" if unknown.near else ""
        return problem(
            ProblemReason.UNKNOWN_PRODUCT,
            f"{source} names the product {name!r}, which the catalogue of GPUs lacks{near}; a node class that names a "
            "known product, or a new entry of the catalogue, would let the node in",
        )
    if gpu.vendor is not vendor:
        return problem(
            ProblemReason.CONTRADICTORY_LABELS,
            f"{source} names {gpu.name}, which belongs to vendor {gpu.vendor}, but the node offers {resource}",
        )
    return Named(gpu, pins)


def declared(node: NodeFacts, *, vendor: Vendor, resource: str) -> Named | Reading | None:
    """The product that the admin's node class names; None where the node belongs to no class that does."""
    if node.declared_product is None:
        return None
    source = "the admin's node class"
    return named(
        node.declared_product, vendor=vendor, resource=resource, pins=node.declared_pins, source=source
    )


def unnamed(resource: str, label: str, remedy: str) -> Reading:
    """The problem that no label says which product a node's devices are."""
    return problem(
        ProblemReason.MISSING_LABEL,
        f"the node offers {resource} but carries no label {label}; {remedy}, set the label, or declare a node class "
        "that covers the node",
    )
