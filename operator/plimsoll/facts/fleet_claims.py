"""Devices that pods get by claims, written out for a fleet file: a ResourceSlice for each node, and a claim for devices that are not free.

Only what `labels.dra` reads is written, as planning does not use a driver's other attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.facts.gpus import Gpu, Vendor
from plimsoll.facts.labels import dra

Object = dict[str, Any]
DRIVER_OF: Mapping[Vendor, str] = {vendor: driver for driver, vendor in dra.DRIVERS.items()}


def slice_on(node: str, gpu: Gpu, count: int, profile: str | None = None) -> Object:
    """The slice by which a driver offers these devices; `profile` is the MIG profile they are cut to."""
    driver = DRIVER_OF[gpu.vendor]
    name = _product(gpu)
    attributes = {"model" if gpu.vendor in {Vendor.INTEL, Vendor.HABANA} else "productName": {"string": name}}
    if gpu.vendor is Vendor.NVIDIA:
        attributes["type"] = {"string": "mig" if profile else "gpu"}
    if profile:
        attributes["profile"] = {"string": profile}
    kind = "mig" if profile else "gpu"
    return {
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"{kind}-{number}", "attributes": attributes, "capacity": {}}
                for number in range(count)
            ],
        },
    }


def _product(gpu: Gpu) -> str:
    """The product's name as the driver spells it. Labels have a dash in place of each space, beside dashes that belong to the name."""
    name = (gpu.aliases or (gpu.name,))[0]
    if gpu.vendor is not Vendor.NVIDIA:
        return name
    return name.replace("-", " ", 1 if "SXM" in name or "PCIE" in name else -1)


def claim_of(offered: Mapping[str, Any], count: int) -> Object:
    """A claim of somebody else that has been given the first devices of a slice."""
    spec = offered["spec"]
    node = spec["nodeName"]
    results = [
        {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
        for device in spec["devices"][:count]
    ]
    return {
        "metadata": {"name": f"others-on-{node}", "namespace": "default"},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": f"others-on-{node}"}],
        },
    }
