"""Up and down, over and over: nothing is left of a cluster, neither on the machine nor in the process that had it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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


def rounds() -> list[set[str]]:
    """What this process has open before the first round, and after each."""
    files = [open_files()]
    for _ in range(ROUNDS):
        for found in one_round():
            assert eventually(nothing_left(found)), found.left()
        files.append(open_files())
    return files


def test_nothing_is_left_however_often_a_cluster_comes_and_goes() -> None:
    # A process of its own: what the tests before have left running in this one opens and closes files when it likes.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        before, first, *later = alone.submit(rounds).result()
    assert first - before == set()
    assert later == [first] * (ROUNDS - 1)
