"""What was learned over the life of processes: read first, written soon, and a person's hand counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from plimsoll.facts.learned import NOTHING, Learned, Residual, export_learned, import_learned, learned
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.learned_speed import Speed
from plimsoll.handlers.learning import Learning
from plimsoll.kube.engine_reports import EngineReports
from plimsoll.kube.errors import Conflict, Unreachable
from plimsoll.kube.learned_store import LearnedStore, Stored
from plimsoll.reconcile.lessons.measured import Measured
from tests.kube.virtual import run


def entry(model: str, size: int = 100) -> Residual:
    key = LearnedKey(model=model, gpu="H100", engine="vllm-0.33.0", flags="tp1")
    return Residual(key=key, term="activation", bytes=size, half_width=1, starts=1)


class Store:
    """The kept object and the admin's seed."""

    def __init__(self, own: Learned | None = None, seed: Learned | None = None) -> None:
        self.text = None if own is None else export_learned(own)
        self.seed = None if seed is None else export_learned(seed)
        self.version = 1 if own is not None else 0
        self.seed_version = 7
        self.writes = 0
        self.broken = False
        self.silent = False
        self.unanswered = False
        """The next write is done, and nobody hears of it."""
        self.asked = asyncio.Event()
        """Set when the first write comes; each takes a moment."""

    async def read(self) -> Stored:
        if self.silent:
            await asyncio.sleep(3600)
        if self.broken:
            raise Unreachable("no route")
        return Stored(self.text, str(self.version) if self.version else "")

    async def read_seed(self) -> Stored:
        return Stored(self.seed, "" if self.seed is None else str(self.seed_version))

    async def write(self, text: str, version: str) -> str:
        self.asked.set()
        await asyncio.sleep(0.5)
        if version != (str(self.version) if self.version else ""):
            raise Conflict(409, {})
        self.text, self.version = text, self.version + 1
        self.writes += 1
        if self.unanswered:
            self.unanswered = False
            raise Unreachable("the connection was cut")
        return str(self.version)

    def edit(self, value: Learned) -> None:
        """As a person does."""
        self.text, self.version = export_learned(value), self.version + 1


class Nobody:
    async def run(self) -> None:
        await asyncio.Event().wait()


Told = Callable[[Measured, Store, Learning], Awaitable[None]]


def living(store: Store, main: Told) -> float:
    """How many seconds it took to end."""

    async def all_of_it() -> float:
        measured = Measured()
        learning = Learning(measured, cast(EngineReports, Nobody()), cast(LearnedStore, store))
        await learning.load()
        task = asyncio.create_task(learning.run())
        try:
            await main(measured, store, learning)
        finally:
            told = asyncio.get_running_loop().time()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return asyncio.get_running_loop().time() - told

    return run(all_of_it())


def teach(measured: Measured, *entries: Residual) -> None:
    measured.know(learned([*measured.own.residuals, *entries]), measured.seed)
    measured.changed.set()


def kept(store: Store) -> set[str]:
    return set() if store.text is None else {one.key.model for one in import_learned(store.text).residuals}


def test_what_is_kept_and_the_seed_are_known_before_the_first_turn() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        assert {one.key.model for one in measured.known.residuals} == {"a", "b"}
        assert {one.key.model for one in measured.own.residuals} == {"a"}

    living(Store(learned([entry("a")]), learned([entry("b")])), main)


def test_who_waits_for_another_to_end_knows_what_that_one_learns_and_writes_nothing() -> None:
    async def main() -> None:
        measured, store = Measured(), Store(learned([entry("a")]))
        waiting = Learning(measured, cast(EngineReports, Nobody()), cast(LearnedStore, store))
        task = asyncio.create_task(waiting.follow())
        await asyncio.sleep(1)
        assert {one.key.model for one in measured.known.residuals} == {"a"}
        store.broken = True
        await asyncio.sleep(130)
        store.broken = False
        store.edit(learned([entry("a"), entry("b")]))
        await asyncio.sleep(130)
        assert {one.key.model for one in measured.known.residuals} == {"a", "b"}
        assert store.writes == 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_a_burst_of_starts_is_written_together_and_soon() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, entry("a"))
        await asyncio.sleep(1)
        teach(measured, entry("b"))
        await asyncio.sleep(10)
        assert (kept(store), store.writes) == ({"a", "b"}, 1)
        await asyncio.sleep(600)
        assert store.writes == 1

    living(Store(), main)


def test_what_a_person_takes_out_is_forgotten_and_stays_so() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        store.edit(learned([entry("b")]))
        await asyncio.sleep(130)
        assert {one.key.model for one in measured.known.residuals} == {"b"}
        teach(measured, entry("c"))
        await asyncio.sleep(130)
        assert kept(store) == {"b", "c"}
        store.text, store.version = None, 0
        await asyncio.sleep(130)
        assert not measured.known.residuals

    living(Store(learned([entry("a"), entry("b")])), main)


def test_a_store_that_cannot_be_read_at_first_loses_nothing() -> None:
    store = Store(learned([entry("a")]))
    store.broken = True

    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, entry("b"))
        await asyncio.sleep(30)
        assert kept(store) == {"a"}
        store.broken = False
        await asyncio.sleep(300)
        assert kept(store) == {"a", "b"}

    living(store, main)


