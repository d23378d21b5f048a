import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.gpus import GIB
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Taint
from plimsoll.facts.observe import fleet_of, observe
from plimsoll.facts.shapes import size_class
from tests.facts.cluster import H100, claim, cpu_node, dra_gpu, node, pod, resource_slice

MIXED = {**H100, "nvidia.com/gpu.count": "4"}


def config(*classes, **more):
    return OperatorConfig.model_validate({"nodeClasses": list(classes), **more})


def only(inventory):
    (pool,) = inventory.pools
    return pool


def test_no_nodes_are_an_empty_inventory_and_no_error():
    inventory = observe([], [])
    assert (inventory.pools, inventory.problems, inventory.free_is_assumed) == ((), (), False)


def test_alike_nodes_are_one_pool_whatever_their_labels():
    nodes = [node(f"n{i}", {**H100, "example.com/asset": f"A{i}"}) for i in range(3)]
    pool = only(observe(nodes, []))
    assert dict(pool.free) == {8: 3}
    assert "example.com/asset" not in pool.labels
    assert pool.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"


@pytest.mark.parametrize(
    "other",
    [
        node("n2", {**H100, "topology.kubernetes.io/zone": "b"}),
        node("n2", devices={"nvidia.com/gpu": "4"}),
        node("n2", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]),
        node("n2", {**H100, "nvidia.com/cuda.driver-version.full": "550.54.15"}),
        node("n2", {**H100, "nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"}),
        node("n2", {**H100, "nvidia.com/gpu.memory": "65536"}),
    ],
    ids=["zone", "devices", "taints", "driver", "product", "memory"],
)
def test_what_planning_reads_keeps_nodes_apart(other):
    assert len(observe([node("n1"), other], []).pools) == 2


def test_kubelets_that_report_a_little_more_memory_stay_together():
    odd = node("n2")
    odd["status"]["allocatable"]["memory"] = "2107638000Ki"
    assert len(observe([node("n1"), odd], []).pools) == 1


@pytest.mark.parametrize(
    ("amount", "size"), [(0, None), (-3, None), (1, 1), (31, 31), (63, 62), (191, 184), (2**40 + 5, 2**40)]
)
def test_hosts_are_classed_by_five_binary_digits(amount, size):
    assert size_class(amount) == size


def test_a_selector_divides_a_pool_into_those_that_carry_the_label_and_the_rest():
    nodes = [node(f"n{i}", {**H100, "tier": "gold" if i == 0 else "tin"}) for i in range(3)]
    divided = observe(nodes, [], selectors=[{"tier": "gold"}])
    assert {pool.labels["tier"]: dict(pool.free) for pool in divided.pools} == {"gold": {8: 1}, "tin": {8: 2}}
    (whole,) = observe(nodes, []).pools
    assert whole.key in {pool.key for pool in divided.pools}, "the rest keeps the pool's key"


def test_a_selector_may_name_one_node():
    nodes = [node(f"n{i}") for i in range(3)]
    divided = observe(nodes, [], selectors=[{"kubernetes.io/hostname": "n1"}])
    assert sorted(dict(pool.free)[8] for pool in divided.pools) == [1, 2]


def test_free_is_what_pods_of_any_owner_leave():
    inventory = observe(
        [node("n1"), node("n2")], [pod("a"), pod("b", requests={"nvidia.com/gpu": "4"}), pod("c", on="n9")]
    )
    assert dict(only(inventory).free) == {3: 1, 8: 1}
    assert not inventory.free_is_assumed


def test_free_is_never_negative():
    assert dict(only(observe([node()], [pod(requests={"nvidia.com/gpu": "64"})])).free) == {0: 1}


def test_without_pods_free_is_allocatable_and_said_to_be_assumed():
    inventory = observe([node()])
    assert inventory.free_is_assumed
    assert dict(only(inventory).free) == {8: 1}


