"""What users of other operators complained about in topology, where a plan alone shows that it is not true here.

Each test is named after the complaint. What groups of pods do afterwards is in `tests/control/rollout/test_complaints.py`, and
what takes a cluster to be seen in `e2e/turns/test_complaints.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.labels import ProblemReason
from plimsoll.facts.observe import observe
from plimsoll.planning.fleet import Request, plan_fleet
from plimsoll.planning.plan import Outcome, Placement, Plan
from plimsoll.planning.planner import plan
from tests.facts.cluster import H100, dra_gpu, node, resource_slice
from tests.planning.asking import LLAMA, deployment, facts, finding, inventory, planned, pool

LARGE = "meta-llama/Llama-3.1-405B-Instruct"
OVER_TWO = {"tensor": 8, "pipeline": 2}
L4 = {
    "nvidia.com/gpu.product": "NVIDIA-L4",
    "nvidia.com/gpu.count": "4",
    "nvidia.com/gpu.memory": "23034",
    "nvidia.com/gpu.compute.major": "8",
    "nvidia.com/gpu.compute.minor": "9",
}
HALF_H100 = {**H100, "nvidia.com/gpu.count": "4"}


def hosts(nodes: int, per_node: int = 8, **others: Any) -> Pool:
    found: Pool = pool(per_node=per_node, nodes=nodes, rdma=True, **others)
    return found


def rack(clique: str, free: dict[int, int]) -> Pool:
    """Trays of four in one NVLink domain, of which some are free."""
    found: Pool = pool(
        "GB200-NVL72",
        4,
        key=f"rack-{clique}",
        fabric=clique,
        free=free,
        labels={"nvidia.com/gpu.product": "NVIDIA-GB200"},
    )
    return found


def planned_on(seen: Inventory) -> Plan:
    asked = deployment(LLAMA, replicas=1)
    return plan(asked, seen, facts(asked), config=OperatorConfig())


@pytest.mark.parametrize(
    ("tensor", "pipeline", "per_node", "pods"), [(8, 2, 8, 2), (4, 4, 4, 4), (2, 8, 8, 2), (4, 4, 8, 2)]
)
def test_there_is_no_way_to_say_that_sixteen_are_two_times_eight(
    tensor: int, pipeline: int, per_node: int, pods: int
) -> None:
    """KServe 4226: the GPUs of a pod were as many as its tensor ranks, so that what is more than a node had no spelling."""
    topology = {"tensor": tensor, "pipeline": pipeline}
    (chosen,) = planned(deployment(LARGE, replicas=1, topology=topology), hosts(8, per_node)).sets
    assert (chosen.layout.tensor, chosen.layout.pipeline) == (tensor, pipeline)
    assert (chosen.pods_per_replica, chosen.resources.devices) == (pods, 16 // pods)


def test_what_a_node_cannot_hold_has_to_be_cut_by_hand() -> None:
    """KubeAI 355: a model over nodes was never delivered. Here nobody has to say more than its name."""
    made = planned(deployment(LARGE, replicas=1), hosts(4))
    (chosen,) = made.sets
    assert (chosen.pods_per_replica, chosen.resources.devices) == (2, 8)
    assert chosen.layout.tensor <= 8, "no tensor rank speaks over the network"
    assert "2 pods of 8 GPUs" in finding(made, "SpansNodes").message


@pytest.mark.parametrize(("nodes", "replicas"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_two_replicas_over_nodes_are_made_where_there_is_room_for_one(nodes: int, replicas: int) -> None:
    """KAITO 2174: each of two took one of two nodes, and both waited for the other's for ever."""
    made = planned(deployment(LARGE, replicas=2, topology=OVER_TWO), hosts(nodes))
    assert (made.replicas, made.replicas_wanted) == (replicas, 0 if replicas == 0 else 2)
    assert sum(one.replicas * one.pods_per_replica for one in made.sets) <= nodes
    if replicas == 1:
        assert made.outcome is Outcome.SHORT
        assert "1 of 2 replicas find GPUs" in finding(made, "NoGPUs").message


def test_two_deployments_over_nodes_each_take_one_of_the_last_two() -> None:
    """KAITO 2174 again: what the first is to get is gone for the second, which is told who has it."""
    fleet = inventory(hosts(2))
    requests = []
    for name, created in (("first", "2026-01-01T00:00:00Z"), ("second", "2026-01-02T00:00:00Z")):
        asked = deployment(LARGE, name=name, created=created, replicas=1, topology=OVER_TWO)
        requests.append(Request(deployment=asked, facts=facts(asked)))
    for ordered in (requests, requests[::-1]):
        made = {one.name: one for one in plan_fleet(ordered, fleet).plans}
        assert {name: one.replicas for name, one in made.items()} == {"first": 1, "second": 0}
        assert made["second"].outcome is Outcome.SHORT


