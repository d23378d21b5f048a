"""Up and down, over and over: nothing is left of a cluster, neither on the machine nor in the process that had it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from cluster import Cluster
from cluster.fleet import read_fleet
from cluster.remains import Footprint, open_files
from common import eventually

ROUNDS = 3


def one_round() -> list[Footprint]:
    with Cluster() as cluster, cluster.fleet(read_fleet("l4")), cluster.prometheus() as prometheus:
        found = [Footprint.of(cluster), Footprint.of_programs(prometheus.processes)]
        assert all(one.left() for one in found)  # or the looking finds nothing at all
    return found


def nothing_left(found: Footprint) -> Callable[[], bool]:
    return lambda: found.left() == []


def test_nothing_is_left_however_often_a_cluster_comes_and_goes() -> None:
    files = []
    for _ in range(ROUNDS):
        for found in one_round():
            assert eventually(nothing_left(found)), found.left()
        files.append(open_files())
    # The first round may open what is kept, and others in this process their own; what is left of each adds up round by round.
    assert not all(before < after for before, after in pairwise(files)), files