def silent(name):
    """One whose kubelet is heard of no more."""
    made = node(name)
    return {**made, "status": {**made["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}}


@pytest.mark.parametrize(
    ("away", "why"),
    [
        (node("n2", unschedulable=True), "cordoned"),
        (node("n2", ready=False), "not ready"),
        (silent("n2"), "unreachable"),
        (node("n2", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]), "deleting"),
        (node("n2", taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]), "deleting"),
        (
            {**node("n2"), "metadata": {**node("n2")["metadata"], "deletionTimestamp": "2026-01-01"}},
            "deleting",
        ),
    ],
)
def test_nodes_that_take_nothing_new_are_counted_but_not_free(away, why):
    pool = only(observe([node("n1"), away], []))
    assert dict(pool.free) == {8: 1}
    assert dict(pool.unavailable) == {why: 1}


def test_a_cordon_is_as_old_as_the_taint_that_kubernetes_answers_it_with():
    taint = {
        "key": "node.kubernetes.io/unschedulable",
        "effect": "NoSchedule",
        "timeAdded": "2026-01-01T00:00:10Z",
    }
    nodes = [
        node("old", unschedulable=True, taints=[taint]),
        node("new", unschedulable=True),
        node("open", taints=[taint]),
    ]
    fleet = fleet_of(nodes, [])
    assert [fleet.cordoned_at(name) for name in ("old", "new", "open", "gone")] == [
        1767225610.0,
        None,
        None,
        None,
    ]


def test_taints_that_tell_a_nodes_state_are_no_taints_to_bear():
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    ]
    pool = only(observe([node(taints=taints)], []))
    assert pool.taints == (Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)


def test_devices_that_our_deployments_hold_are_told_and_can_be_left_out():
    pods = [pod("a", deployment="chat"), pod("b", on="n2", deployment="chat"), pod("c", on="n2")]
    fleet = fleet_of([node("n1"), node("n2")], pods)
    pool = only(fleet.inventory())
    assert dict(pool.held) == {"team/chat": 2}
    assert dict(pool.free) == {6: 1, 7: 1}
    without = only(fleet.inventory(without=["team/chat"]))
    assert dict(without.free) == {7: 1, 8: 1}
    assert dict(without.held) == {}
    assert only(fleet.inventory()) == pool


def test_the_emptiest_host_tells_how_much_a_pod_may_ask_for():
    pods = [
        pod("a", requests={"cpu": "100", "memory": "2000Gi"}),
        pod("b", on="n2", requests={"cpu": "10", "memory": "10Gi"}),
    ]
    pool = only(observe([node("n1"), node("n2")], pods))
    assert (pool.host_free_cpu_millis, pool.host_free_memory_bytes) == (181450, 2000 * GIB)


@pytest.mark.parametrize(
    ("broken", "reason", "says"),
    [
        (node(labels={}), "MissingLabel", "nvidia.com/gpu.product"),
        (node(labels={"nvidia.com/gpu.product": "NVIDIA-H900"}), "UnknownProduct", "NVIDIA-H900"),
        (node(labels=MIXED), "MixedDevices", "nvidia.com/gpu.count=4"),
        (node(devices={}), "ContradictoryLabels", "device plugin"),
        (node(devices={"nvidia.com/gpu": "eight"}), "InvalidValue", "eight"),
    ],
)
def test_a_node_that_cannot_be_understood_is_left_out_and_named(broken, reason, says):
    inventory = observe([broken], [])
    assert inventory.pools == ()
    (problem,) = inventory.problems
    assert (problem.node, problem.reason) == ("n1", reason)
    assert says in problem.message


def test_a_node_without_accelerators_is_a_cpu_pool():
    pool = only(observe([cpu_node("c1"), cpu_node("c2")], []))
    assert (pool.gpu.name, pool.resource, pool.devices_per_node, dict(pool.free)) == (
        "CPU-AVX2",
        "cpu",
        1,
        {1: 2},
    )
    assert (pool.memory_bytes, pool.host_cpus) == (64 * GIB, 16)


def test_a_node_whose_card_nothing_hands_out_is_a_cpu_node_and_named():
    inventory = observe([cpu_node("c1", {"feature.node.kubernetes.io/pci-0302_10de.present": "true"})], [])
    (problem,) = inventory.problems
    assert (problem.node, problem.reason) == ("c1", "NoDriver")
    assert "install the NVIDIA GPU operator" in problem.message
    assert only(inventory).resource == "cpu"


@pytest.mark.parametrize(
    ("label", "product"),
    [
        ("nvidia.com/gpu.product", "NVIDIA-L4"),
        ("cloud.google.com/gke-accelerator", "nvidia-l4"),
        ("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM"),
        ("gpu.intel.com/product", "Max_1550"),
        ("habana.ai/product.name", "HL-325L"),
    ],
)
def test_a_node_whose_labels_promise_devices_that_nothing_offers_is_no_cpu_host(label, product):
    inventory = observe([node("n1", {label: product}, {})])
    (problem,) = inventory.problems
    assert inventory.pools == ()
    assert problem.reason == "ContradictoryLabels"
    assert label in problem.message
    assert "device plugin" in problem.message


