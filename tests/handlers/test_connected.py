"""The first look at a cluster may take its time as long as it comes on, and is given up where it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.handlers.connected import SYNC_SECONDS, Connected
from plimsoll.kube.door import Door, Object, Page
from plimsoll.kube.errors import Unreachable
from tests.kube import virtual

PAGES = 9


class Slow:
    """A door to a cluster whose nodes come page by page, each after nearly all the time that is waited; there is nothing else.
    Where `breaks`, no list comes further than that."""

    def __init__(self, breaks: int = PAGES) -> None:
        self._breaks = breaks

    async def get(self, _: str) -> Object:
        return {}

    async def pages(self, path: str, **_: Any) -> AsyncGenerator[Page, None]:
        if not path.endswith("/nodes"):
            yield Page([], "1")
            return
        for number in range(PAGES):
            await asyncio.sleep(0.9 * SYNC_SECONDS)
            if number == self._breaks:
                raise Unreachable("connection reset")
            yield Page([{"metadata": {"name": f"node-{number}", "resourceVersion": "1"}}], "1")

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[tuple[str, Object], None]:
        await asyncio.Event().wait()
        yield "OPENED", {}


def connected(door: Slow) -> Connected:
    return Connected(cast(Door, door), OperatorConfig(), wake=lambda _: None, moved=lambda: None)


def test_a_cluster_that_is_seen_slowly_is_waited_for_as_long_as_more_of_it_comes() -> None:
    async def main() -> None:
        here = connected(Slow())
        await here.start()
        assert here.sight.listed == PAGES
        await here.stop()

    virtual.run(main())


@pytest.mark.parametrize("breaks", [0, 3])
def test_a_cluster_of_which_no_more_can_be_seen_is_given_up_and_what_is_missing_is_named(breaks: int) -> None:
    async def main() -> None:
        here = connected(Slow(breaks))
        with pytest.raises(TimeoutError, match="/nodes: connection reset"):
            await here.start()
        await here.stop()

    virtual.run(main())
