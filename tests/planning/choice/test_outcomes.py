"""What is told about how a plan came out is true of it."""

from dataclasses import replace

import pytest

from plimsoll.facts.inventory import InventoryProblem
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import plan
from tests.planning.asking import (
    LLAMA_70B,
    cpu_pool,
    deployment,
    facts,
    finding,
    inventory,
    planned,
    pool,
    reasons,
)

CHAT = {"preset": "chat"}


def test_a_load_beyond_scaling_max_is_no_lack_of_gpus():
    made = planned(deployment(workload=CHAT | {"concurrency": 100_000}, scaling={"min": 1, "max": 2}), pool())
    assert (made.outcome, made.replicas, made.replicas_wanted) == (Outcome.FITS, 2, 2)
    assert finding(made, "LoadAboveMax").field == "scaling.max"
    assert "NoGPUs" not in reasons(made)


@pytest.mark.parametrize(
    ("load", "choice"),
    [
        ({"concurrency": 100_000}, "as much of 100,000 requests in flight as can be carried, "),
        ({"requestsPerSecond": "1000"}, "as much of 1000 requests a second as can be carried, "),
        ({"requestsPerSecond": "1"}, "the least GPU-hours that carries 1 requests a second, among "),
    ],
)
def test_of_a_load_that_is_too_large_it_is_said_that_as_much_as_possible_is_carried(load, choice):
    made = planned(deployment(workload=CHAT | load, scaling={"min": 1, "max": 2}), pool())
    assert made.choice.startswith(choice)
    assert ("%, for the least GPU-hours, among " in made.choice) is ("as much" in choice)


def test_replicas_that_run_on_a_declared_class_already_wait_for_no_node():
    serving = pool(free={0: 1}, held={"team-a/chat": 8}, declared_nodes=3, node_class="big")
    assert "NodeDeclared" not in reasons(planned(deployment(workload=CHAT), serving))
    waiting = planned(deployment(workload=CHAT), replace(serving, held={}))
    assert "1 replica of tp1 on H100-SXM-80GB waits" in finding(waiting, "NodeDeclared").message


def test_a_stopped_deployment_is_not_short_of_gpus_that_others_hold():
    made = planned(deployment(workload=CHAT, replicas=0), pool(free={0: 1}, held={"team-b/other": 8}))
    assert (made.outcome, made.replicas_wanted) == (Outcome.FITS, 0)


def test_gpus_under_hosts_that_are_too_small_are_said_to_be():
    made = planned(deployment(workload=CHAT), pool(host_memory_bytes=2**30))
    assert "no node with H100-SXM-80GB gives more than 1.0 GiB" in finding(made, "NoHostMemory").message


FULL = {"host_disk_bytes": 2**40, "host_free_disk_bytes": 5 * 2**30}


def test_gpus_beside_disks_that_are_full_are_said_to_be_and_a_volume_or_another_pool_cures_it():
    asked = deployment(workload=CHAT)
    made = planned(asked, pool(**FULL))
    told = finding(made, "NoHostDisk")
    assert made.outcome is Outcome.SHORT
    assert "of local disk, and no node with free H100-SXM-80GB has more than 5.0 GiB" in told.message
    assert "storage.weights" in (told.remedy or "")
    volume = deployment(workload=CHAT, storage={"weights": {"claim": {"name": "weights"}}})
    other = pool(key="other", host_disk_bytes=2**40, host_free_disk_bytes=2**39)
    for cured in (planned(volume, pool(**FULL)), planned(asked, pool(**FULL), other)):
        assert (cured.outcome, "NoHostDisk" in reasons(cured)) == (Outcome.FITS, False)
    assert [one.pool for one in cured.sets[0].placements] == ["other"]


def test_disks_that_are_too_small_whatever_is_free_are_said_to_be():
    small = pool(host_disk_bytes=5 * 2**30, host_free_disk_bytes=None, free={0: 2})
    told = finding(planned(deployment(workload=CHAT), small), "NoHostDisk").message
    assert told.endswith("of local disk, and no node with H100-SXM-80GB has more than 5.0 GiB")


@pytest.mark.parametrize(
    "more",
    [
        {"host_disk_bytes": None, "host_free_disk_bytes": None},
        {"held": {"team-a/chat": 8}},
        {"declared_nodes": 1},
    ],
    ids=["not known", "its own pods are there", "a node may be made"],
)
def test_a_full_disk_is_no_reason_where(more):
    assert "NoHostDisk" not in reasons(planned(deployment(workload=CHAT), pool(**{**FULL, **more})))


def test_a_pool_whose_nodes_take_nothing_new_is_said_to_be_so():
    made = planned(deployment(workload=CHAT), pool(free={}, unavailable={"cordoned": 2}))
    told = finding(made, "NoGPUs")
    assert "no node that takes pods (2 cordoned)" in told.message
    assert (told.remedy or "").startswith("kubectl uncordon, topology.gpuProducts")


def test_replicas_that_a_cordoned_node_would_hold_are_helped_by_taking_it_back():
    asked = deployment(workload=CHAT, replicas=9)
    short = planned(asked, pool(free={8: 1}))
    assert finding(short, "NoGPUs").remedy == "more nodes, or fewer replicas"
    cordoned = planned(asked, pool(free={8: 1}, unavailable={"cordoned": 1}))
    assert finding(cordoned, "NoGPUs").remedy == "kubectl uncordon, more nodes, or fewer replicas"


def test_a_share_that_cannot_hold_a_model_is_not_said_to_lack_room_for_a_pool_of_nothing():
    made = planned(deployment(LLAMA_70B, workload=CHAT), pool("L4-24GB", 4, sharing=4))
    assert "fixed pool" not in finding(made, "DoesNotFit").message


@pytest.mark.parametrize("others", [(), (cpu_pool(),)], ids=["no others", "hosts without GPUs"])
def test_nodes_that_could_not_be_read_are_told_where_no_other_has_gpus(others):
    problem = InventoryProblem(node="n1", reason="UnknownProduct", message="nvidia.com/gpu.product is X")
    made = plan(deployment(), inventory(*others, problems=(problem,)), facts(deployment()))
    assert "n1: nvidia.com/gpu.product is X" in finding(made, "NoGPUs").message
