"""Nodes that an autoscaler makes for a class of the admin's: until when they are to come, and from when they are there."""

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Taint
from plimsoll.facts.observe import fleet_of, observe
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


TO_BE_MADE = config(
    {"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 2, "labels": {"pool": "h"}}
)


def promised(pods, *nodes):
    """What another is shown of the class's pool beside what was promised to one that asks for half a node each."""
    fleet = fleet_of(nodes, [], config=TO_BE_MADE)
    (key,) = (pool.key for pool in fleet.inventory().pools)
    fleet.promise("a/first", [Reservation(deployment="a/first", pool=key, devices=4, pods=pods)])
    (mine,), (others,) = fleet.inventory(own="a/first").pools, fleet.inventory(own="b/next").pools
    assert dict(mine.coming) == {8: mine.declared_nodes}
    return others


@pytest.mark.parametrize(
    ("pods", "coming"), [(1, {4: 1, 8: 1}), (2, {0: 1, 8: 1}), (3, {0: 1, 4: 1}), (9, {0: 2})]
)
def test_a_node_that_is_to_be_made_is_promised_once(pods, coming):
    """It is no less to be made: whoever was promised it waits for it."""
    others = promised(pods)
    assert (dict(others.free), dict(others.coming), others.declared_nodes) == ({}, coming, 2)


def test_what_is_there_is_promised_before_what_is_to_be_made():
    others = promised(3, node("n1", {"pool": "h"}))
    assert (dict(others.free), dict(others.coming)) == ({0: 1}, {4: 1})


@pytest.mark.parametrize(
    ("key", "effect", "there"),
    [
        ("node.cilium.io/agent-not-ready", "NoExecute", {"not ready": 1}),
        ("ebs.csi.aws.com/agent-not-ready", "NoSchedule", {"not ready": 1}),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", {"not ready": 1}),
        ("startup-taint.cluster-autoscaler.kubernetes.io/driver", "NoSchedule", {"not ready": 1}),
        ("node.cilium.io/agent-not-ready", "PreferNoSchedule", {}),
        ("team/dedicated", "NoSchedule", {}),
    ],
)
def test_a_node_whose_taint_says_that_it_lacks_something_yet_has_come_and_is_not_ready(key, effect, there):
    (pool,) = observe([node("n1", taints=[{"key": key, "effect": effect}])], []).pools
    assert (dict(pool.unavailable), dict(pool.free)) == (there, {} if there else {8: 1})
    assert pool.taints == (() if there else (Taint(key=key, value="", effect=effect),))


def test_of_a_node_that_is_gone_a_taint_of_its_start_says_nothing():
    gone = node("n1", taints=[{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}])
    gone["status"]["conditions"][0]["status"] = "Unknown"
    (pool,) = observe([gone], []).pools
    assert dict(pool.unavailable) == {"unreachable": 1}
