import pytest

from plimsoll.facts.labels import NodeFacts, ProblemReason, Reading, read_node


def read(labels: dict[str, str], declared: str | None = None) -> Reading:
    allocatable = {"habana.ai/gaudi": 8}
    return read_node(NodeFacts(labels=labels, allocatable=allocatable, declared_product=declared))


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
    (device,) = read(labels, declared).devices
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
    reading = read(labels)
    assert reading.devices == ()
    assert reading.problems[0].reason is ProblemReason.MISSING_LABEL
    assert "Gaudi 2 or Gaudi 3" in reading.problems[0].message


def test_devices_are_pinned_by_the_label_that_named_them():
    (device,) = read({"node.kubernetes.io/instance-type": "8xgaudi3"}).devices
    assert dict(device.pins) == {"node.kubernetes.io/instance-type": "8xgaudi3"}
