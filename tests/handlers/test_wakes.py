"""Turns of keys, on the loop's own clock with delays of no length."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from plimsoll.handlers import wakes
from plimsoll.handlers.ending import ended
from plimsoll.handlers.wakes import Wakes
from plimsoll.kube.errors import Unreachable
from tests.kube import virtual


async def settle(queue: Wakes, what: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
    """Run until nothing is due."""
    task = asyncio.create_task(queue.run())
    await asyncio.sleep(0)
    if what is not None:
        await what()
    for _ in range(200):
        await asyncio.sleep(0.001)
        if queue.idle:
            break
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_many_wakes_of_a_key_make_one_turn() -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        async def turn(key: str) -> None:
            seen.append(key)

        queue = Wakes(turn)
        for _ in range(5):
            queue.wake("a")
        queue.wake("b")
        await settle(queue)
        return seen

    assert asyncio.run(main()) == ["a", "b"]


def test_a_wake_during_a_turn_makes_one_more_and_never_two_at_once() -> None:
    async def main() -> tuple[int, int]:
        turns, running, most = 0, 0, 0
        gate = asyncio.Event()

        async def turn(key: str) -> None:
            nonlocal turns, running, most
            turns, running = turns + 1, running + 1
            most = max(most, running)
            await gate.wait()
            running -= 1

        queue = Wakes(turn)
        queue.wake("a")

        async def what() -> None:
            await asyncio.sleep(0.005)
            for _ in range(3):
                queue.wake("a")
            gate.set()

        await settle(queue, what)
        return turns, most

    assert asyncio.run(main()) == (2, 1)


def test_no_more_turns_run_at_once_than_allowed() -> None:
    async def main() -> int:
        running, most = 0, 0

        async def turn(key: str) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

        queue = Wakes(turn, at_once=3)
        for number in range(20):
            queue.wake(str(number))
        await settle(queue)
        return most

    assert asyncio.run(main()) == 3


def test_a_failing_turn_is_tried_again_and_its_neighbours_are_not_held_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wakes, "FIRST_BACKOFF", 0.001)

    async def main() -> list[str]:
        seen: list[str] = []

        async def turn(key: str) -> None:
            seen.append(key)
            if key == "bad" and seen.count("bad") < 3:
                raise RuntimeError("no")

        queue = Wakes(turn)
        queue.wake("bad")
        queue.wake("good")
        task = asyncio.create_task(queue.run())
        while seen.count("bad") < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        return seen

    assert asyncio.run(main()) == ["bad", "good", "bad", "bad"]
    assert "turn of bad failed" in caplog.text


def test_a_turn_that_asks_is_looked_at_again_at_the_earliest_time_asked_for() -> None:
    async def main() -> int:
        seen: list[str] = []

        async def turn(key: str) -> float | None:
            seen.append(key)
            return 0.002 if len(seen) < 3 else None

        queue = Wakes(turn)
        queue.wake("a")
        queue.wake_in("a", 3600)
        task = asyncio.create_task(queue.run())
        while len(seen) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        return len(seen)

    assert asyncio.run(main()) == 3


@pytest.mark.parametrize(("error", "longest"), [(Unreachable("gone"), 30.0), (ValueError("ours"), 300.0)])
def test_an_api_server_that_comes_back_after_minutes_is_not_waited_for_as_long_again(
    error: Exception, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(Wakes, "wake_in", lambda _, key, seconds: waits.append(seconds))

    async def main() -> None:
        async def turn(key: str) -> None:
            raise error

        queue = Wakes(turn)
        for _ in range(40):
            queue.wake("a")
            await settle(queue)

    asyncio.run(main())
    assert (waits[:3], max(waits), len(waits)) == ([1.0, 2.0, 4.0], longest, 40)


def test_what_needs_nothing_more_is_not_remembered() -> None:
    async def main() -> tuple[int, int]:
        seen: list[str] = []

        async def turn(key: str) -> float | None:
            seen.append(key)
            return 3600.0 if key == "stays" else None

        queue = Wakes(turn)
        queue.wake("stays")
        for number in range(10):
            queue.wake(f"gone-{number}")
        await settle(queue)
        queue.wake("gone-0")
        await settle(queue)
        return len(queue), len(seen)

    assert asyncio.run(main()) == (1, 12)


@pytest.mark.parametrize("steps", range(5))
def test_it_ends_though_a_wake_comes_as_it_is_told_to(steps: int) -> None:
    async def main() -> None:
        async def turn(_: str) -> None: ...

        queue = Wakes(turn)
        queue.wake_in("later", 3600)
        task = asyncio.create_task(queue.run())
        await asyncio.sleep(0.01)
        queue.wake("a")
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=60)
        assert done

    asyncio.run(main())


def test_a_turn_that_does_not_end_soon_is_cut_off_where_the_process_ends_and_its_neighbours_are_finished(
    caplog: pytest.LogCaptureFixture,
) -> None:
    finished: list[str] = []

    async def main() -> float:
        async def turn(key: str) -> None:
            await asyncio.sleep(3600 if key == "hangs" else 1)
            finished.append(key)

        queue = Wakes(turn)
        for key in ("hangs", "moves"):
            queue.wake(key)
        task = asyncio.create_task(queue.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await ended(task)
        assert queue.idle
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) < 10
    assert finished == ["moves"]
    assert "turn of hangs is cut off" in caplog.text
    assert "turn of moves" not in caplog.text
