"""Calls through the door: what each kind of trouble looks like, what is tried again, and how many are under way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster
from cluster.faults import WRITES, Answer, Delay, FaultProxy, Hang, LoseAnswer, Refuse, Where
from common import PATIENCE_SECONDS
from kube.conftest import Doors
from kube.things import LONGEST_SECONDS, soon
from plimsoll.kube.credentials import Access, NoCluster
from plimsoll.kube.door import JSON_PATCH, READS, Door
from plimsoll.kube.door import WRITES as WRITERS
from plimsoll.kube.errors import Conflict, Invalid, NotFound, NotLeading, Refused, Unreachable
from plimsoll.kube.pace import Pace

MAPS = Where(resources={"configmaps"})
GETS = Where(verbs={"get"}, resources={"configmaps"})
CHANGES = Where(verbs=WRITES, resources={"configmaps"})


def config_map(name: str = "one", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def through_it(door: Doors, does: Callable[[Door], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONGEST_SECONDS), door(**settings) as opened:
            await does(opened)

    asyncio.run(run())


def test_an_object_is_made_read_changed_and_deleted(door: Doors, maps: str) -> None:
    async def does(door: Door) -> None:
        made = await door.create(maps, config_map(a="1"), manager="test")
        assert "data" not in made
        one = f"{maps}/one"
        assert (await door.get(one))["data"] == {"a": "1"}
        assert "data" not in await door.get(one, metadata=True)
        patched = await door.patch(one, {"data": {"b": "2"}}, manager="test", metadata=False)
        assert patched["data"] == {"a": "1", "b": "2"}
        step = [{"op": "remove", "path": "/data/a"}]
        patched = await door.patch(one, step, manager="test", content=JSON_PATCH, metadata=False)
        assert patched["data"] == {"b": "2"}
        replaced = await door.replace(one, {**patched, "data": {"c": "3"}}, manager="test")
        assert replaced["data"] == {"c": "3"}
        with pytest.raises(Conflict) as stale:
            await door.replace(one, {**patched, "data": {}}, manager="test")
        assert not stale.value.already_exists
        with pytest.raises(Conflict):
            await door.delete(one, uid="another")
        await door.delete(one, uid=made["metadata"]["uid"])
        await door.delete(one)

    through_it(door, does)


def test_refusals_come_in_the_words_of_the_server(door: Doors, maps: str) -> None:
    async def does(door: Door) -> None:
        with pytest.raises(NotFound) as missing:
            await door.get(f"{maps}/nothing")
        assert missing.value.message == 'configmaps "nothing" not found'
        with pytest.raises(Invalid) as invalid:
            await door.create(maps, config_map("No Name"), manager="test")
        assert invalid.value.causes[0]["field"] == "metadata.name"
        assert not invalid.value.passes
        await door.create(maps, config_map(), manager="test")
        with pytest.raises(Conflict) as taken:
            await door.create(maps, config_map(), manager="test")
        assert taken.value.already_exists

    through_it(door, does)


@pytest.mark.parametrize(
    "fault",
    [Answer(429, 1), Answer(500), Answer(503), Answer(504), Refuse(), Hang(), LoseAnswer()],
    ids=["429", "500", "503", "504", "refused", "hangs", "cut"],
)
def test_a_read_that_fails_is_tried_again(proxy: FaultProxy, through: Doors, maps: str, fault: Any) -> None:
    async def does(door: Door) -> None:
        with proxy.add(fault, GETS, times=2) as rule:
            with pytest.raises(NotFound):
                await door.get(f"{maps}/nothing")
            assert rule.hits == 2

    through_it(through, does, seconds=patience_with(fault))


def patience_with(fault: Any) -> float:
    """Little only where nothing else ends a call: a busy machine's server answers late."""
    return 2.0 if isinstance(fault, Hang) else PATIENCE_SECONDS


