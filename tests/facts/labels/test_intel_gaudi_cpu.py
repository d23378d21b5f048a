import pytest

from plimsoll.facts.gpus import GIB
from plimsoll.facts.labels import NodeFacts, ProblemReason, Reading, cpu, read_node


def read(labels: dict[str, str], resource: str, count: int = 4, declared: str | None = None) -> Reading:
    return read_node(NodeFacts(labels=labels, allocatable={resource: count}, declared_product=declared))


@pytest.mark.parametrize("resource", ["gpu.intel.com/i915", "gpu.intel.com/xe"])
@pytest.mark.parametrize(
    ("labels", "means"),
    [
        ({"gpu.intel.com/product": "Max_1550"}, "Max-1550"),
        ({"gpu.intel.com/product": "Flex_170"}, "Flex-170"),
        ({"gpu.intel.com/device-id.0300-e211.present": "true"}, "Arc-Pro-B60"),
        ({"gpu.intel.com/device-id.0380-0bda.count": "4"}, "Max-1100"),
    ],
)
def test_intel_products_come_from_their_label_or_their_pci_identity(labels, means, resource):
    (device,) = read(labels, resource).devices
    assert (device.gpu.name, device.resource, device.count) == (means, resource, 4)
    assert device.memory_bytes == device.gpu.memory_bytes


def test_intel_devices_may_be_shared_by_the_plugin():
    (device,) = read(
        {"gpu.intel.com/product": "Flex_170", "gpu.intel.com/device.count": "2"}, "gpu.intel.com/xe", 8
    ).devices
    assert (device.sharing, device.count) == (4, 8)


@pytest.mark.parametrize(
    ("labels", "count", "reason"),
    [
        ({}, 4, ProblemReason.MISSING_LABEL),
        ({"gpu.intel.com/product": "Max_9999"}, 4, ProblemReason.UNKNOWN_PRODUCT),
        (
            {"gpu.intel.com/product": "Max_1550", "gpu.intel.com/device.count": "3"},
            4,
            ProblemReason.MIXED_DEVICES,
        ),
        (
            {
                "gpu.intel.com/product": "Max_1550",
                "gpu.intel.com/device-id.0380-0bd5.present": "true",
                "gpu.intel.com/device-id.0380-56c0.present": "true",
            },
            4,
            ProblemReason.MIXED_DEVICES,
        ),
    ],
)
def test_intel_nodes_that_cannot_be_understood_are_problems(labels, count, reason):
    reading = read(labels, "gpu.intel.com/xe", count)
    assert reading.devices == ()
    assert reading.problems[0].reason is reason
    assert "gpu.intel.com/" in reading.problems[0].message


@pytest.mark.parametrize(
    ("labels", "declared", "means"),
    [
        ({}, "Gaudi2", "Gaudi2"),
        ({"feature.node.kubernetes.io/pci-1200_1da3_1060.present": "true"}, None, "Gaudi3"),
        ({"feature.node.kubernetes.io/pci-1da3_1020.present": "true"}, None, "Gaudi2"),
        ({"node.kubernetes.io/instance-type": "gx3d-160x1792x8gaudi3"}, None, "Gaudi3"),
        ({"habana.ai/product.name": "Intel-Gaudi-2-96GB"}, "Gaudi3", "Gaudi2"),
    ],
    ids=[
        "declared class",
        "PCI class, vendor and device",
        "PCI vendor and device",
        "instance type",
        "a label of its own",
    ],
)
def test_gaudi_products_come_from_wherever_they_are_said(labels, declared, means):
    (device,) = read(labels, "habana.ai/gaudi", 8, declared).devices
    assert (device.gpu.name, device.count) == (means, 8)


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"feature.node.kubernetes.io/pci-1200_1da3.present": "true"},
        {"node.kubernetes.io/instance-type": "dl1.24xlarge"},
    ],
)
def test_a_gaudi_nobody_names_is_a_problem_and_no_guess(labels):
    reading = read(labels, "habana.ai/gaudi", 8)
    assert reading.devices == ()
    assert reading.problems[0].reason is ProblemReason.MISSING_LABEL
    assert "Gaudi 2 or Gaudi 3" in reading.problems[0].message


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ({}, "CPU-AVX2"),
        ({"kubernetes.io/arch": "amd64"}, "CPU-AVX2"),
        ({"kubernetes.io/arch": "arm64"}, "CPU-ARM"),
        ({"feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true"}, "CPU-AVX512"),
        (
            {
                "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
                "feature.node.kubernetes.io/cpu-cpuid.AMXBF16": "true",
            },
            "CPU-AMX",
        ),
    ],
)
def test_a_host_is_the_best_kind_of_cpu_its_labels_vouch_for(labels, kind):
    device = cpu.host(labels, 64 * GIB)
    assert device is not None
    assert (device.gpu.name, device.memory_bytes, device.resource, device.count) == (kind, 64 * GIB, "cpu", 1)


def test_a_host_of_unknown_memory_is_no_device():
    assert cpu.host({}, None) is None


def test_devices_are_pinned_by_the_label_that_named_them():
    (max_1550,) = read({"gpu.intel.com/product": "Max_1550"}, "gpu.intel.com/xe").devices
    assert dict(max_1550.pins) == {"gpu.intel.com/product": "Max_1550"}
    (gaudi,) = read({"node.kubernetes.io/instance-type": "8xgaudi3"}, "habana.ai/gaudi").devices
    assert dict(gaudi.pins) == {"node.kubernetes.io/instance-type": "8xgaudi3"}
    amx = {"kubernetes.io/arch": "amd64", "feature.node.kubernetes.io/cpu-cpuid.AMXBF16": "true"}
    device = cpu.host(amx, GIB)
    assert device is not None
    assert dict(device.pins) == amx
