import pytest

from plimsoll.facts.gpus import GIB, MIB, gpu_named
from plimsoll.facts.labels import NodeFacts, ProblemReason, Reading, nvidia, read_node
from tests.facts.cluster import H100


def read(labels: dict[str, str], declared: str | None = None, /, **allocatable: int) -> Reading:
    named = {
        name.replace("gpu", "nvidia.com/gpu", 1).replace("_", "."): count
        for name, count in allocatable.items()
    }
    return read_node(NodeFacts(labels=labels, allocatable=named, declared_product=declared))


def offered(labels: dict[str, str], allocatable: dict[str, int]) -> Reading:
    return read_node(NodeFacts(labels=labels, allocatable=allocatable))


def test_whole_cards_are_the_product_the_label_names_with_the_memory_the_runtime_shows():
    (device,) = read(H100, gpu=8).devices
    assert device.gpu.name == "H100-SXM-80GB"
    assert (device.resource, device.count, device.sharing, device.partition) == ("nvidia.com/gpu", 8, 1, None)
    assert device.memory_bytes / GIB == pytest.approx(79.19, abs=0.01)
    assert device.driver == "580.95.05"
    assert device.notes == ()


def test_a_node_without_nvidia_devices_says_nothing():
    assert read(H100) == Reading()
    assert offered(H100, {"nvidia.com/gpu": 0, "rdma/hca": 4}) == Reading()


@pytest.mark.parametrize(
    ("labels", "allocatable", "sharing", "count"),
    [
        (
            {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"},
            {"nvidia.com/gpu": 8},
            4,
            8,
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "4"},
            {"nvidia.com/gpu.shared": 8},
            4,
            8,
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "1"},
            {"nvidia.com/gpu": 2},
            1,
            2,
        ),
    ],
    ids=["suffix -SHARED", "renamed resource", "not shared"],
)
def test_time_slicing_counts_shares_and_keeps_the_whole_cards_memory(labels, allocatable, sharing, count):
    (device,) = offered(labels | {"nvidia.com/gpu.count": "2"}, allocatable).devices
    assert (device.sharing, device.count) == (sharing, count)
    assert device.memory_bytes == gpu_named("L4").memory_bytes


def test_mig_single_takes_memory_and_count_of_slices_from_the_labels():
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "nvidia.com/gpu.count": "56",
        "nvidia.com/gpu.memory": "4864",
        "nvidia.com/mig.strategy": "single",
    }
    (device,) = read(labels, gpu=56).devices
    assert (device.partition, device.card, device.count) == ("1g.5gb", "A100-SXM-40GB", 56)
    assert device.memory_bytes == 4864 * MIB
    assert device.gpu.bandwidth == gpu_named("A100-SXM-40GB").bandwidth // 8


def test_mig_mixed_is_one_kind_of_device_a_profile_beside_whole_cards():
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-3g.20gb.memory": "19968",
        "nvidia.com/mig-3g.20gb.count": "4",
    }
    devices = offered(
        labels, {"nvidia.com/gpu": 2, "nvidia.com/mig-3g.20gb": 4, "nvidia.com/mig-1g.5gb": 7}
    ).devices
    assert [(device.resource, device.count, device.partition) for device in devices] == [
        ("nvidia.com/gpu", 2, None),
        ("nvidia.com/mig-1g.5gb", 7, "1g.5gb"),
        ("nvidia.com/mig-3g.20gb", 4, "3g.20gb"),
    ]
    assert devices[2].memory_bytes == 19968 * MIB
    assert devices[1].memory_bytes == 4864 * MIB


