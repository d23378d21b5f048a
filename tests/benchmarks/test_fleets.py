from fleets import mixed_fleet, shapes
from plimsoll.facts.observe import observe


def test_a_mixed_fleet_has_two_hundred_kinds_of_nodes_and_is_partly_used():
    fleet = mixed_fleet(1000)
    inventory = observe(fleet.nodes, fleet.pods)
    assert inventory.problems == ()
    assert len(inventory.pools) == len(shapes()) >= 200
    devices = sum(pool.nodes * pool.devices_per_node for pool in inventory.pools)
    free = sum(pool.free_devices for pool in inventory.pools)
    assert 0.4 * devices < free < 0.9 * devices
    assert sum(sum(pool.unavailable.values()) for pool in inventory.pools) > 0


def test_the_same_seed_gives_the_same_fleet_and_another_another():
    assert mixed_fleet(50, seed=1) == mixed_fleet(50, seed=1)
    assert mixed_fleet(50, seed=1) != mixed_fleet(50, seed=2)
