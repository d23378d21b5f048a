"""Order never matters, and keeping a fleet current gives what building it anew would."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation, less
from plimsoll.facts.observe import fleet_of, observe
from plimsoll.facts.snapshot import read_snapshot, take_snapshot, write_snapshot
from tests.facts.cluster import H100, claim, cpu_node, dra_gpu, node, pod, resource_slice

CONFIG = OperatorConfig.model_validate(
    {
        "nodeClasses": [
            {"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 4, "labels": {"class": "h"}},
            {"name": "b", "gpuProduct": "B200", "gpusPerNode": 8, "maxNodes": 2},
        ]
    }
)
NAMES = [f"n{i}" for i in range(5)]
SELECTORS = [{"tier": "gold"}]

variants = st.sampled_from(
    [
        node,
        lambda name: node(name, {**H100, "class": "h", "tier": "gold"}),
        lambda name: node(name, {**H100, "tier": "tin", "only": name}),
        lambda name: node(name, {**H100, "topology.kubernetes.io/zone": "b"}, unschedulable=True),
        lambda name: node(
            name, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/mig-3g.20gb": "4"}
        ),
        lambda name: node(name, {"nvidia.com/gpu.product": "NVIDIA-H900"}),
        lambda name: node(name, devices={}),
        lambda name: node(name, {"class": "h"}, {}, ready=False),
        cpu_node,
    ]
)
nodes = st.builds(lambda make, name: make(name), variants, st.sampled_from(NAMES))
pods = st.builds(
    lambda name, on, count, phase, owner: pod(
        name, on, {"nvidia.com/gpu": str(count), "cpu": "2"}, phase=phase, deployment=owner
    ),
    st.sampled_from([f"p{i}" for i in range(6)]),
    st.sampled_from([*NAMES, "elsewhere", None]),
    st.integers(0, 12),
    st.sampled_from(["Running", "Pending", "Succeeded"]),
    st.sampled_from([None, "chat", "code"]),
)
slices = st.builds(
    lambda on, count, generation: resource_slice(
        [dra_gpu(f"gpu-{i}") for i in range(count)], on=on, generation=generation, name=f"slice-{on}"
    ),
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.integers(1, 2),
)
claims = st.builds(
    lambda name, on, device, user: claim(f"gpu-{device}", on=on, name=name, pods=(user,)),
    st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from(NAMES),
    st.integers(0, 2),
    st.sampled_from(["p0", "p1"]),
)
kinds = {"node": nodes, "pod": pods, "slice": slices, "claim": claims}
additions = st.one_of(*(st.tuples(st.just(kind), made) for kind, made in kinds.items()))
removals = st.one_of(
    st.tuples(st.just("no node"), st.sampled_from(NAMES)),
    st.tuples(st.just("no pod"), st.sampled_from([f"team/p{i}" for i in range(6)])),
    st.tuples(st.just("no slice"), st.sampled_from([f"slice-{name}" for name in NAMES])),
    st.tuples(st.just("no claim"), st.sampled_from(["team/c1", "team/c2"])),
)


def key_of(kind, item):
    metadata = item["metadata"]
    return metadata["name"] if kind in {"node", "slice"} else f"{metadata['namespace']}/{metadata['name']}"


@given(st.lists(additions | removals, max_size=30), st.data())
def test_a_fleet_kept_current_equals_one_built_from_what_is_left(steps, data):
    fleet = fleet_of([], [], config=CONFIG)
    left: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    for kind, item in steps:
        if kind.startswith("no "):
            left[kind[3:]].pop(item, None)
        else:
            left[kind][key_of(kind, item)] = item
        verb, _, what = kind.rpartition(" ")
        getattr(fleet, f"{'remove' if verb else 'add'}_{what}")(item)
        if data.draw(st.booleans(), label="someone looks"):
            fleet.inventory()
    fleet.select(SELECTORS)
    parts = {kind: list(items.values()) for kind, items in left.items()}
    fresh = fleet_of(
        parts["node"], parts["pod"], parts["slice"], CONFIG, claims=parts["claim"], selectors=SELECTORS
    )
    assert fleet.inventory() == fresh.inventory()
    for without in (["team/chat"], ["team/chat", "team/code"]):
        assert fleet.inventory(without=without) == fresh.inventory(without=without)
    assert fleet.inventory() == fresh.inventory()


@given(st.lists(nodes, max_size=8), st.lists(pods, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_objects_changes_nothing(some_nodes, some_pods, chance):
    unique_nodes = list({key_of("node", item): item for item in some_nodes}.values())
    unique_pods = list({key_of("pod", item): item for item in some_pods}.values())
    before = observe(unique_nodes, unique_pods, config=CONFIG, selectors=SELECTORS)
    chance.shuffle(unique_nodes)
    chance.shuffle(unique_pods)
    after = observe(unique_nodes, unique_pods, config=CONFIG, selectors=SELECTORS)
    assert after == before
    assert repr(after) == repr(before)


@given(st.lists(nodes, max_size=8), st.lists(pods, max_size=8))
def test_free_devices_lie_between_none_and_all(some_nodes, some_pods):
    for pool in observe(some_nodes, some_pods, config=CONFIG).pools:
        assert all(0 <= size <= pool.devices_per_node and count > 0 for size, count in pool.free.items())
        assert sum(pool.free.values()) == pool.nodes


@given(st.lists(nodes, max_size=8), st.lists(pods, max_size=8), pods)
def test_one_more_pod_never_frees_a_device(some_nodes, some_pods, another):
    some_pods = [item for item in some_pods if key_of("pod", item) != key_of("pod", another)]
    before = {pool.key: pool.free_devices for pool in observe(some_nodes, some_pods).pools}
    after = {pool.key: pool.free_devices for pool in observe(some_nodes, [*some_pods, another]).pools}
    assert before.keys() == after.keys()
    assert all(after[key] <= before[key] for key in before)


def test_an_object_seen_twice_changes_nothing_and_costs_no_new_value():
    fleet = fleet_of([node()], [pod()])
    before = fleet.inventory()
    fleet.add_node(node())
    fleet.add_pod(pod())
    assert fleet.inventory() is before


def test_pool_keys_fit_a_label_and_say_what_they_are():
    long = {**H100, "topology.kubernetes.io/zone": "a-very-long-zone-name-of-a-very-long-region-name-x1"}
    (pool,) = observe([node(labels=long)], []).pools
    assert len(pool.key) <= 63
    assert pool.key.startswith("h100-sxm-80gb-x8-a-very-long")


@given(
    st.lists(nodes, max_size=6, unique_by=lambda item: item["metadata"]["name"]),
    st.lists(pods, max_size=6, unique_by=lambda item: item["metadata"]["name"]),
    st.lists(slices, max_size=3, unique_by=lambda item: item["metadata"]["name"]),
    st.lists(claims, max_size=3, unique_by=lambda item: item["metadata"]["name"]),
    st.sampled_from(["yaml", "json"]),
)
def test_a_snapshot_of_any_cluster_gives_that_clusters_inventory(some_nodes, some_pods, parts, asked, form):
    text = write_snapshot(
        take_snapshot(some_nodes, some_pods, slices=parts, claims=asked, config=CONFIG), form
    )
    live = observe(some_nodes, some_pods, parts, CONFIG, claims=asked, selectors=SELECTORS)
    assert read_snapshot(text).inventory(selectors=SELECTORS) == live
    assert write_snapshot(read_snapshot(text), form) == text


@given(
    st.dictionaries(st.integers(0, 8), st.integers(1, 5), max_size=5),
    st.integers(1, 10),
    st.integers(0, 30),
)
def test_a_reservation_moves_nodes_down_and_takes_no_more_than_it_names(free, devices, many):
    (pool,) = observe([node()], []).pools
    pool = replace(pool, free=free)
    after = less(pool, [Reservation(deployment="a/b", pool=pool.key, devices=devices, pods=many)])
    assert after.nodes == pool.nodes
    assert all(size >= 0 and count > 0 for size, count in after.free.items())
    taken = pool.free_devices - after.free_devices
    assert taken % devices == 0
    assert taken <= devices * many


def test_a_change_makes_anew_only_the_pools_it_touches():
    fleet = fleet_of([node("n1"), node("n2", {**H100, "topology.kubernetes.io/zone": "b"}), cpu_node()], [])
    before = {pool.key: pool for pool in fleet.inventory().pools}
    fleet.add_pod(pod(on="n2"))
    after = {pool.key: pool for pool in fleet.inventory().pools}
    assert before.keys() == after.keys()
    assert [key for key in before if after[key] is not before[key]] == [
        key for key in before if before[key].zone == "b"
    ]


# In an interpreter of its own: whatever else runs in this one (a server's thread of a test before) would be counted too.
HELD_BY_A_FLEET = """
import tracemalloc
from fleets import mixed_fleet
from plimsoll.facts.observe import fleet_of
made = mixed_fleet(600, most_shapes=20)
fleet_of(made.nodes, made.pods).inventory()
tracemalloc.start()
fleet = fleet_of(made.nodes, made.pods)
inventory = fleet.inventory()
print(tracemalloc.get_traced_memory()[0] / len(made.nodes))
"""


def test_ten_thousand_nodes_fit_thirty_megabytes():
    own = {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", HELD_BY_A_FLEET], env=own, capture_output=True, text=True, check=True
    )
    assert float(told.stdout) < 3000


@given(st.lists(nodes, max_size=8), st.lists(pods, max_size=8))
def test_a_question_about_one_more_selector_leaves_the_fleet_as_it_was(some_nodes, some_pods):
    fleet = fleet_of(some_nodes, some_pods, config=CONFIG)
    before = fleet.inventory()
    with fleet.divided(SELECTORS[0]):
        within = fleet.inventory()
    assert fleet.inventory() == before
    assert within == fleet_of(some_nodes, some_pods, config=CONFIG, selectors=SELECTORS).inventory()
