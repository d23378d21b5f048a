"""Cards of one node that a device plugin and a driver for claims both hand out."""

import pytest

from plimsoll.facts.observe import observe
from tests.facts.cluster import H100, dra_gpu, node, resource_slice

SLICES = [resource_slice([dra_gpu(f"gpu-{i}") for i in range(8)])]


def test_a_card_that_plugin_and_driver_both_offer_is_counted_once():
    (pool,) = observe([node()], [], SLICES).pools
    assert (pool.via_dra, pool.devices_per_node) == (False, 8)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [({**H100, "nvidia.com/gpu.count": "4"}, "MixedDevices"), ({}, "MissingLabel")],
)
def test_cards_that_a_plugin_hands_out_under_labels_that_cannot_be_read_are_not_taken_for_free_by_claims(
    labels, reason
):
    inventory = observe([node(labels=labels)], [], SLICES)
    assert inventory.pools == ()
    assert [one.reason for one in inventory.problems] == [reason]


def test_labels_that_cannot_be_read_keep_no_claims_away_where_no_plugin_hands_cards_out():
    labels = {**H100, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID"}
    (pool,) = observe([node(labels=labels, devices={"nvidia.com/gpu": "0"})], [], SLICES).pools
    assert (pool.via_dra, pool.devices_per_node) == (True, 8)


def test_claims_for_one_vendors_cards_stay_where_another_vendors_labels_cannot_be_read():
    (pool,) = observe([node(labels={}, devices={"amd.com/gpu": "8"})], [], SLICES).pools
    assert (pool.gpu.name, pool.via_dra) == ("H100-SXM-80GB", True)
