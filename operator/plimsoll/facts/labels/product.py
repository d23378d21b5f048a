"""The one way every vendor's reader turns a product's name into a catalogue entry, or into a problem that helps."""

from __future__ import annotations

from plimsoll.facts.gpus import Gpu, UnknownGpu, Vendor, gpu_named
from plimsoll.facts.labels.device import ProblemReason, Reading, problem

DECLARED = "the admin's node class"


def named(name: str, *, source: str, vendor: Vendor, resource: str) -> Gpu | Reading:
    """The entry `name` means; a problem where there is none, or where it is not by the vendor of the resource."""
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
    return gpu


def unnamed(resource: str, label: str, remedy: str) -> Reading:
    return problem(
        ProblemReason.MISSING_LABEL,
        f"the node offers {resource} but carries no label {label}; {remedy}, set the label, or declare a node class "
        "that covers the node",
    )
