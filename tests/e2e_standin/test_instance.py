"""One stand-in engine in virtual time: answers, deaths, hangs and drains, and what its metrics page says of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from plimsoll.load.exposition import read_exposition
from plimsoll.prometheus.exposition import sample_of
from plimsoll.prometheus.vocabulary import vocabulary
from standin.instance import Aborted, Died, Instance, Refused, State
from standin.told import LIMITS, Told
from tests.load.virtual import virtually

TOLD = Told()
SMALL = replace(TOLD, limits=replace(LIMITS, blocks=40, max_model_len=512, max_num_seqs=8))


@asynccontextmanager
async def running(told: Told = TOLD) -> AsyncIterator[Instance]:
    instance = Instance(told)
    try:
        yield instance
    finally:
        await instance.close()


def values(instance: Instance) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in read_exposition(instance.metrics()):
        found[one.name] = found.get(one.name, 0.0) + one.value
    return found


def test_tokens_come_when_the_model_says():
    async def work() -> list[tuple[float, int]]:
        async with running() as instance:
            loop = asyncio.get_running_loop()
            begin = loop.time()
            return [(loop.time() - begin, there) async for there in instance.answer(100, 4)]

    times = TOLD.times
    first = times.chunk + 100 * times.prompt_token + times.seen_token * 100 * 50
    seen = virtually(work())
    assert [there for _, there in seen] == [1, 2, 3, 4]
    assert seen[0][0] == pytest.approx(first, abs=1e-3)
    gaps = [after - before for (before, _), (after, _) in pairwise(seen)]
    assert gaps == pytest.approx([times.decode[1]] * 3, rel=0.01)


def test_the_page_counts_what_was_answered_and_is_read_as_an_engines():
    async def work() -> tuple[dict[str, float], str]:
        async with running() as instance:
            await asyncio.gather(*(_all(instance, 50, 10) for _ in range(3)))
            return values(instance), instance.metrics()

    counted, page = virtually(work())
    assert counted["vllm:request_success_total"] == 3
    assert counted["vllm:prompt_tokens_total"] == 150
    assert counted["vllm:generation_tokens_total"] == 30
    assert counted["vllm:inter_token_latency_seconds_count"] == 27
    assert counted["vllm:iteration_tokens_total_sum"] == 180
    sample = sample_of(page, vocabulary([TOLD.facts.metrics]), pod="p", at=0.0)
    assert (sample.kv_tokens, sample.block_size, sample.finished, sample.running) == (32_000, 16, 3, 0)
    assert sample.ttft is not None
    assert sample.ttft.count == 3


async def _all(instance: Instance, given: int, asked: int) -> int:
    there = 0
    async for now in instance.answer(given, asked):
        there = now
    return there


def test_a_full_cache_preempts_and_all_are_answered_all_the_same():
    async def work() -> tuple[list[int], dict[str, float]]:
        async with running(SMALL) as instance:
            answers = await asyncio.gather(*(_all(instance, 60, 100) for _ in range(8)))
            return answers, values(instance)

    answers, counted = virtually(work())
    assert answers == [100] * 8
    assert counted["vllm:num_preemptions_total"] > 0
    assert counted["vllm:kv_cache_usage_perc"] == 0


def test_a_client_that_goes_away_frees_its_place():
    async def work() -> tuple[int, float]:
        async with running() as instance:
            task = asyncio.create_task(_all(instance, 50, 1000))
            await asyncio.sleep(1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return instance.busy, values(instance)["vllm:request_success_total"]

    assert virtually(work()) == (0, 1)


@pytest.mark.parametrize(("what", "error"), [(Instance.die, Died), (Instance.abort, Aborted)])
def test_a_death_and_an_abort_end_what_is_answered(what, error: type[Exception]):
    async def work() -> object:
        async with running() as instance:
            task = asyncio.create_task(_all(instance, 50, 1000))
            await asyncio.sleep(1)
            what(instance)
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            return ended

    assert isinstance(virtually(work()), error)


def test_one_that_hangs_is_alive_and_moves_no_token():
    async def work() -> tuple[dict[str, float], dict[str, float], State]:
        async with running() as instance:
            tasks = [asyncio.create_task(_all(instance, 50, 1000))]
            await asyncio.sleep(1)
            instance.hang()
            before = values(instance)
            tasks.append(asyncio.create_task(_all(instance, 50, 1000)))
            await asyncio.sleep(5)
            after = values(instance)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return before, after, instance.state

    before, after, state = virtually(work())
    assert state is State.HUNG
    assert before["vllm:num_requests_running"] == after["vllm:num_requests_running"] == 1
    assert before["vllm:generation_tokens_total"] == after["vllm:generation_tokens_total"] > 0


def test_one_that_drains_finishes_what_runs_and_aborts_what_comes():
    async def work() -> tuple[int, object]:
        async with running() as instance:
            task = asyncio.create_task(_all(instance, 50, 100))
            await asyncio.sleep(0.5)
            instance.drain()
            (late,) = await asyncio.gather(_all(instance, 5, 5), return_exceptions=True)
            return await task, late

    answered, late = virtually(work())
    assert answered == 100
    assert isinstance(late, Aborted)


def test_what_is_there_when_the_drain_ends_is_told_though_nobody_had_come_to_it():
    """A busy machine: the last steps end, and who looks whether all is done comes before who tells of tokens."""

    async def work() -> int:
        loop, ahead = asyncio.get_running_loop(), [0.0]
        instance = Instance(TOLD, clock=lambda: loop.time() + ahead[0])
        task = asyncio.create_task(_all(instance, 50, 100))
        await asyncio.sleep(0.1)
        ahead[0] = 100.0
        instance.drain()
        instance.look()
        assert not instance.busy
        instance.abort()
        return await task

    assert virtually(work()) == 100


def test_a_restart_begins_all_counters_anew():
    async def work() -> dict[str, float]:
        async with running() as instance:
            await _all(instance, 50, 10)
            instance.restart()
            return values(instance)

    assert virtually(work())["vllm:generation_tokens_total"] == 0


def test_a_queue_with_a_bound_refuses_and_counts_it():
    limits = replace(LIMITS, max_num_seqs=1, max_queued=1)

    async def work() -> tuple[list[type], float]:
        async with running(replace(TOLD, limits=limits)) as instance:
            tasks = []
            for _ in range(4):
                tasks.append(asyncio.create_task(_all(instance, 50, 50)))
                await asyncio.sleep(0.05)
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            return [type(one) for one in ended], values(instance)["vllm:admission_rejections_total"]

    kinds, rejected = virtually(work())
    assert kinds == [int, int, Refused, Refused]
    assert rejected == 2


def test_a_prompt_that_was_there_before_is_found_in_the_cache():
    async def work() -> float:
        async with running() as instance:
            for _ in range(2):
                async for _ in instance.answer(1100, 2, (1, 2)):
                    pass
            return values(instance)["vllm:prefix_cache_hits_total"]

    assert virtually(work()) == 1024
