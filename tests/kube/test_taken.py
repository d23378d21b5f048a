"""What is taken of the fleet, and what is told when it is free again: promised devices whose pods never came, pods of which two watches tell."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation
from plimsoll.kube.door import Door
from plimsoll.kube.fleet import SETTLE_SECONDS, FleetSeen
from tests.facts.cluster import node, pod
from tests.kube import virtual

KEY = "team/chat"


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [(2, 0, True), (2, 1, True), (2, 2, False), (1, 2, False)],
    ids=["all of it is given back", "some of it is given back", "nothing has changed", "more is promised"],
)
def test_devices_that_are_given_back_are_told_of_like_any_that_become_free(
    before: int, after: int, *, news: bool
) -> None:
    moves: list[str] = []

    def promise(seen: FleetSeen, pods: int) -> None:
        (pool,) = seen.fleet.inventory().pools
        one = Reservation(deployment=KEY, pool=pool.key, devices=4, pods=pods)
        seen.promise(KEY, (one,) if pods else ())

    async def main() -> None:
        seen = FleetSeen(cast(Door, None), OperatorConfig(), lambda: moves.append("moved"))
        seen.fleet.add_node(node())
        promise(seen, before)
        seen.changed()
        await asyncio.sleep(2 * SETTLE_SECONDS)
        moves.clear()
        promise(seen, after)
        await asyncio.sleep(2 * SETTLE_SECONDS)

    virtual.run(main())
    assert bool(moves) is news


@pytest.mark.parametrize("aside", [True, False], ids=["it serves no longer", "it is to serve"])
def test_a_pod_that_goes_from_one_watch_to_the_other_takes_what_it_takes_whichever_tells_first(
    aside: bool,
) -> None:
    """Somebody changes the label by which the two watches divide pods; the new one tells before the old one."""

    async def main() -> None:
        seen = FleetSeen(cast(Door, None), OperatorConfig(), lambda: None)
        seen.fleet.add_node(node())
        there, key = pod(), "team/p1"
        if aside:
            seen.serving_pod(key, there)
            seen.others.put(there, as_of=None)
            seen.serving_pod(key, None)
        else:
            seen.others.put(there, as_of=None)
            seen.serving_pod(key, there)
            seen.others.remove(there)
        assert [pool.free_devices for pool in seen.fleet.inventory().pools] == [7]
        seen.others.remove(there)
        seen.serving_pod(key, None)
        assert [pool.free_devices for pool in seen.fleet.inventory().pools] == [8]

    virtual.run(main())