UNREADABLE = ["{", "[" * 100_000, export_learned(learned([entry("c")])).replace('"schema": 1', '"schema": 2')]


@pytest.mark.parametrize("text", UNREADABLE, ids=["a typo", "too deep", "a newer release's"])
def test_text_that_nobody_can_read_stays_until_it_is_put_right_and_nothing_is_forgotten(text: str) -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        store.text, store.version = text, store.version + 1
        store.seed, store.seed_version = text, 8
        await asyncio.sleep(130)
        assert {one.key.model for one in measured.known.residuals} == {"a", "s"}
        teach(measured, entry("b"))
        await asyncio.sleep(130)
        assert {one.key.model for one in measured.known.residuals} == {"a", "b", "s"}
        assert (store.text, store.writes) == (text, 0)
        store.edit(learned([entry("a")]))
        await asyncio.sleep(130)
        teach(measured, entry("d"))
        await asyncio.sleep(130)
        assert kept(store) == {"a", "b", "d"}

    living(Store(learned([entry("a")]), learned([entry("s")])), main)


def test_what_was_learned_before_the_text_could_be_read_is_added_to_it() -> None:
    store = Store(learned([entry("a")]))
    store.text = "{"

    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, entry("b"))
        await asyncio.sleep(30)
        assert (store.text, store.writes) == ("{", 0)
        store.edit(learned([entry("a")]))
        await asyncio.sleep(130)
        assert kept(store) == {"a", "b"}

    living(store, main)


def test_what_a_ramp_taught_is_called_kept_only_once_it_outlives_the_process() -> None:
    key = entry("a").key
    speed = Speed(
        key=key,
        ttft=1.5,
        tpot=1.2,
        ttft_spread=1.5,
        tpot_spread=1.2,
        input_tokens=512,
        output_tokens=128,
        points=3,
        at=100,
    )

    async def main(measured: Measured, store: Store, _: Any) -> None:
        store.broken = True
        assert not measured.take(speed)
        await asyncio.sleep(100)
        assert not measured.take(speed), "nothing could be written"
        store.broken = False
        store.edit(learned([entry("b")]))
        await asyncio.sleep(300)
        assert measured.take(speed), "it is added to what somebody wrote meanwhile"
        assert store.text is not None
        assert import_learned(store.text).speed(key) == speed
        store.edit(learned([entry("b")]))
        await asyncio.sleep(130)
        assert measured.own.speed(key) is None, "a person's hand counts"

    living(Store(learned([entry("b")])), main)


def test_without_a_store_nothing_outlives_the_process_and_a_ramp_is_told_all_the_same() -> None:
    async def main() -> None:
        measured = Measured()
        task = asyncio.create_task(Learning(measured, cast(EngineReports, Nobody()), None).run())
        teach(measured, entry("a"))
        await asyncio.sleep(10)
        assert measured.kept == measured.own != NOTHING
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_what_was_learned_last_is_written_when_the_process_ends() -> None:
    store = Store()

    async def main(measured: Measured, store: Store, _: Any) -> None:
        await asyncio.sleep(1)
        teach(measured, entry("a"))

    living(store, main)
    assert kept(store) == {"a"}


def test_a_process_that_ends_while_it_writes_loses_nothing() -> None:
    store = Store()

    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, entry("a"))
        await store.asked.wait()

    living(store, main)
    assert kept(store) == {"a"}


def test_what_is_learned_during_a_write_is_written_next() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, entry("a"))
        await store.asked.wait()
        teach(measured, entry("b"))
        await asyncio.sleep(10)
        assert (kept(store), store.writes) == ({"a", "b"}, 2)

    living(Store(), main)


def test_what_is_learned_after_a_write_that_was_done_and_not_answered_is_written_next() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        store.unanswered = True
        teach(measured, entry("a"))
        await store.asked.wait()
        await asyncio.sleep(1)
        assert kept(store) == {"a"}
        teach(measured, entry("b"))
        await asyncio.sleep(300)
        assert kept(store) == {"a", "b"}
        assert {one.key.model for one in measured.own.residuals} == {"a", "b"}

    living(Store(), main)


def test_what_is_learned_just_before_a_person_s_hand_is_not_taken_out_with_what_that_takes_out() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, entry("c"))
        store.edit(learned([entry("b")]))
        await asyncio.sleep(300)
        assert kept(store) == {"b", "c"}

    living(Store(learned([entry("a"), entry("b")])), main)


def test_an_entry_that_a_person_takes_out_while_it_is_learned_on_stays_out() -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        teach(measured, replace(entry("a"), bytes=200, starts=2))
        store.edit(learned([entry("b")]))
        await asyncio.sleep(300)
        assert kept(store) == {"b"}
        assert {one.key.model for one in measured.own.residuals} == {"b"}

    living(Store(learned([entry("a"), entry("b")])), main)


def test_an_api_server_that_is_silent_when_the_process_ends_is_waited_for_for_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(measured: Measured, store: Store, _: Any) -> None:
        await asyncio.sleep(1)
        teach(measured, entry("a"))
        store.silent = True

    assert living(Store(), main) < 10
    assert "what was learned last is lost" in caplog.text
