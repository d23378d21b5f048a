"""The first look at a cluster may take its time as long as it comes on, and is given up where it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import ObjectMeta
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.handlers.connected import SYNC_SECONDS, Connected
from plimsoll.kube.door import Door, Object, Page
from plimsoll.kube.errors import Conflict, Unreachable, refusal
from plimsoll.kube.fleet import SETTLE_SECONDS
from tests.facts.cluster import H100, node
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


@pytest.mark.parametrize(
    ("selectors", "news"),
    [([{"team": "a"}], True), ([{}], False), ([{"team": "b"}], False)],
    ids=["by a label that a node carries", "as before", "by a label that no node carries"],
)
def test_those_who_wait_for_gpus_are_told_where_pools_are_divided_otherwise(
    selectors: list[dict[str, str]], *, news: bool
) -> None:
    moves: list[str] = []

    async def main() -> None:
        here = Connected(
            cast(Door, None), OperatorConfig(), wake=lambda _: None, moved=lambda: moves.append("moved")
        )
        here.sight.fleet.fleet.add_node(node(labels={**H100, "team": "a"}))
        here.sight.fleet.changed()
        await asyncio.sleep(2 * SETTLE_SECONDS)
        moves.clear()
        with here.divided({"team": "a"}):
            assert here.inventory().pools
        await asyncio.sleep(2 * SETTLE_SECONDS)
        assert not moves, "the pools are as they were"
        here.select(selectors)
        await asyncio.sleep(2 * SETTLE_SECONDS)

    virtual.run(main())
    assert bool(moves) is news


ABOUT = ObjectMeta(name="chat", namespace="team-a", uid="u1")


class Refusing(Slow):
    """A door that answers each write of a status so."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__()
        self._answer = refusal(status, body)

    async def apply(self, *_: Any, **__: Any) -> Object:
        raise self._answer


def told(door: Refusing) -> int | None:
    seen = {"metadata": {"resourceVersion": "1"}}
    return asyncio.run(connected(door).tell(ABOUT, LLMDeploymentStatus(observed_generation=1), seen))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"reason": "NotFound"}),
        (
            409,
            {
                "reason": "Conflict",
                "message": "uid mismatch: the provided object specified uid u1, and no existing object was found",
            },
        ),
        (422, {"reason": "Invalid", "details": {"causes": [{"field": "metadata.uid"}]}}),
    ],
)
def test_the_status_of_a_resource_that_is_gone_or_another_one_by_now_is_told_to_nobody(
    status: int, body: dict[str, Any]
) -> None:
    assert not told(Refusing(status, body))


def test_a_status_that_lost_a_race_with_another_write_is_no_sign_that_the_resource_is_gone() -> None:
    raced = {
        "reason": "Conflict",
        "message": 'Operation cannot be fulfilled on llmdeployments "chat": the object has been modified',
    }
    with pytest.raises(Conflict):
        told(Refusing(409, raced))
