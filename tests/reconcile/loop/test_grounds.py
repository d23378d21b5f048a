"""The room that the fleet has for further replicas: where, of which kind, and how soon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.facts.inventory import Taint
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.plan import Hardware
from plimsoll.reconcile.loop.grounds import Grounds
from tests.planning.asking import inventory, pool
from tests.reconcile.loop.test_given_up import EDITS, edited

H100 = Hardware(gpu="H100-SXM-80GB", vendor="nvidia", resource="nvidia.com/gpu", memory_bytes=80 * 2**30)


def test_room_is_counted_where_the_set_may_run() -> None:
    here = Grounds(inventory(pool(nodes=2), pool("L4", nodes=9)), OperatorConfig())
    ground = here.of(H100, Shape(1, 4), Layout())
    assert (ground.replicas, ground.provision_s, ground.declared) == (4, 0.0, False)
    other = here.of(H100, Shape(1, 8), Layout())
    assert (other.replicas, other.key == ground.key) == (2, False)
    barred = Hardware(
        gpu=H100.gpu, vendor="nvidia", resource=H100.resource, memory_bytes=1, selector={"team": "a"}
    )
    assert here.of(barred, Shape(1, 4), Layout()).replicas == 0


@pytest.mark.parametrize(
    ("there", "declared", "provision_s"),
    [
        ({"free": {8: 1}, "declared_nodes": 1, "node_class": "big"}, True, 0.0),
        ({"declared_nodes": 1, "node_class": "big"}, True, 900.0),
        ({"declared_nodes": 1, "promised": {0: 1}, "node_class": "big"}, True, 900.0),
        ({"unavailable": {"not ready": 1}, "node_class": "big"}, True, 900.0),
        ({"unavailable": {"unreachable": 1}, "node_class": "big"}, False, None),
        ({"unavailable": {"cordoned": 1}, "node_class": "big"}, False, None),
        ({"unavailable": {"not ready": 1}}, False, None),
    ],
    ids=[
        "could be made beside one that is there",
        "could be made",
        "is promised, to it or to others",
        "has come and is not ready",
        "has died",
        "is cordoned",
        "is of no class and not ready",
    ],
)
def test_a_node_is_waited_for_that(there: dict[str, Any], declared: bool, provision_s: float | None) -> None:
    big = {"name": "big", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1, "provisionSeconds": 900}
    config = OperatorConfig.model_validate({"nodeClasses": [big]})
    ground = Grounds(inventory(pool(**{"free": {}, **there})), config).of(H100, Shape(1, 8), Layout())
    assert (ground.declared, ground.provision_s) == (declared, provision_s)


@pytest.mark.parametrize(
    ("nodes", "whole", "halves"),
    [(1, 8, 0), (3, 24, 16)],
    ids=["one is no room for two", "the odd one is no room for two"],
)
def test_replicas_of_one_node_and_of_two_find_each_their_own_room(
    nodes: int, whole: float, halves: float
) -> None:
    """Whichever is asked about last."""
    (one,) = edited(EDITS["other labels"]).before.sets
    alone = replace(one, shape=Shape(1, 8), layout=Layout(tensor=8), gpus=8.0)
    wide = replace(one, shape=Shape(2, 8), layout=Layout(tensor=8, pipeline=2), gpus=16.0)
    for asked in ((alone, wide), (wide, alone)):
        here = Grounds(inventory(pool(nodes=nodes)), OperatorConfig())
        found = {each.shape.pods: here.for_set(each) for each in asked}
        free = here.free()
        assert (free[found[1].key], free[found[2].key]) == (whole, halves)


def test_grounds_say_which_pools_they_are_made_up_of() -> None:
    (one,) = edited(EDITS["other labels"]).before.sets
    west = pool(key="west")
    east = replace(west, key="east", labels={**west.labels, "side": "east"})
    here = Grounds(inventory(east, west), OperatorConfig())
    bound = replace(one, hardware=replace(one.hardware, selector={**one.hardware.selector, "side": "east"}))
    keys = [here.for_set(each).key for each in (one, bound)]
    assert [here.parts()[key] for key in keys] == [{"east", "west"}, {"east"}]


def test_room_on_tainted_nodes_is_for_those_who_bear_the_taint() -> None:
    barred = pool(nodes=2, taints=(Taint(key="team", value="other", effect="NoSchedule"),))
    here = Grounds(inventory(barred), OperatorConfig())
    assert here.of(H100, Shape(1, 8), Layout()).replicas == 0
    bears = (Toleration(key="team", operator="Exists"),)
    assert here.of(H100, Shape(1, 8), Layout(), bears).replicas == 2
