import pytest

from plimsoll.api.problems import SpecError
from plimsoll.facts.gpus import all_gpus
from plimsoll.facts.snapshot import read_snapshot, take_snapshot, write_snapshot

HEAD = "apiVersion: plimsoll.dev/v1alpha1\nkind: Fleet\npools:\n"


def pools(*lines: str):
    snapshot = read_snapshot(HEAD + "".join(f"- {{{line}}}\n" for line in lines))
    inventory = snapshot.inventory()
    assert inventory.problems == ()
    assert not inventory.free_is_assumed
    return inventory.pools


def test_five_lines_are_a_fleet():
    (h100, l40s) = pools(
        "name: big, gpuProduct: H100, gpusPerNode: 8, nodes: 4",
        "name: small, gpuProduct: NVIDIA-L40S, gpusPerNode: 4, nodes: 2",
    )
    assert (h100.gpu.name, dict(h100.free), h100.labels["plimsoll.dev/pool"]) == (
        "H100-SXM-80GB",
        {8: 4},
        "big",
    )
    assert (l40s.gpu.name, dict(l40s.free)) == ("L40S-48GB", {4: 2})
    assert h100.declared_nodes == l40s.declared_nodes == 0


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.name)
def test_every_product_of_the_catalogue_can_be_in_a_fleet(gpu):
    (pool,) = pools(f"name: p, gpuProduct: {gpu.name}, gpusPerNode: 2, nodes: 1")
    assert (pool.gpu, dict(pool.free), pool.memory_bytes) == (gpu, {2: 1}, gpu.memory_bytes)


def test_free_gpus_are_given_node_by_node():
    (pool,) = pools("name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 4, freeGpus: [8, 8, 2, 0]")
    assert dict(pool.free) == {0: 1, 2: 1, 8: 2}


def test_nodes_that_can_be_made_have_a_price_and_a_zone():
    (pool,) = pools(
        'name: p, gpuProduct: L4, gpusPerNode: 4, nodes: 0, maxNodes: 5, pricePerHour: "2.8", zone: a'
    )
    assert (pool.declared_nodes, pool.price_per_hour, pool.zone, pool.nodes) == (5, "0.7", "a", 0)


def test_slices_shares_cpus_domains_and_taints_have_their_words():
    by_name = {
        pool.node_class: pool
        for pool in pools(
            "name: cut, gpuProduct: A100 80GB, gpusPerNode: 16, mig: 3g.40gb, nodes: 1",
            "name: shared, gpuProduct: L4, gpusPerNode: 1, sharedBy: 4, nodes: 1, freeGpus: [3]",
            "name: cpus, cpu: 32, memory: 128Gi, nodes: 2",
            "name: tainted, gpuProduct: T4, gpusPerNode: 1, nodes: 1, taints: [{key: k, value: v}], labels: {a: b}",
        )
    }
    assert (by_name["cut"].partition, by_name["cut"].resource) == ("3g.40gb", "nvidia.com/mig-3g.40gb")
    assert (by_name["shared"].sharing, dict(by_name["shared"].free)) == (4, {3: 1})
    assert (by_name["cpus"].resource, by_name["cpus"].host_cpus) == ("cpu", 32)
    assert by_name["tainted"].taints[0].key == "k"
    assert by_name["tainted"].labels["a"] == "b"


def test_racks_are_one_pool_an_nvlink_domain():
    racks = pools("name: r, gpuProduct: GB200, gpusPerNode: 4, nodes: 6, nodesPerNvlinkDomain: 3")
    assert [
        (pool.fabric, dict(pool.free), pool.gpu.link.domain) for pool in sorted(racks, key=lambda p: p.fabric)
    ] == [
        ("r.0", {4: 3}, 12),
        ("r.1", {4: 3}, 12),
    ]


def test_a_fleet_can_be_written_as_a_snapshot():
    read = read_snapshot(
        HEAD + "- {name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 2, maxNodes: 4, freeGpus: [3, 8]}\n"
    )
    again = read_snapshot(write_snapshot(take_snapshot(read.nodes, read.pods, config=read.config)))
    assert again.inventory() == read.inventory()


@pytest.mark.parametrize(
    ("line", "field", "says"),
    [
        ("name: p, nodes: 1", "pools[0].cpu", "cpu and memory"),
        ("name: p, gpuProduct: H100, nodes: 1", "pools[0].gpusPerNode", "together"),
        ("name: p, gpuProduct: H900, gpusPerNode: 8, nodes: 1", "pools[0].gpuProduct", "H900"),
        ("name: p, gpuProduct: A100, gpusPerNode: 8, nodes: 1", "pools[0].gpuProduct", "A100-SXM-80GB"),
        ("name: p, gpuProduct: CPU, gpusPerNode: 8, nodes: 1", "pools[0].gpuProduct", "CPU nodes"),
        ("name: p, gpuProduct: H100, gpusPerNode: 8", "pools[0].nodes", "must be set"),
        ("name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 1.5", "pools[0].nodes", "whole number"),
        (
            "name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 2, freeGpus: [8]",
            "pools[0].freeGpus",
            "one number a node",
        ),
        ("name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 1, freeGpus: [9]", "pools[0].freeGpus", "has 8"),
        ("name: p, gpuProduct: L4, gpusPerNode: 8, nodes: 1, mig: 1g.5gb", "pools[0].mig", "no such MIG"),
        ("name: p, gpuProduct: MI300X, gpusPerNode: 8, nodes: 1, sharedBy: 2", "pools[0].sharedBy", "NVIDIA"),
        (
            "name: p, gpuProduct: L4, gpusPerNode: 8, nodes: 1, sharedBy: 2, maxNodes: 3",
            "pools[0].maxNodes",
            "whole GPUs",
        ),
        (
            "name: p, gpuProduct: L4, gpusPerNode: 8, nodes: 1, sharedBy: 2, via: dra",
            "pools[0].via",
            "shared",
        ),
        ("name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 1, colour: red", "pools[0].colour", ""),
        ("name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 1, rdma: 1", "pools[0].rdma", "true or false"),
    ],
)
def test_a_pool_that_is_wrong_names_the_field_and_what_would_be_right(line, field, says):
    with pytest.raises(SpecError) as raised:
        pools(line)
    (problem,) = raised.value.problems
    assert problem.field == field
    assert says in problem.message


def test_a_key_written_twice_is_refused():
    with pytest.raises(SpecError, match="twice"):
        pools("name: p, gpuProduct: H100, gpusPerNode: 8, nodes: 1, nodes: 2")


@pytest.mark.parametrize("product", ["H100", "MI300X", "Max-1550", "Gaudi3"])
def test_gpus_may_be_had_by_claims(product):
    (pool,) = pools(
        f"name: p, gpuProduct: {product}, gpusPerNode: 8, nodes: 3, freeGpus: [8, 3, 0], via: dra"
    )
    assert pool.via_dra
    assert (dict(pool.free), pool.devices_per_node) == ({0: 1, 3: 1, 8: 1}, 8)
    (plugged,) = pools(f"name: p, gpuProduct: {product}, gpusPerNode: 8, nodes: 3, freeGpus: [8, 3, 0]")
    assert (pool.gpu, pool.memory_bytes) == (plugged.gpu, plugged.memory_bytes)


def test_slices_of_gpus_may_be_had_by_claims():
    (pool,) = pools("name: p, gpuProduct: A100 80GB, gpusPerNode: 7, mig: 1g.10gb, nodes: 1, via: dra")
    assert (pool.partition, pool.resource, dict(pool.free)) == ("1g.10gb", "mig.nvidia.com", {7: 1})