@pytest.mark.parametrize(
    ("labels", "version"),
    [
        ({"nvidia.com/cuda.driver-version.full": "580.95.05"}, "580.95.05"),
        (
            {
                "nvidia.com/cuda.driver-version.major": "550",
                "nvidia.com/cuda.driver-version.minor": "54",
                "nvidia.com/cuda.driver-version.revision": "15",
            },
            "550.54.15",
        ),
        ({"nvidia.com/cuda.driver.major": "470", "nvidia.com/cuda.driver.minor": "82"}, "470.82"),
        ({}, None),
    ],
)
def test_the_driver_is_read_from_new_and_old_labels(labels, version):
    assert nvidia.driver_version(labels) == version


def test_an_nvlink_domain_over_nodes_is_told_by_the_clique_and_only_where_the_product_has_one():
    clique = {"nvidia.com/gpu.clique": "7b3c.32766"}
    (rack,) = read({"nvidia.com/gpu.product": "NVIDIA-GB200", **clique}, gpu=4).devices
    (board,) = read({**H100, **clique}, gpu=8).devices
    assert rack.fabric == "7b3c.32766"
    assert board.fabric is None


@pytest.mark.parametrize(
    ("labels", "means"),
    [
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "H100-SXM-80GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, "A100-SXM-40GB"),
        ({"karpenter.k8s.aws/instance-gpu-name": "l40s"}, "L40S-48GB"),
        (
            {
                "karpenter.k8s.aws/instance-gpu-name": "a100",
                "karpenter.k8s.aws/instance-gpu-memory": "81920",
            },
            "A100-SXM-80GB",
        ),
    ],
)
def test_clouds_without_feature_discovery_name_the_product_in_labels_of_their_own(labels, means):
    (device,) = read(labels, gpu=1).devices
    assert device.gpu.name == means


def test_a_family_name_alone_is_no_product():
    (problem,) = read({"karpenter.k8s.aws/instance-gpu-name": "a100"}, gpu=1).problems
    assert problem.reason is ProblemReason.UNKNOWN_PRODUCT
    assert "A100-SXM-80GB" in problem.message


def test_a_declared_class_names_the_product_where_no_label_does_and_never_against_one():
    (device,) = read({}, "L40S", gpu=4).devices
    assert device.gpu.name == "L40S-48GB"
    (labelled,) = read(H100, "L40S", gpu=8).devices
    assert labelled.gpu.name == "H100-SXM-80GB"


@pytest.mark.parametrize(
    ("mib", "believed"),
    [("81559", False), ("81920", False), ("80994", False), ("65536", True), ("98304", True)],
)
def test_a_memory_label_that_contradicts_the_catalogue_is_believed_and_said(mib, believed):
    (device,) = read({**H100, "nvidia.com/gpu.memory": mib}, gpu=8).devices
    assert bool(device.notes) is believed
    if believed:
        assert device.memory_bytes / MIB == pytest.approx(int(mib), rel=0.01)
        assert mib in device.notes[0]
    else:
        assert device.memory_bytes == device.gpu.memory_bytes


@pytest.mark.parametrize(
    ("labels", "allocatable", "reason", "says"),
    [
        ({}, {"nvidia.com/gpu": 1}, ProblemReason.MISSING_LABEL, "nvidia.com/gpu.product"),
        (
            {"nvidia.com/gpu.product": "NVIDIA-H900"},
            {"nvidia.com/gpu": 1},
            ProblemReason.UNKNOWN_PRODUCT,
            "NVIDIA-H900",
        ),
        (
            {"nvidia.com/gpu.product": "AMD_Instinct_MI300X_OAM"},
            {"nvidia.com/gpu": 1},
            ProblemReason.CONTRADICTORY_LABELS,
            "MI300X",
        ),
        (
            {**H100, "nvidia.com/gpu.count": "4"},
            {"nvidia.com/gpu": 8},
            ProblemReason.MIXED_DEVICES,
            "nvidia.com/gpu.count=4",
        ),
        (
            {**H100, "nvidia.com/gpu.compute.major": "8"},
            {"nvidia.com/gpu": 8},
            ProblemReason.MIXED_DEVICES,
            "8.0",
        ),
        (H100, {"nvidia.com/gpu.shared": 8}, ProblemReason.MISSING_LABEL, "nvidia.com/gpu.replicas"),
        (
            {"nvidia.com/gpu.product": "NVIDIA-L4"},
            {"nvidia.com/mig-1g.5gb": 7},
            ProblemReason.CONTRADICTORY_LABELS,
            "mig-1g.5gb",
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
            {"nvidia.com/mig-9g.90gb": 7},
            ProblemReason.CONTRADICTORY_LABELS,
            "9g.90gb",
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
            {"nvidia.com/mig-nonsense": 7},
            ProblemReason.CONTRADICTORY_LABELS,
            "mig-nonsense",
        ),
    ],
)
def test_what_cannot_be_understood_is_a_problem_that_names_the_label(labels, allocatable, reason, says):
    reading = offered(labels, allocatable)
    assert reading.devices == ()
    assert reading.problems[0].reason is reason
    assert says in reading.problems[0].message


