from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.facts.inventory import Taint
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.placing.placement import refusal, room, room_when_empty, shape_of, slots, spread, take
from tests.planning.asking import cpu_pool, inventory, pool

TAINT = Taint(key="dedicated", value="llm", effect="NoSchedule")
OPEN: dict[str, Any] = {"selector": {}, "tolerations": (), "products": None, "on_cpu": False}


def grouped(*pools, **others):
    return slots(inventory(*pools).pools, **{**OPEN, **others})


@pytest.mark.parametrize(
    ("one", "others", "words"),
    [
        (pool(), {}, None),
        (pool(), {"on_cpu": True}, "asks for CPUs"),
        (cpu_pool(), {}, "only where topology.cpu asks"),
        (cpu_pool(), {"on_cpu": True}, None),
        (pool(), {"products": frozenset({"L40S-48GB"})}, "not among topology.gpuProducts"),
        (pool(), {"products": frozenset({"H100-SXM-80GB"})}, None),
        (pool(), {"selector": {"disk": "fast"}}, "have no such label"),
        (pool(labels={"disk": "slow"}), {"selector": {"disk": "fast"}}, "the nodes have slow"),
        (pool(labels={"disk": "fast"}), {"selector": {"disk": "fast"}}, None),
        (pool(taints=(TAINT,)), {}, "add it to topology.tolerations"),
        (pool(taints=(TAINT,)), {"tolerations": (Toleration(key="dedicated", value="llm"),)}, None),
        (
            pool(taints=(TAINT,)),
            {"tolerations": (Toleration(key="dedicated", value="x"),)},
            "add it to topology.tolerations",
        ),
        (pool(taints=(TAINT,)), {"tolerations": (Toleration(operator="Exists"),)}, None),
        (pool(taints=(Taint(key="a", value="b", effect="PreferNoSchedule"),)), {}, None),
        (pool(taints=(Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)), {}, None),
    ],
)
def test_a_pool_may_be_used_or_the_reason_says_what_would_let_it(one, others, words):
    found = refusal(one, **{**OPEN, **others})
    if words is None:
        assert found is None
    else:
        assert found is not None
        assert words in found


def test_pools_that_differ_only_in_place_are_one_slot():
    both = grouped(pool(key="a", zone="a"), pool(key="b", zone="b"), pool("L40S-48GB"))
    assert [(slot.hardware.gpu, len(slot.pools)) for slot in both] == [("H100-SXM-80GB", 2), ("L40S-48GB", 1)]


@pytest.mark.parametrize(
    "other",
    [
        {"price_per_hour": "3"},
        {"sharing": 4},
        {"partition": "3g.40gb"},
        {"memory_bytes": 1},
        {"labels": {"nvidia.com/gpu.product": "other"}},
    ],
)
def test_what_the_ledger_the_price_or_a_selector_sees_divides_slots(other):
    assert len(grouped(pool(key="a"), pool(key="b", **other))) == 2


@pytest.mark.parametrize(
    ("layout", "pools", "shape"),
    [
        (Layout(tensor=4), [pool()], Shape(1, 4)),
        (Layout(tensor=8, pipeline=2), [pool()], Shape(2, 8)),
        (Layout(tensor=4, pipeline=3), [pool()], Shape(3, 4)),
        (Layout(tensor=2, pipeline=3), [pool(per_node=4)], Shape(3, 2)),
        (Layout(tensor=16), [pool()], None),
        (Layout(tensor=16), [pool("GB200-NVL72", per_node=4, nodes=18, fabric="c")], Shape(4, 4)),
    ],
)
def test_a_replica_is_cut_into_pods_that_keep_tensor_ranks_together(layout, pools, shape):
    assert shape_of(layout, grouped(*pools)[0].site()) == shape


@pytest.mark.parametrize(
    ("one", "shape", "layout", "free", "empty"),
    [
        (pool(free={8: 2}), Shape(1, 4), Layout(tensor=4), 4, 4),
        (pool(free={3: 2, 8: 1}), Shape(1, 4), Layout(tensor=4), 2, 6),
        (pool(free={3: 3}), Shape(1, 4), Layout(tensor=4), 0, 6),
        (pool(free={8: 3}), Shape(2, 8), Layout(tensor=8, pipeline=2), 1, 1),
        (pool(free={0: 2}, declared_nodes=3), Shape(1, 8), Layout(tensor=8), 3, 5),
        (pool(free={0: 2}, held={"me": 8}), Shape(1, 4), Layout(tensor=4), 2, 4),
        (pool(free={4: 4}), Shape(2, 4), Layout(tensor=8), 0, 0),
        (pool(free={0: 2}, declared_nodes=3, promised={4: 1, 0: 1}), Shape(1, 4), Layout(tensor=4), 3, 10),
    ],
)
def test_room_counts_free_nodes_nodes_to_be_made_and_what_the_owner_holds(one, shape, layout, free, empty):
    assert room(one, shape, layout, "me") == free
    assert room_when_empty(one, shape, layout) == empty


@given(
    st.dictionaries(st.integers(0, 8), st.integers(1, 5), max_size=5), st.integers(1, 8), st.integers(0, 6)
)
def test_taking_room_that_is_there_never_loses_or_makes_devices(free, devices, wanted):
    one, shape = pool(free=free), Shape(1, devices)
    count = min(wanted, room(one, shape, Layout(tensor=devices)))
    left = take(free, shape, count)
    assert sum(size * nodes for size, nodes in left.items()) == one.free_devices - count * devices
    assert sum(left.values()) == one.nodes
    assert all(size >= 0 and nodes > 0 for size, nodes in left.items())


def test_the_fullest_node_that_has_room_is_taken_first():
    assert take({8: 1, 4: 1, 2: 1}, Shape(1, 3), 1) == {8: 1, 2: 1, 1: 1}
    with pytest.raises(ValueError, match="no node has room"):
        take({2: 1}, Shape(1, 3), 1)


def test_replicas_are_expected_where_most_room_is():
    pools = [pool(key="a", nodes=1), pool(key="b", nodes=3)]
    found = spread(pools, Shape(1, 8), Layout(tensor=8), 4)
    assert [(place.pool, place.replicas) for place in found] == [("b", 3), ("a", 1)]