@pytest.mark.parametrize(
    "fault", [Answer(500), Refuse(), Hang(), LoseAnswer()], ids=["500", "refused", "hangs", "cut"]
)
def test_a_write_that_fails_is_for_the_caller_to_judge(
    cluster: Cluster, proxy: FaultProxy, through: Doors, maps: str, fault: Any
) -> None:
    async def does(door: Door) -> None:
        with proxy.add(fault, CHANGES) as rule:
            with pytest.raises(Refused if isinstance(fault, Answer) else Unreachable) as caught:
                await door.apply(f"{maps}/one", config_map(), manager="test")
            assert caught.value.passes
            assert rule.hits == 1
        there = {item["metadata"]["name"] for item in cluster.api.items(maps)}
        assert ("one" in there) == isinstance(fault, LoseAnswer)

    through_it(through, does, seconds=patience_with(fault))


def test_a_write_that_is_told_to_come_later_comes_later(proxy: FaultProxy, through: Doors, maps: str) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def does(door: Door) -> None:
        with proxy.add(Answer(429, 7), CHANGES, times=2):
            await door.apply(f"{maps}/one", config_map(), manager="test")
        assert all(7 < seconds < 8 for seconds in waited)
        assert len(waited) == 2
        with proxy.add(Answer(429, 7), CHANGES), pytest.raises(Refused) as refused:
            await door.apply(f"{maps}/one", config_map(), manager="test")
        assert refused.value.retry_after == 7

    through_it(through, does, pace=Pace(sleep=sleep))


def test_no_more_are_under_way_than_is_allowed_and_writes_do_not_starve_reads(
    proxy: FaultProxy, through: Doors, maps: str
) -> None:
    async def does(door: Door) -> None:
        # Long enough for a busy machine to begin as many as may be under way before the first of them ends, and to answer a read.
        with proxy.add(Delay(3.0), CHANGES):
            writes = [
                asyncio.create_task(door.apply(f"{maps}/n{index}", config_map(f"n{index}"), manager="test"))
                for index in range(3 * WRITERS)
            ]
            assert await soon(lambda: proxy.counts.most_in_flight >= WRITERS)
            await door.get("/api/v1/namespaces/default")
            assert not any(write.done() for write in writes[-WRITERS:]), "it waited behind writes"
            await asyncio.gather(*writes)
        assert proxy.counts.most_in_flight <= WRITERS + READS <= 64
        assert door.calls.most_in_flight <= WRITERS + READS
        assert door.calls.in_flight == 0
        assert door.calls.count["apply", "configmaps", "201"] == 3 * WRITERS

    through_it(through, does, seconds=PATIENCE_SECONDS)


def test_who_does_not_lead_writes_nothing_and_reads_all_the_same(
    proxy: FaultProxy, through: Doors, maps: str
) -> None:
    async def does(door: Door) -> None:
        with pytest.raises(NotLeading):
            await door.apply(f"{maps}/one", config_map(), manager="test")
        with pytest.raises(NotLeading):
            await door.delete(f"{maps}/one")
        with pytest.raises(NotFound):
            await door.get(f"{maps}/one")
        assert proxy.counts.of(CHANGES) == 0

    through_it(through, does, may_write=lambda: False)


def test_a_token_that_was_replaced_is_read_again(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    content = json.loads(cluster.kubeconfig.read_text())
    token = content["users"][0]["user"].pop("token")
    content["users"][0]["user"]["tokenFile"] = str(tmp_path / "token")
    (tmp_path / "config").write_text(json.dumps(content))
    (tmp_path / "token").write_text("old")
    path = f"/api/v1/namespaces/{namespace}"

    async def does() -> None:
        now = [100.0]
        pace = Pace(now=lambda: now[0])
        async with Door(await Access.find(file=str(tmp_path / "config"), pace=pace)) as door:
            with pytest.raises(Refused, match="401"):
                await door.get(path)
            (tmp_path / "token").write_text(token)
            now[0] += 10
            await asyncio.gather(*(door.get(path) for _ in range(10)))
            assert door.calls.count["get", "namespaces", "200"] == 10

    asyncio.run(does())


def test_a_configuration_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("{}")
    with pytest.raises(NoCluster, match="KUBECONFIG"):
        asyncio.run(Access.find(file=str(tmp_path / "config")))
    with pytest.raises(NoCluster, match="KUBECONFIG"):
        asyncio.run(Access.find(file=str(tmp_path / "nothing")))
