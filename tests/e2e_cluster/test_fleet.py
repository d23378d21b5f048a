"""What a simulated fleet shows: the labels that discovery writes, and to the planner no more and no less than its file says."""

from pathlib import Path

import pytest

from cluster.fleet import Fleet, fleet_of, read_fleet, ready_fleets
from plimsoll.api.problems import SpecError
from plimsoll.facts.fleet import Fleet as Observed
from plimsoll.facts.labels import nvidia
from plimsoll.facts.observe import fleet_of as observe
from plimsoll.facts.snapshot import read_snapshot

HABIT = "e2e.plimsoll.dev/"


def fleet(**pool: object) -> Fleet:
    whole = {"name": "p", "nodes": 1, **pool}
    return fleet_of("test", {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Fleet", "pools": [whole]})


def labels(**pool: object) -> dict[str, str]:
    (node,) = fleet(**pool).nodes
    found: dict[str, str] = node["metadata"]["labels"]
    return found


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (
            "H100-SXM-80GB",
            {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.family": "hopper",
                "nvidia.com/gpu.compute.major": "9",
                "nvidia.com/gpu.compute.minor": "0",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/mig.capable": "true",
                "nvidia.com/mig.strategy": "single",
                "nvidia.com/cuda.driver-version.full": "580.95.05",
            },
        ),
        ("T4-16GB", {"nvidia.com/gpu.memory": "15360", "nvidia.com/mig.capable": "false"}),
        ("L40S-48GB", {"nvidia.com/gpu.family": "ada-lovelace"}),
        (
            "MI300X",
            {
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                "amd.com/gpu.vram": "192G",
                "amd.com/gpu.device-id": "74a1",
                "amd.com/gpu.compute-memory-partition": "spx_nps1",
                "beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "8",
            },
        ),
        (
            "Max-1550",
            {
                "gpu.intel.com/product": "Max_1550",
                "gpu.intel.com/family": "Max_Series",
                "gpu.intel.com/device.count": "8",
                "gpu.intel.com/device-id.0380-0bd5.present": "true",
            },
        ),
        ("Gaudi3", {"feature.node.kubernetes.io/pci-1200_1da3_1060.present": "true"}),
    ],
)
def test_nodes_carry_the_labels_of_their_vendors_discovery(product: str, expected: dict[str, str]) -> None:
    found = labels(gpuProduct=product, gpusPerNode=8)
    assert {key: found.get(key) for key in expected} == expected


def test_a_shared_gpu_is_marked_in_its_product_and_counts_shares() -> None:
    (node,) = fleet(gpuProduct="T4-16GB", gpusPerNode=2, sharedBy=4).nodes
    found = node["metadata"]["labels"]
    assert found[nvidia.PRODUCT] == "Tesla-T4-SHARED"
    assert (found[nvidia.COUNT], found[nvidia.REPLICAS]) == ("2", "4")
    assert node["status"]["allocatable"][nvidia.RESOURCE] == "8"


def test_a_cut_gpu_has_labels_for_its_slices() -> None:
    found = labels(gpuProduct="A100-SXM-80GB", gpusPerNode=7, mig="1g.10gb")
    assert found["nvidia.com/mig.strategy"] == "mixed"
    assert found["nvidia.com/mig-1g.10gb.count"] == "7"
    assert found["nvidia.com/mig-1g.10gb.product"] == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"


def test_devices_that_are_claimed_carry_what_their_driver_publishes() -> None:
    (offered,) = fleet(gpuProduct="H100-SXM-80GB", gpusPerNode=2, via="dra").slices
    first, second = offered["spec"]["devices"]
    assert first["attributes"]["productName"] == {"string": "NVIDIA H100 80GB HBM3"}
    assert first["attributes"]["cudaComputeCapability"] == {"version": "9.0.0"}
    assert first["attributes"]["driverVersion"] == {"version": "580.95.5"}
    assert first["attributes"]["uuid"] != second["attributes"]["uuid"]
    assert first["capacity"]["memory"]["value"].endswith("Mi")


