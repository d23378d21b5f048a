"""Status, events and the Lease on a real API server; and children that are written while a third of all calls fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster import Cluster
from cluster.api import ApiError, Object
from cluster.faults import WRITES, Answer, FaultProxy, Hang, LoseAnswer, Where
from cluster.faults.rules import Fault
from kube.conftest import Doors
from kube.things import LONGEST_SECONDS, Seen, account, deployment, family, seeing, soon
from plimsoll import names
from plimsoll.kube.door import Door
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.events import Event, Events
from plimsoll.kube.kinds import OWNER
from plimsoll.kube.lease import Lease
from plimsoll.kube.pace import Pace
from plimsoll.kube.status import StatusWriter
from plimsoll.objects import Owner


@pytest.fixture
def owner(cluster: Cluster, namespace: str) -> Owner:
    return deployment(cluster.api, namespace)


def through_it(door: Doors, does: Callable[[Door], Awaitable[None]], **settings: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(LONGEST_SECONDS), door(**settings) as opened:
            await does(opened)

    asyncio.run(run())


def test_a_status_is_written_when_it_says_something_new(cluster: Cluster, door: Doors, owner: Owner) -> None:
    path = OWNER.path(owner.namespace, owner.name)

    def there() -> Object:
        return cluster.api.get(path)

    async def does(door: Door) -> None:
        writer = StatusWriter(door)
        before = there()
        assert await writer.write(owner, {"observedGeneration": 1, "replicas": 2}, before)
        written = there()
        assert written["status"] == {"observedGeneration": 1, "replicas": 2}
        # What was seen before our own write is no reason to write again, and neither is seeing it back.
        for seen in (before, written):
            assert not await writer.write(owner, {"observedGeneration": 1, "replicas": 2}, seen)
        # Nor after a restart.
        assert not await StatusWriter(door).write(owner, {"replicas": 2, "observedGeneration": 1}, written)
        assert await writer.write(owner, {"observedGeneration": 2}, written)
        assert there()["status"] == {"observedGeneration": 2}
        cluster.api.patch(f"{path}/status", {"status": {"observedGeneration": 7}})
        assert await writer.write(owner, {"observedGeneration": 2}, there())
        assert there()["status"] == {"observedGeneration": 2}

    through_it(door, does)


def test_no_status_makes_a_resource_that_is_gone(cluster: Cluster, door: Doors, owner: Owner) -> None:
    path = OWNER.path(owner.namespace, owner.name)

    async def does(door: Door) -> None:
        seen = cluster.api.get(path)
        cluster.api.delete(path)
        with pytest.raises((NotFound, Conflict)):
            await StatusWriter(door).write(owner, {"observedGeneration": 1}, seen)
        with pytest.raises(ApiError, match="404"):
            cluster.api.get(path)

    through_it(door, does)


def test_an_event_is_told_once_and_counted_when_it_comes_again(
    cluster: Cluster, door: Doors, owner: Owner
) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{owner.namespace}/events"
    chosen = Event(owner, reason="PlanChosen", note="2 x H100", action="Plan")
    failed = Event(owner, reason="SetFailed", note="ü" * 2000, action="Rollout", type="Warning")
    now = [0.0]

    def there() -> dict[str, Object]:
        return {
            item["reason"]: item for item in cluster.api.items(path) if item["regarding"]["uid"] == owner.uid
        }

    async def tell(door: Door, *told: Event) -> Events:
        events = Events(door, "pod-0", pace=Pace(now=lambda: now[0]))
        sends = asyncio.create_task(events.run())
        for event in told:
            events.tell(event)
            await events.flush()
            now[0] += 61
        sends.cancel()
        return events

    async def does(door: Door) -> None:
        await tell(door, chosen, failed)
        assert {reason: item["type"] for reason, item in there().items()} == {
            "PlanChosen": "Normal",
            "SetFailed": "Warning",
        }
        assert there()["PlanChosen"]["note"] == "2 x H100"
        assert len(there()["SetFailed"]["note"].encode()) <= 1024
        assert "series" not in there()["PlanChosen"]
        # After a restart it is not told a second time; while this one goes on it is counted.
        events = await tell(door, chosen, chosen, chosen)
        assert there()["PlanChosen"]["series"]["count"] == 3
        assert events.dropped == 0
        assert "chat" in cluster.kubectl("describe", "llm", "chat", "-n", owner.namespace).stdout
        assert "PlanChosen" in cluster.kubectl("describe", "llm", "chat", "-n", owner.namespace).stdout

    through_it(door, does)


def test_events_that_cannot_be_told_are_counted_and_hold_up_nobody(
    proxy: FaultProxy, through: Doors, owner: Owner
) -> None:
    async def does(door: Door) -> None:
        events = Events(door, "pod-0")
        sends = asyncio.create_task(events.run())
        with proxy.add(Answer(403), Where(verbs=WRITES, resources={"events"})):
            for index in range(1200):
                events.tell(Event(owner, reason="Many", note=str(index), action="Test"))
            await events.flush()
        assert events.dropped == 1200
        assert not sends.done()
        sends.cancel()

    through_it(through, does)


def holding(*leases: Lease) -> list[bool]:
    return [lease.held for lease in leases]


def test_one_of_two_has_the_lease_and_the_other_soon_after_it_is_gone(door: Doors, namespace: str) -> None:
    async def does(door: Door) -> None:
        first, second = Lease(door, namespace, "first"), Lease(door, namespace, "second")
        await first.acquire()
        keeps = asyncio.create_task(first.keep())
        waits = asyncio.create_task(second.acquire())
        await asyncio.sleep(5)
        assert holding(first, second) == [True, False]
        # As by SIGKILL: nothing is released.
        keeps.cancel()
        await waits
        assert holding(first, second) == [False, True]
        await second.release()
        assert await soon(lambda: not second.held)
        await first.acquire()
        assert first.held

    through_it(door, does)


def test_children_are_complete_though_a_third_of_all_calls_fails(
    cluster: Cluster, proxy: FaultProxy, through: Doors, owner: Owner
) -> None:
    """Turn after turn, as the loop would have it; each kind of failure for a tenth or so of the calls."""
    others = [deployment(cluster.api, owner.namespace, f"chat-{index}") for index in range(8)]
    faults: tuple[Fault, ...] = (Answer(429, 1), Answer(500), Answer(503), LoseAnswer(), Hang())

    async def turns(seen: Seen, one: Owner) -> int:
        for count in range(1, 60):
            applied = await seen.applier.apply(one, family(one))
            assert not applied.taken
            if applied.complete:
                return count
            assert applied.passing or applied.waiting
            await asyncio.sleep(0.05)
        raise AssertionError("never complete")

    async def does(door: Door) -> None:
        async with seeing(door) as seen:
            rules = [proxy.add(fault, share=0.07, seed=index) for index, fault in enumerate(faults)]
            counts = await asyncio.gather(*(turns(seen, one) for one in others))
            assert max(counts) > 1
            for rule in rules:
                rule.remove()
            again = [await seen.applier.apply(one, family(one)) for one in others]
            assert all(one.complete for one in again)
            for one in others:
                found = cluster.api.get(f"/api/v1/namespaces/{one.namespace}/serviceaccounts/{one.name}")
                assert found["metadata"]["labels"] == account(one).body["metadata"]["labels"]
                assert len(seen.children.of(one.key)) == 5

    through_it(through, does, seconds=1.0)


def test_status_is_written_under_a_manager_of_its_own(cluster: Cluster, door: Doors, owner: Owner) -> None:
    async def does(door: Door) -> None:
        seen = cluster.api.get(OWNER.path(owner.namespace, owner.name))
        await StatusWriter(door).write(owner, {"observedGeneration": 1}, seen)
        fields = cluster.api.get(OWNER.path(owner.namespace, owner.name))["metadata"]["managedFields"]
        assert (names.MANAGER_STATUS, "Apply", "status") in {
            (one["manager"], one["operation"], one.get("subresource")) for one in fields
        }

    through_it(door, does)
