"""Nodes that an autoscaler makes for a class of the admin's: until when they are to come, and from when they are there."""

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.observe import observe
from tests.facts.cluster import node


def config(*classes):
    return OperatorConfig.model_validate({"nodeClasses": list(classes)})


@pytest.mark.parametrize(
    ("labels", "devices", "ready", "declared"),
    [
        ({}, {}, False, 1),
        ({}, {}, True, 1),
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, {}, True, 1),
        ({}, {"nvidia.com/gpu": "0"}, True, 1),
        ({}, {"nvidia.com/gpu": "8"}, False, 0),
        ({}, {"nvidia.com/gpu": "7"}, True, 0),
        ({"nvidia.com/gpu.product": "NVIDIA-H900"}, {"nvidia.com/gpu": "8"}, True, 0),
    ],
    ids=[
        "has only registered",
        "is ready, without a device plugin",
        "bears its labels, without a device plugin",
        "has a plugin that counts none yet",
        "offers devices and is not ready",
        "lacks a device",
        "offers devices that cannot be understood",
    ],
)
def test_a_node_of_a_class_is_still_to_be_made_until_it_offers_devices(labels, devices, ready, declared):
    """Whoever waits for it would otherwise be told, just before it is there, that none is coming."""
    one = {"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1, "labels": {"pool": "h"}}
    made = observe([node("n1", {**labels, "pool": "h"}, devices, ready=ready)], [], config=config(one))
    assert sum(pool.declared_nodes for pool in made.pools) == declared


def test_a_node_of_a_class_without_gpus_is_there_at_once():
    one = {"name": "c", "maxNodes": 1, "cpu": "16", "memory": "64Gi", "labels": {"pool": "c"}}
    made = observe([node("n1", {"pool": "c"}, {}, ready=False)], [], config=config(one))
    assert sum(pool.declared_nodes for pool in made.pools) == 0
