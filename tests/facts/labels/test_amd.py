import pytest

from plimsoll.facts.gpus import GIB, gpu_named
from plimsoll.facts.labels import NodeFacts, ProblemReason, Reading, read_node
from plimsoll.facts.labels.amd import part_of

MI300X = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}


def read(labels: dict[str, str], declared: str | None = None, resource: str = "amd.com/gpu") -> Reading:
    return read_node(NodeFacts(labels=labels, allocatable={resource: 8}, declared_product=declared))


@pytest.mark.parametrize(
    ("labels", "means"),
    [
        (MI300X, "MI300X"),
        ({"beta.amd.com/gpu.product-name": "AMD_Instinct_MI325X_OAM"}, "MI325X"),
        ({"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "8"}, "MI300X"),
        ({"amd.com/gpu.device-id": "74a1"}, "MI300X"),
        ({"beta.amd.com/gpu.device-id.75a3": "8"}, "MI355X"),
        ({"amd.com/gpu.product-name": "AMD_Radeon_PRO_W7900"}, "W7900"),
    ],
    ids=["present prefix", "older prefix", "counted key", "device id", "counted device id", "workstation"],
)
def test_the_product_is_read_from_every_spelling_of_the_labels(labels, means):
    (device,) = read(labels).devices
    assert (device.gpu.name, device.count, device.resource) == (means, 8, "amd.com/gpu")


def test_a_declared_class_names_the_product_where_no_labeller_runs():
    (device,) = read({}, "MI300X").devices
    assert device.gpu.name == "MI300X"


@pytest.mark.parametrize(
    ("mode", "parts"), [("spx_nps1", 1), ("dpx_nps1", 2), ("qpx_nps1", 4), ("cpx_nps4", 8), ("cpx", 8)]
)
def test_a_partition_mode_cuts_a_card_into_equal_devices(mode, parts):
    (device,) = read({**MI300X, "amd.com/gpu.compute-memory-partition": mode}).devices
    card = gpu_named("MI300X")
    assert device.memory_bytes == card.memory_bytes // parts
    assert device.gpu.bandwidth == card.bandwidth // parts
    assert device.partition == (mode if parts > 1 else None)
    assert device.card == ("MI300X" if parts > 1 else None)


def test_the_mode_may_stand_in_the_resource():
    (device,) = read(MI300X, resource="amd.com/cpx_nps4").devices
    assert (device.partition, device.resource) == ("cpx_nps4", "amd.com/cpx_nps4")


def test_a_card_with_six_dies_is_cut_into_six():
    part = part_of(gpu_named("MI300A"), "cpx_nps1")
    assert part is not None
    assert part.memory_bytes == 128 * GIB // 6
    assert part_of(gpu_named("MI300A"), "qpx_nps1") is None


@pytest.mark.parametrize(
    ("labels", "reason", "says"),
    [
        ({}, ProblemReason.MISSING_LABEL, "amd.com/gpu.product-name"),
        ({"amd.com/gpu.product-name": "AMD_MI9000"}, ProblemReason.UNKNOWN_PRODUCT, "AMD_MI9000"),
        ({"amd.com/gpu.device-id": "ffff"}, ProblemReason.UNKNOWN_PRODUCT, "ffff"),
        ({"amd.com/gpu.product-name": "NVIDIA-L4"}, ProblemReason.CONTRADICTORY_LABELS, "L4-24GB"),
        (
            {
                "beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "4",
                "beta.amd.com/gpu.product-name.AMD_Instinct_MI210": "4",
            },
            ProblemReason.MIXED_DEVICES,
            "AMD_Instinct_MI210",
        ),
        (
            {"amd.com/gpu.product-name": "MI210", "amd.com/gpu.compute-memory-partition": "dpx_nps1"},
            ProblemReason.CONTRADICTORY_LABELS,
            "dpx_nps1",
        ),
    ],
)
def test_what_cannot_be_understood_is_a_problem_that_names_the_label(labels, reason, says):
    reading = read(labels)
    assert reading.devices == ()
    assert reading.problems[0].reason is reason
    assert says in reading.problems[0].message


@pytest.mark.parametrize(
    ("vram", "believed"), [("192G", False), ("256G", True), ("lots", False), ("", False)]
)
def test_a_vram_label_that_contradicts_the_catalogue_is_believed_and_said(vram, believed):
    (device,) = read({**MI300X, "amd.com/gpu.vram": vram}).devices
    assert bool(device.notes) is believed
    assert device.memory_bytes == (256 * GIB if believed else 192 * GIB)


def test_the_vram_label_of_a_partition_is_not_believed():
    labels = {**MI300X, "amd.com/gpu.compute-memory-partition": "dpx_nps1", "amd.com/gpu.vram": "48G"}
    (device,) = read(labels).devices
    assert (device.memory_bytes, device.notes) == (96 * GIB, ())


def test_a_device_is_pinned_by_product_and_partition_mode():
    (device,) = read({**MI300X, "amd.com/gpu.compute-memory-partition": "cpx_nps4"}).devices
    assert dict(device.pins) == {
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
        "amd.com/gpu.compute-memory-partition": "cpx_nps4",
    }
    (older,) = read({"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "8"}).devices
    assert dict(older.pins) == {"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "8"}