@pytest.mark.parametrize(
    ("free", "placed"),
    [
        ({"a": {0: 17, 4: 1}, "b": {0: 16, 4: 2}}, {"rack-b": 1}),
        ({"a": {0: 17, 4: 1}, "b": {0: 17, 4: 1}}, {}),
        ({"a": {0: 15, 4: 3}, "b": {0: 15, 4: 3}}, {"rack-a": 1, "rack-b": 1}),
        ({"a": {0: 16, 2: 2}, "b": {0: 14, 4: 4}}, {"rack-b": 2}),
    ],
    ids=["one tray is left of it", "one tray of each", "three of each", "only half trays are left of it"],
)
def test_a_replica_is_placed_in_part_into_an_nvlink_clique_that_is_full(
    free: dict[str, dict[int, int]], placed: dict[str, int]
) -> None:
    """NVCF 598: GPUs of two cliques were counted together, and half of a replica got none."""
    racks = [rack(clique, trays) for clique, trays in free.items()]
    made = planned(deployment(LARGE, replicas=2, topology={"tensor": 8}), *racks)
    found: list[Placement] = [place for one in made.sets for place in one.placements]
    assert {place.pool: place.replicas for place in found} == placed
    assert made.replicas == sum(placed.values())
    if made.replicas < 2:
        assert made.outcome is Outcome.SHORT
        assert "all 2 of a replica nodes of one NVLink domain" in finding(made, "NoFreeGPUs").message


def test_ranks_that_share_every_layer_are_placed_without_looking_at_nvlink() -> None:
    """AIBrix 1121 and 1730: tensor ranks stay where NVLink joins them: in a node, or in a clique over nodes."""
    apart = hosts(8, 4)
    in_nodes = planned(deployment(LARGE, replicas=1), apart).sets[0]
    assert in_nodes.layout.tensor <= 4 < in_nodes.layout.gpus
    refused = planned(deployment(LARGE, replicas=1, topology={"tensor": 8}), apart)
    assert refused.outcome is Outcome.DOES_NOT_FIT
    assert "8 tensor ranks are more than the 4 GPUs of a node" in finding(refused, "DoesNotFit").message
    joined = planned(deployment(LARGE, replicas=1, topology={"tensor": 8}), rack("a", {4: 18})).sets[0]
    assert (joined.layout.tensor, joined.pods_per_replica, joined.resources.devices) == (8, 2, 4)


@pytest.mark.parametrize("labels", [HALF_H100, L4, {**H100, "nvidia.com/gpu.compute.major": "8"}])
def test_labels_of_a_node_with_two_products_are_believed(labels: dict[str, str]) -> None:
    """GPU Feature Discovery 27: they describe one of the two kinds, whichever that is now."""
    seen = observe([node("whole"), node("mixed", labels)], [])
    (problem,) = seen.problems
    assert (problem.node, problem.reason) == ("mixed", ProblemReason.MIXED_DEVICES)
    assert [(one.gpu.name, dict(one.free)) for one in seen.pools] == [("H100-SXM-80GB", {8: 1})]


def test_labels_that_flip_from_one_product_to_the_other_change_plans() -> None:
    """GPU Feature Discovery 66: which kind a node of two is said to have changed with each start of the labeller."""
    one, other = (observe([node("whole"), node("mixed", labels)], []) for labels in (HALF_H100, L4))
    assert planned_on(one).to_bytes() == planned_on(other).to_bytes()
    assert planned_on(one).outcome is Outcome.FITS


def test_the_second_product_of_a_node_cannot_be_used_at_all() -> None:
    """k8s-device-plugin 736: by claims each kind is asked for by what it says of itself, and none by a label of the node."""
    both = [
        dra_gpu("gpu-0"),
        dra_gpu("gpu-1", "NVIDIA L4", "23034Mi"),
        dra_gpu("gpu-2", "NVIDIA L4", "23034Mi"),
    ]
    seen = observe([node("mixed", {}, {})], [], [resource_slice(both, on="mixed")])
    assert {one.gpu.name: dict(one.free) for one in seen.pools} == {
        "H100-SXM-80GB": {1: 1},
        "L4-24GB": {2: 1},
    }
    for product, said in (("L4-24GB", "NVIDIA L4"), ("H100-SXM-80GB", "NVIDIA H100 80GB HBM3")):
        asked = deployment("Qwen/Qwen3-0.6B", replicas=1, topology={"gpuProducts": [product]})
        (chosen,) = plan(asked, seen, facts(asked), config=OperatorConfig()).sets
        assert chosen.hardware.gpu == product
        assert f'productName == "{said}"' in (chosen.hardware.claim_selector or "")
        assert chosen.hardware.selector == {}