def test_zero_nodes_with_a_declared_class_are_a_pool_of_nodes_that_may_be_made():
    declared = {
        "name": "h100s",
        "gpuProduct": "NVIDIA-H100-80GB-HBM3",
        "gpusPerNode": 8,
        "maxNodes": 4,
        "pricePerHour": "20",
        "zones": ["a"],
        "memory": "2Ti",
        "labels": {"pool": "h100s"},
        "taints": [{"key": "nvidia.com/gpu"}],
        "rdma": True,
    }
    inventory = observe([], [], config=config(declared))
    pool = only(inventory)
    assert (pool.gpu.name, pool.devices_per_node, pool.declared_nodes) == ("H100-SXM-80GB", 8, 4)
    assert (dict(pool.free), pool.nodes, pool.zone, pool.price_per_hour) == ({}, 0, "a", "2.5")
    assert (dict(pool.labels), pool.node_class, pool.rdma) == ({"pool": "h100s"}, "h100s", True)
    assert pool.host_free_memory_bytes == 2 * 2**40
    assert inventory.problems == ()


def test_present_nodes_of_a_class_count_against_its_most_and_carry_its_price():
    declared = {
        "name": "h",
        "gpuProduct": "H100",
        "gpusPerNode": 8,
        "maxNodes": 3,
        "labels": {"pool": "h"},
        "pricePerHour": "16",
    }
    nodes = [node("n1", {**H100, "pool": "h"}), node("n2", {**H100, "pool": "h"}, unschedulable=True)]
    pool = only(observe(nodes, [], config=config(declared)))
    assert (dict(pool.free), pool.declared_nodes, pool.price_per_hour) == ({8: 1}, 1, "2")


def test_a_class_names_the_product_of_nodes_that_no_labeller_visits():
    declared = {"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1, "labels": {"pool": "h"}}
    pool = only(observe([node("n1", {"pool": "h"})], [], config=config(declared)))
    assert (pool.gpu.name, pool.declared_nodes) == ("H100-SXM-80GB", 0)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": "x", "gpuProduct": "H900", "gpusPerNode": 8, "maxNodes": 1}, "H900"),
        ({"name": "x", "gpuProduct": "CPU", "gpusPerNode": 8, "maxNodes": 1}, "no GPU"),
        (
            {"name": "x", "gpuProduct": "L4", "gpusPerNode": 8, "maxNodes": 1, "interconnect": "nvlink"},
            "nvlink",
        ),
    ],
)
def test_a_class_that_contradicts_the_catalogue_is_a_problem_of_its_own(wrong, says):
    inventory = observe([node()], [], config=config(wrong))
    assert len(inventory.pools) == 1
    (problem,) = inventory.problems
    assert problem.node == "node class x"
    assert "nodeClasses[x]" in problem.message
    assert says in problem.message


def test_a_class_knows_of_bridges_and_nvlink_domains_that_no_label_shows():
    bridged = {
        "name": "a",
        "gpuProduct": "A100-PCIe-80GB",
        "gpusPerNode": 2,
        "maxNodes": 1,
        "interconnect": "nvlink",
    }
    rack = {"name": "b", "gpuProduct": "GB200", "gpusPerNode": 4, "maxNodes": 18, "nodesPerNvlinkDomain": 9}
    plain = {"name": "c", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1, "interconnect": "pcie"}
    pools = {pool.node_class: pool for pool in observe([], [], config=config(bridged, rack, plain)).pools}
    assert (pools["a"].gpu.link.kind, pools["a"].gpu.link.domain) == ("nvlink", 2)
    assert (pools["b"].gpu.link.domain, pools["b"].fabric) == (36, "class/b")
    assert (pools["c"].gpu.link.kind, pools["c"].gpu.link.domain) == ("pcie", 1)


@pytest.mark.parametrize(
    ("labels", "devices", "price"),
    [
        (H100, {"nvidia.com/gpu": "8"}, "2.49"),
        ({**H100, "nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu": "32"}, "0.6225"),
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/mig-7g.80gb": "8"}, "2.49"),
        ({"nvidia.com/gpu.product": "NVIDIA-L4"}, {"nvidia.com/gpu": "1"}, None),
    ],
    ids=["whole", "a share", "a slice", "unknown"],
)
def test_a_price_is_of_one_schedulable_device_and_unknown_is_not_zero(labels, devices, price):
    prices = {"gpuHour": [{"product": "h100", "perHour": "2.49"}]}
    assert (
        only(observe([node("n1", labels, devices)], [], config=config(prices=prices))).price_per_hour == price
    )


