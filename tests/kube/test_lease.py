"""Two who want one Lease: never both hold it, whatever happens to clocks, calls and processes; and somebody holds it soon."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.door import Door
from plimsoll.kube.errors import Conflict, NotFound, Refused, Unreachable
from plimsoll.kube.lease import DURATION_SECONDS, Lease
from plimsoll.kube.pace import Pace
from tests.kube.virtual import run

Object = dict[str, Any]


class Server:
    """Keeps one Lease and compares versions. `fate` says of each call whether it fails, and whether it was done all the same."""

    def __init__(self, fate: Callable[[], str] = lambda: "") -> None:
        self.item: Object | None = None
        self.version = 100
        self.fate = fate

    async def get(self, path: str) -> Object:
        await self._answer()
        if self.item is None:
            raise NotFound(404, {})
        return self.item

    async def create(self, path: str, body: Object, **rest: Any) -> Object:
        return await self._write(body, None)

    async def replace(self, path: str, body: Object, **rest: Any) -> Object:
        return await self._write(body, body["metadata"]["resourceVersion"])

    async def _write(self, body: Object, version: str | None) -> Object:
        fate = await self._answer()
        known = None if self.item is None else self.item["metadata"]["resourceVersion"]
        if version is not None and known is None:
            raise NotFound(404, {})
        if version != known:
            raise Conflict(409, {"reason": "Conflict"})
        self.version += 1
        self.item = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if fate == "done, but not answered":
            raise Unreachable("cut")
        await asyncio.sleep(0.01)
        return self.item

    async def _answer(self) -> str:
        fate = self.fate()
        await asyncio.sleep(0.01)
        if fate == "fails":
            raise Unreachable("no route")
        if fate == "refused":
            raise Refused(500, {})
        if fate == "slow":
            await asyncio.sleep(7)
        if fate == "hangs":
            await asyncio.sleep(3600)
        return fate

    @property
    def spec(self) -> Object:
        assert self.item is not None
        spec: Object = self.item["spec"]
        return spec


class Contender:
    """One process; its clock is off, and it may be stopped, as by SIGSTOP: its time goes on and it does not."""

    def __init__(self, server: Server, name: str, *, skew: float = 0.0, watches: str = "") -> None:
        self.stopped_until = 0.0
        pace = Pace(now=lambda: self.time() + skew, sleep=self._sleep, chance=lambda: 0.5)
        wall = lambda: 1_700_000_000 + self.time() + skew  # noqa: E731
        self.lease = Lease(cast("Door", server), "plimsoll", name, watches=watches, pace=pace, wall=wall)
        self.lost = 0

    @staticmethod
    def time() -> float:
        return asyncio.get_running_loop().time()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        while self.time() < self.stopped_until:
            await asyncio.sleep(self.stopped_until - self.time())

    async def live(self) -> None:
        while True:
            await self.lease.acquire()
            await self.lease.keep()
            self.lost += 1


async def never_both(contenders: list[Contender], seconds: float) -> float:
    """Looks often; answers how long nobody held it."""
    loop, without = asyncio.get_running_loop(), 0.0
    end = loop.time() + seconds
    while loop.time() < end:
        holding = [one for one in contenders if one.lease.held]
        assert len(holding) <= 1
        without += 0.1 * (not holding)
        await asyncio.sleep(0.1)
    return without


def test_one_of_two_holds_it_and_goes_on_holding_it() -> None:
    async def does() -> None:
        server = Server()
        contenders = [Contender(server, "a"), Contender(server, "b")]
        tasks = [asyncio.create_task(one.live()) for one in contenders]
        assert await never_both(contenders, 300) < 1
        assert [one.lost for one in contenders] == [0, 0]
        for task in tasks:
            task.cancel()

    run(does())


def test_who_is_stopped_holds_it_no_longer_when_it_goes_on() -> None:
    async def does() -> None:
        server = Server()
        first, second = Contender(server, "a"), Contender(server, "b")
        one = asyncio.create_task(first.live())
        await asyncio.sleep(1)
        two = asyncio.create_task(second.live())
        await asyncio.sleep(10)
        assert first.lease.held
        first.stopped_until = first.time() + 40
        without = await never_both([first, second], 60)
        assert [one.lease.held for one in (first, second)] == [False, True]
        assert first.lost == 1
        assert without < 15 + 2 * 2.4
        for task in (one, two):
            task.cancel()

    run(does())


def test_a_lease_that_is_released_is_had_by_another_at_once() -> None:
    async def does() -> None:
        server = Server()
        first, second = Contender(server, "a"), Contender(server, "b")
        await first.lease.acquire()
        waits = asyncio.create_task(second.lease.acquire())
        await asyncio.sleep(5)
        assert not waits.done()
        await first.lease.release()
        assert not first.lease.held
        await asyncio.sleep(3)
        assert second.lease.held
        assert server.spec["leaseTransitions"] == 2

    run(does())


@pytest.mark.parametrize("renewals", [0, 1])
def test_whoever_is_cancelled_in_the_middle_of_a_write_leaves_nobody_waiting(renewals: int) -> None:
    """Whether the write went through is not known to who did not wait for its answer."""

    async def does(after: float) -> None:
        server = Server()
        first, second = Contender(server, "a"), Contender(server, "b")
        living = asyncio.create_task(first.live())
        await asyncio.sleep(2 * renewals + after)
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)
        await first.lease.release()
        assert not first.lease.held
        await asyncio.wait_for(second.lease.acquire(), 1)
        assert server.spec["holderIdentity"] == "b"

    for step in range(1, 60):
        run(does(step / 1000))


def test_whoever_has_taken_it_too_slowly_takes_it_again() -> None:
    """As where the server comes back only just, and each answer takes its time."""

    async def does() -> None:
        fates = iter(["slow", "slow"])
        first = Contender(Server(lambda: next(fates, "")), "a")
        await first.lease.acquire()
        assert first.lease.held

    run(does())


def test_a_server_that_is_silent_keeps_nobody_from_ending() -> None:
    async def does() -> None:
        fates = iter(["", ""])
        first = Contender(Server(lambda: next(fates, "hangs")), "a")
        await first.lease.acquire()
        began = first.time()
        await first.lease.release()
        assert not first.lease.held
        assert first.time() - began < DURATION_SECONDS

    run(does())


def test_renewing_changes_the_time_and_nothing_else() -> None:
    async def does() -> None:
        server = Server()
        one = Contender(server, "a")
        keeps = asyncio.create_task(one.live())
        await asyncio.sleep(1)
        before = dict(server.spec)
        await asyncio.sleep(30)
        changed = {key for key in before if before[key] != server.spec[key]}
        assert changed == {"renewTime"}
        keeps.cancel()

    run(does())


def test_who_cannot_reach_the_server_gives_up_before_another_may_take_over() -> None:
    async def does() -> None:
        failing = {"": ""}
        server = Server(lambda: failing[""])
        one = Contender(server, "a")
        await one.lease.acquire()
        keeps = asyncio.create_task(one.lease.keep())
        await asyncio.sleep(20)
        failing[""] = "slow"
        began = one.time()
        await keeps
        assert 9 < one.time() - began < 12.5
        assert not one.lease.held

    run(does())


def test_a_lease_that_is_taken_away_is_lost_at_the_next_renewal() -> None:
    async def does() -> None:
        server = Server()
        one = Contender(server, "a")
        await one.lease.acquire()
        keeps = asyncio.create_task(one.lease.keep())
        await asyncio.sleep(5)
        stolen = {**server.spec, "holderIdentity": "thief"}
        server.item = {"metadata": {"resourceVersion": "900"}, "spec": stolen}
        await asyncio.wait_for(keeps, 3)
        assert not one.lease.held
        assert one.lease.holder == "thief"

    run(does())


def test_a_lease_that_is_edited_or_deleted_under_its_holder_is_kept() -> None:
    async def does() -> None:
        server = Server()
        one = Contender(server, "a")
        keeps = asyncio.create_task(one.live())
        await asyncio.sleep(5)
        assert server.item is not None
        server.item = {**server.item, "metadata": {"resourceVersion": "900"}}
        server.version = 900
        await asyncio.sleep(5)
        server.item = None
        await asyncio.sleep(6)
        assert one.lease.held
        assert one.lost == 0
        assert server.spec["holderIdentity"] == "a"
        keeps.cancel()

    run(does())


@pytest.mark.parametrize("other", ["team-a", "team-b", ""], ids=["alike", "not alike", "of a release before"])
def test_who_waits_for_one_that_watches_something_else_says_so_once(
    other: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As the second of two releases in one namespace, which share a Lease: it was ready and never acted."""

    async def does() -> None:
        server = Server()
        first, second = Contender(server, "a", watches=other), Contender(server, "b", watches="team-a")
        tasks = [asyncio.create_task(first.live())]
        await asyncio.sleep(1)
        tasks.append(asyncio.create_task(second.live()))
        await asyncio.sleep(60)
        assert (first.lease.held, second.lease.held) == (True, False)
        for task in tasks:
            task.cancel()

    run(does())
    words = "held by a, which watches team-b: until that ends this one, which watches team-a, does nothing"
    said = [one.getMessage() for one in caplog.records if "watches" in one.getMessage()]
    assert len(said) == (other == "team-b")
    assert all(words in one for one in said)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    skews=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=4),
    failing=st.floats(0, 0.9),
    stops=st.lists(st.tuples(st.integers(0, 3), st.floats(1, 200), st.floats(1, 60)), max_size=6),
)
def test_never_two_at_once_and_one_in_the_end(
    seed: int, skews: list[float], failing: float, stops: list[tuple[int, float, float]]
) -> None:
    chance = random.Random(seed)
    kinds = ("fails", "refused", "slow", "done, but not answered")
    calm = False

    def fate() -> str:
        return chance.choice(kinds) if not calm and chance.random() < failing else ""

    async def does() -> None:
        nonlocal calm
        server = Server(fate)
        contenders = [Contender(server, f"pod-{index}", skew=skew) for index, skew in enumerate(skews)]
        tasks = [asyncio.create_task(one.live()) for one in contenders]

        async def stop(who: int, at: float, seconds: float) -> None:
            await asyncio.sleep(at)
            contenders[who % len(contenders)].stopped_until = at + seconds

        tasks += [asyncio.create_task(stop(*one)) for one in stops]
        await never_both(contenders, 260)
        calm = True
        await never_both(contenders, 40)
        assert any(one.lease.held for one in contenders)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(does())
