"""What the doctor says of nodes whose accelerators a driver hands out by claims, and no device plugin."""

from __future__ import annotations

import pytest

from plimsoll.status.doctor.diagnosis import diagnose
from tests.facts.cluster import dra_gpu, resource_slice
from tests.status.doctor.shown import LABELS, Object, look, node

GKE = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
SLICE = resource_slice([dra_gpu(f"gpu-{number}") for number in range(8)])
OF_NETWORK = resource_slice([{"name": "eth1"}], driver="dra.net")
CUT_WRONGLY = LABELS | {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID"}


def reasons(**others: Object | tuple[Object, ...]) -> list[str]:
    return [one.reason for one in diagnose(look(**others)).found]


@pytest.mark.parametrize("labels", [LABELS, GKE], ids=["its maker's labels", "its cloud's label"])
def test_a_node_whose_labels_name_what_a_driver_hands_out_by_claims_is_well(labels: Object) -> None:
    bare = node(labels, gpus=0)
    assert reasons(nodes=(bare,), slices=(SLICE,)) == []
    assert reasons(nodes=(bare,), slices=(OF_NETWORK,)) == ["ContradictoryLabels"]
    elsewhere = resource_slice([dra_gpu("gpu-0")], on="n2")
    assert reasons(nodes=(bare,), slices=(elsewhere,)) == ["ContradictoryLabels"]


def test_labels_without_devices_are_not_told_where_it_is_not_seen_what_is_given_by_claims() -> None:
    unseen = {"slices": "403"}
    assert reasons(nodes=(node(gpus=0),), unseen=unseen) == []
    assert reasons(nodes=(node(CUT_WRONGLY, gpus=0),), unseen=unseen) == ["ContradictoryLabels"]


def test_a_driver_s_device_that_nobody_knows_is_told_as_a_label_s_would_be() -> None:
    strange = resource_slice([dra_gpu("gpu-0", "NVIDIA Z9")])
    (found,) = diagnose(look(nodes=(node({}, gpus=0),), slices=(strange,))).found
    assert (found.reason, found.about) == ("UnknownProduct", "Node n1")
    assert "ResourceSlice of driver gpu.nvidia.com" in found.message


def test_a_cordoned_node_whose_accelerators_are_given_by_claims_is_told_also_where_nothing_serves_on_it() -> (
    None
):
    away = node({}, gpus=0, unschedulable=True)
    assert reasons(nodes=(away,), slices=(SLICE,), pods=()) == ["NodeAway"]
    assert "NodeAway" not in reasons(nodes=(away,), slices=(OF_NETWORK,), pods=())