def test_devices_by_claim_are_free_until_a_claim_has_them():
    slices = [resource_slice([dra_gpu("gpu-0"), dra_gpu("gpu-1")])]
    bare = node(devices={})
    pods = [pod(requests={}, deployment="chat")]
    pool = only(observe([bare], pods, slices, claims=[claim("gpu-0")]))
    assert (pool.via_dra, dict(pool.free), pool.devices_per_node) == (True, {1: 1}, 2)
    assert dict(pool.held) == {"team/chat": 1}
    assert dict(only(observe([bare], pods, slices)).free) == {2: 1}


def test_a_slice_may_come_before_or_after_its_node_and_go_again():
    bare, item = node(devices={}), resource_slice([dra_gpu("gpu-0")])
    early, late = fleet_of([bare], [], [item]), fleet_of([bare], [])
    assert late.inventory().problems
    late.add_slice(item)
    assert early.inventory() == late.inventory()
    late.remove_slice(item["metadata"]["name"])
    assert late.inventory() == observe([bare], [])


def test_reserved_devices_are_taken_from_the_fullest_node_that_has_room():
    fleet = fleet_of([node("n1"), node("n2")], [pod("a", requests={"nvidia.com/gpu": "4"})])
    key = only(fleet.inventory()).key
    fleet.promise("team/chat", [Reservation(deployment="team/chat", pool=key, devices=4, pods=2)])
    assert dict(only(fleet.inventory()).free) == {0: 1, 4: 1}
    assert dict(only(fleet.inventory(without=["team/chat"])).free) == {4: 1, 8: 1}
    assert dict(only(fleet.inventory(own="team/chat")).free) == {4: 1, 8: 1}
    assert dict(only(fleet.inventory(own="team/other")).free) == {0: 1, 4: 1}
    fleet.promise("team/chat", [Reservation(deployment="team/chat", pool=key, devices=8, pods=99)])
    assert dict(only(fleet.inventory()).free) == {0: 1, 4: 1}
    fleet.promise("team/chat", [Reservation(deployment="team/chat", pool="gone", devices=8, pods=1)])
    assert dict(only(fleet.inventory()).free) == {4: 1, 8: 1}


def test_one_product_under_two_names_is_two_pools_because_no_selector_meets_both():
    nodes = [
        node("n1", {"nvidia.com/gpu.product": "NVIDIA-L4"}),
        node("n2", {"cloud.google.com/gke-accelerator": "nvidia-l4"}),
        node("n3", {"nvidia.com/gpu.product": "NVIDIA-L4", "cloud.google.com/gke-accelerator": "nvidia-l4"}),
    ]
    inventory = observe(nodes, [])
    assert sorted((sorted(pool.pins), pool.nodes) for pool in inventory.pools) == [
        (["cloud.google.com/gke-accelerator"], 1),
        (["nvidia.com/gpu.product"], 2),
    ]
    for pool in inventory.pools:
        assert pool.pins.items() <= pool.labels.items()


def test_rdma_and_architecture_keep_nodes_apart_and_a_class_says_what_labels_do_not():
    rdma = {**H100, "feature.node.kubernetes.io/rdma.available": "true"}
    pools = observe(
        [node("n1"), node("n2", rdma), node("n3", {**H100, "kubernetes.io/arch": "arm64"})], []
    ).pools
    assert sorted((pool.arch, pool.rdma) for pool in pools if pool.arch) == [("arm64", None)]
    assert sorted(str(pool.rdma) for pool in pools) == ["None", "None", "True"]
    said = {
        "name": "h",
        "gpuProduct": "H100",
        "gpusPerNode": 8,
        "maxNodes": 1,
        "labels": {"pool": "h"},
        "rdma": False,
    }
    assert only(observe([node("n1", {**rdma, "pool": "h"})], [], config=config(said))).rdma is False


def test_nodes_of_other_systems_are_no_cpu_pool():
    inventory = observe([cpu_node("w", {"kubernetes.io/os": "windows"})], [])
    assert (inventory.pools, inventory.problems) == ((), ())


def test_zero_nodes_and_a_declared_class_are_pinned_by_the_classs_labels():
    declared = {"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1, "labels": {"pool": "h"}}
    assert dict(only(observe([], [], config=config(declared))).pins) == {"pool": "h"}
    unlabelled = observe([node("n1", {"pool": "h"})], [], config=config(declared))
    assert dict(only(unlabelled).pins) == {"pool": "h"}