def test_fewer_devices_than_labelled_are_the_healthy_ones():
    (device,) = read(H100, gpu=7).devices
    assert device.count == 7


@pytest.mark.parametrize(
    ("labels", "allocatable", "pins"),
    [
        (H100, {"nvidia.com/gpu": 8}, {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
        (
            {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "4"},
            {"nvidia.com/gpu": 4},
            {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "4"},
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"},
            {"nvidia.com/gpu": 4},
            {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"},
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
            {"nvidia.com/gpu": 7},
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
        ),
        (
            {"cloud.google.com/gke-accelerator": "nvidia-l4"},
            {"nvidia.com/gpu": 1},
            {"cloud.google.com/gke-accelerator": "nvidia-l4"},
        ),
        (
            {
                "karpenter.k8s.aws/instance-gpu-name": "a100",
                "karpenter.k8s.aws/instance-gpu-memory": "40960",
            },
            {"nvidia.com/gpu": 8},
            {
                "karpenter.k8s.aws/instance-gpu-name": "a100",
                "karpenter.k8s.aws/instance-gpu-memory": "40960",
            },
        ),
    ],
)
def test_a_device_is_pinned_by_the_labels_that_tell_it_from_others_of_its_resource(labels, allocatable, pins):
    (device,) = offered(labels, allocatable).devices
    assert dict(device.pins) == pins


def test_a_node_whose_cards_are_cut_differently_under_one_strategy_is_a_problem():
    (problem,) = offered({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID"}, {}).problems
    assert "cut alike" in problem.message


def test_a_slice_may_be_shared_under_a_renamed_resource():
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
        "nvidia.com/mig-1g.5gb.replicas": "2",
        "nvidia.com/mig-1g.5gb.memory": "4864",
    }
    (device,) = offered(labels, {"nvidia.com/mig-1g.5gb.shared": 14}).devices
    assert (device.partition, device.sharing, device.count) == ("1g.5gb", 2, 14)
    assert device.resource == "nvidia.com/mig-1g.5gb.shared"


@pytest.mark.parametrize(
    ("said", "count", "gpu", "sharing"),
    [
        ({"cloud.google.com/gke-gpu-partition-size": "1g.10gb"}, 7, "H100-SXM-80GB-MIG-1g.10gb", 1),
        ({"cloud.google.com/gke-max-shared-clients-per-gpu": "4"}, 8, "H100-SXM-80GB", 4),
        (
            {
                "cloud.google.com/gke-gpu-partition-size": "3g.40gb",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "2",
            },
            4,
            "H100-SXM-80GB-MIG-3g.40gb",
            2,
        ),
    ],
    ids=["cut", "shared", "cut and shared"],
)
def test_a_clouds_own_labels_tell_parts_and_shares_of_cards_from_whole_ones(said, count, gpu, sharing):
    labels = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb", **said}
    (device,) = read(labels, gpu=count).devices
    assert (device.gpu.name, device.count, device.sharing) == (gpu, count, sharing)
    assert dict(device.pins) == labels