def test_ranges_of_habits_are_drawn_by_node_and_seed() -> None:
    def pulls(seed: int) -> list[str]:
        pool = {"name": "p", "nodes": 3, "cpu": "8", "memory": "8Gi", "labels": {f"{HABIT}pull": "5s-20s"}}
        document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Fleet", "pools": [pool]}
        return [one[f"{HABIT}pull"] for one in fleet_of("test", document, seed=seed).habits.values()]

    drawn = pulls(0)
    assert drawn == pulls(0) != pulls(1)
    assert len(set(drawn)) == 3
    assert all(5000 <= int(one.removesuffix("ms")) <= 20000 for one in drawn)


def test_a_nodes_own_labels_go_before_those_of_discovery() -> None:
    found = labels(
        gpuProduct="H100-SXM-80GB", gpusPerNode=8, labels={"nvidia.com/gpu.machine": "Real", "team": "a"}
    )
    assert (found["nvidia.com/gpu.machine"], found["team"]) == ("Real", "a")


def test_nodes_of_one_domain_share_a_clique() -> None:
    nodes = fleet(gpuProduct="GB200-NVL72", gpusPerNode=4, nodes=4, nodesPerNvlinkDomain=2).nodes
    cliques = [node["metadata"]["labels"][nvidia.CLIQUE] for node in nodes]
    assert cliques[0] == cliques[1] != cliques[2] == cliques[3]


@pytest.mark.parametrize("name", ready_fleets())
def test_the_planner_sees_of_a_ready_fleet_what_its_file_says(name: str) -> None:
    simulated = read_fleet(name)
    pods = [running(pod) for pod in simulated.pods]
    seen = shapes(observe(ready(simulated), pods, simulated.slices, claims=allocated(simulated)))
    assert seen == shapes(read_snapshot(ready_fleets()[name].read_text()).fleet())


def ready(simulated: Fleet) -> list[dict[str, object]]:
    conditions = [{"type": "Ready", "status": "True"}]
    return [{**node, "status": {**node["status"], "conditions": conditions}} for node in simulated.nodes]


def running(pod: dict[str, object]) -> dict[str, object]:
    return {**pod, "status": {"phase": "Running"}}


def allocated(simulated: Fleet) -> list[dict[str, object]]:
    """Claims of others as the scheduler would fill them."""
    slices = {one["spec"]["nodeName"]: one["spec"] for one in simulated.slices}
    pods = {pod["metadata"]["name"]: pod for pod in simulated.pods}
    found = []
    for claim in simulated.claims:
        (request,) = claim["spec"]["devices"]["requests"]
        name = claim["metadata"]["name"]
        offered = slices[pods[name]["spec"]["nodeSelector"]["kubernetes.io/hostname"]]
        devices = offered["devices"][: request["exactly"]["count"]]
        results = [
            {"driver": offered["driver"], "pool": offered["pool"]["name"], "device": device["name"]}
            for device in devices
        ]
        status = {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": name}],
        }
        found.append({**claim, "status": status})
    return found


def shapes(observed: Observed) -> list[tuple[object, ...]]:
    inventory = observed.inventory()
    assert inventory.problems == ()
    assert not any(pool.notes or pool.unavailable for pool in inventory.pools)
    return sorted(
        (
            pool.gpu.name,
            pool.resource,
            pool.sharing,
            str(pool.partition),
            str(pool.zone),
            sorted(pool.free.items()),
        )
        for pool in inventory.pools
    )


def test_pods_of_others_take_what_is_not_free() -> None:
    (pod,) = fleet(gpuProduct="MI300X", gpusPerNode=8, nodes=2, freeGpus=[8, 3]).pods
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"amd.com/gpu": "5"}
    assert pod["spec"]["nodeName"] == "p-1"


def test_nodes_have_names_and_addresses_of_their_own() -> None:
    nodes = fleet(gpuProduct="L4-24GB", gpusPerNode=1, nodes=700).nodes
    assert len({node["metadata"]["name"] for node in nodes}) == 700
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 700


def test_a_fleet_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(LookupError, match="no fleet is called h1000, and it is no file; ready are a100-mig"):
        read_fleet("h1000")


def test_a_fleet_file_of_ones_own_is_named_after_itself(tmp_path: Path) -> None:
    file = tmp_path / "mine, of late.yaml"
    file.write_text(ready_fleets()["l4"].read_text())
    assert read_fleet(file).name == "mine-of-late"


def test_a_mistake_in_a_fleet_is_told_by_field() -> None:
    with pytest.raises(SpecError, match=r"pools\[0\]\.gpuProduct"):
        fleet(gpuProduct="H1000", gpusPerNode=8)
