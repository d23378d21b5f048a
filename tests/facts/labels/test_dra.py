import copy

import pytest

from plimsoll.facts.gpus import GIB, MIB
from plimsoll.facts.labels import ProblemReason, dra
from tests.facts.cluster import claim, dra_gpu, resource_slice


def read(*slices):
    return dra.read(part for item in slices if (part := dra.parse_slice(item)) is not None)


def mig(name: str, parent: str, profile: str, memory: str, *, potential: bool = False):
    device = dra_gpu(
        name,
        memory=memory,
        type={"string": "mig"},
        uuid={"string": f"MIG-{name}"},
        parentUUID={"string": parent},
        profile={"string": profile},
    )
    return device | ({"consumesCounters": [{"counterSet": "x"}]} if potential else {})


def as_v1beta1(item):
    old = copy.deepcopy(item)
    for device in old["spec"]["devices"]:
        device["basic"] = {key: device.pop(key) for key in ("attributes", "capacity")}
    return old


@pytest.mark.parametrize("shape", [lambda item: item, as_v1beta1], ids=["v1", "v1beta1"])
def test_whole_cards_are_one_kind_with_a_name_each(shape):
    (found,), problems = read(shape(resource_slice([dra_gpu("gpu-0"), dra_gpu("gpu-1")])))
    assert problems == ()
    device = found.device
    assert (device.gpu.name, device.count, device.resource) == ("H100-SXM-80GB", 2, "gpu.nvidia.com")
    assert device.via_dra
    assert device.memory_bytes / GIB == pytest.approx(79.19, abs=0.01)
    assert found.identities == ((("gpu.nvidia.com", "n1", "gpu-0"),), (("gpu.nvidia.com", "n1", "gpu-1"),))


def test_attributes_may_carry_the_drivers_domain():
    device = dra_gpu("gpu-0")
    device["attributes"] = {f"gpu.nvidia.com/{key}": value for key, value in device["attributes"].items()}
    (found,), _ = read(resource_slice([device]))
    assert found.device.gpu.name == "H100-SXM-80GB"


def test_a_card_that_is_cut_is_hidden_behind_its_slices():
    devices = [
        dra_gpu("gpu-0"),
        dra_gpu("gpu-1"),
        *(mig(f"mig-{i}", "GPU-gpu-0", "3g.40gb", "40320Mi") for i in range(2)),
    ]
    found, problems = read(resource_slice(devices))
    assert problems == ()
    kinds = {(kind.device.resource, kind.device.partition, kind.device.count) for kind in found}
    assert kinds == {("gpu.nvidia.com", None, 1), ("mig.nvidia.com", "3g.40gb", 2)}
    cut = next(kind for kind in found if kind.device.partition)
    assert cut.device.memory_bytes == 40320 * MIB


def test_slices_that_could_be_made_count_as_the_card_and_take_it_when_claimed():
    devices = [dra_gpu("gpu-0"), mig("mig-a", "GPU-gpu-0", "3g.40gb", "40320Mi", potential=True)]
    (found,), _ = read(resource_slice(devices))
    assert found.device.count == 1
    assert found.identities == ((("gpu.nvidia.com", "n1", "gpu-0"), ("gpu.nvidia.com", "n1", "mig-a")),)


def test_only_the_newest_generation_of_a_pool_counts():
    old = resource_slice([dra_gpu("gpu-0"), dra_gpu("gpu-1")], generation=1)
    (found,), _ = read(old, resource_slice([dra_gpu("gpu-0")], generation=2))
    assert found.device.count == 1


def test_tainted_and_passed_through_devices_do_not_count():
    tainted = dra_gpu("gpu-1") | {"taints": [{"key": "unhealthy", "effect": "NoSchedule"}]}
    vfio = dra_gpu("gpu-2", type={"string": "vfio"})
    (found,), _ = read(resource_slice([dra_gpu("gpu-0"), tainted, vfio]))
    assert found.device.count == 1


def test_amd_partitions_are_parts_of_their_card():
    device = {
        "name": "gpu-32-160",
        "attributes": {
            "type": {"string": "amdgpu-partition"},
            "productName": {"string": "AMD_Instinct_MI300X_OAM"},
            "partitionProfile": {"string": "dpx_nps1"},
        },
        "capacity": {"memory": {"value": "98296Mi"}},
    }
    (found,), problems = read(resource_slice([device], driver="gpu.amd.com"))
    assert problems == ()
    assert (found.device.partition, found.device.card) == ("dpx_nps1", "MI300X")
    assert found.device.memory_bytes == 98296 * MIB


def test_two_products_on_one_node_are_two_kinds():
    found, _ = read(resource_slice([dra_gpu("gpu-0"), dra_gpu("gpu-1", "NVIDIA L4", "23034Mi")]))
    assert {kind.device.gpu.name for kind in found} == {"H100-SXM-80GB", "L4-24GB"}


@pytest.mark.parametrize(
    ("device", "reason", "says"),
    [
        (dra_gpu("gpu-0", "NVIDIA H900"), ProblemReason.UNKNOWN_PRODUCT, "NVIDIA H900"),
        (dra_gpu("gpu-0", ""), ProblemReason.MISSING_LABEL, "productName"),
        (dra_gpu("gpu-0", "AMD_Instinct_MI300X_OAM"), ProblemReason.CONTRADICTORY_LABELS, "MI300X"),
        (
            dra_gpu("gpu-0", cudaComputeCapability={"version": "8.0.0"}),
            ProblemReason.CONTRADICTORY_LABELS,
            "8.0",
        ),
        (
            dra_gpu("gpu-0", "NVIDIA L4", profile={"string": "3g.40gb"}),
            ProblemReason.CONTRADICTORY_LABELS,
            "3g.40gb",
        ),
    ],
)
def test_a_device_that_cannot_be_understood_is_a_problem(device, reason, says):
    found, problems = read(resource_slice([device]))
    assert found == ()
    assert problems[0].reason is reason
    assert says in problems[0].message


def test_slices_of_other_drivers_or_of_no_node_are_none():
    assert dra.parse_slice(resource_slice([dra_gpu("x")], driver="net.example.com")) is None
    everywhere = resource_slice([dra_gpu("x")])
    del everywhere["spec"]["nodeName"]
    assert dra.parse_slice(everywhere) is None


def test_a_claim_names_its_devices_and_its_pods():
    devices, pods = dra.claimed(claim("gpu-0", "gpu-1"))
    assert devices == (("gpu.nvidia.com", "n1", "gpu-0"), ("gpu.nvidia.com", "n1", "gpu-1"))
    assert pods == ("team/p1",)
    assert dra.claimed({"metadata": {"name": "waiting"}, "spec": {}}) == ((), ())


def test_a_kind_is_asked_for_by_an_expression_over_its_attributes():
    devices = [dra_gpu("gpu-0"), mig("mig-0", "GPU-gpu-0", "3g.40gb", "40320Mi")]
    (found,), _ = read(resource_slice(devices))
    assert found.device.claim_selector == (
        'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100 80GB HBM3" && '
        'device.attributes["gpu.nvidia.com"].profile == "3g.40gb"'
    )
    odd, _ = read(resource_slice([dra_gpu("gpu-0", 'NVIDIA "L4"')]))
    assert odd[0].device.claim_selector.endswith(r'== "NVIDIA \"L4\""')
