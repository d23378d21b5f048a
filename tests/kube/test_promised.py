"""Devices that were promised to pods which never came: that they are free again is news to who waits for devices."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation
from plimsoll.kube.door import Door
from plimsoll.kube.fleet import SETTLE_SECONDS, FleetSeen
from tests.facts.cluster import node
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
