import pytest

from plimsoll.facts.labels import NodeFacts, ProblemReason, Reading, read_node


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


def test_devices_are_pinned_by_the_label_that_named_them():
    (device,) = read({"gpu.intel.com/product": "Max_1550"}, "gpu.intel.com/xe").devices
    assert dict(device.pins) == {"gpu.intel.com/product": "Max_1550"}
