"""Devices that are promised stay promised when a selector divides the pool that they are of."""

from __future__ import annotations

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.fleet import Fleet
from plimsoll.facts.groups import Reservation
from plimsoll.facts.inventory import Pool
from tests.facts.cluster import H100, node

ZONED = {**H100, "example.com/zone": "a"}
SELECTOR = {"example.com/zone": "a"}
CLASS = {
    "name": "made",
    "gpuProduct": "H100-SXM-80GB",
    "gpusPerNode": 8,
    "maxNodes": 1,
    "cpu": "192",
    "memory": "2Ti",
    "labels": SELECTOR,
}


def there() -> Fleet:
    fleet = Fleet()
    fleet.add_node(node(labels=ZONED))
    fleet.pods_are_known()
    return fleet


def to_be_made() -> Fleet:
    return Fleet(OperatorConfig.model_validate({"nodeClasses": [CLASS]}))


def only(fleet: Fleet) -> Pool:
    (pool,) = fleet.inventory().pools
    return pool


def promise(fleet: Fleet, pool: str) -> None:
    fleet.promise("team/first", [Reservation(deployment="team/first", pool=pool, devices=8, pods=1)])


def left(fleet: Fleet) -> int:
    """Whole nodes that another one would find."""
    pool = only(fleet)
    return pool.free.get(8, 0) + pool.coming.get(8, 0)


@pytest.mark.parametrize("fleet", [there(), to_be_made()], ids=["a node", "a node that is to be made"])
def test_what_was_promised_of_a_pool_is_promised_of_what_a_selector_made_of_it(fleet: Fleet) -> None:
    """Two resources that are made at once: the first one's pods are not there yet, and the second one names a label."""
    key = only(fleet).key
    promise(fleet, key)
    assert left(fleet) == 0
    fleet.select([SELECTOR])
    assert only(fleet).key != key
    assert left(fleet) == 0
    promise(fleet, key)  # by a plan that is older
    assert left(fleet) == 0
    divided = only(fleet).key
    promise(fleet, divided)
    fleet.select([])
    assert only(fleet).key == key
    assert left(fleet) == 0
    fleet.promise("team/first", [])
    assert left(fleet) == 1


def test_what_was_promised_of_a_pool_of_which_a_part_is_left_is_promised_of_that() -> None:
    fleet = there()
    fleet.add_node(node("n2"))
    key = only(fleet).key
    promise(fleet, key)
    fleet.select([SELECTOR])
    assert {pool.key == key: pool.free.get(8, 0) for pool in fleet.inventory().pools} == {True: 0, False: 1}
