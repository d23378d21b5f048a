"""Blocks of prompt tokens that requests share in one engine's cache."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.lengths import Length
from plimsoll.simulate.arrivals import Lengths, draw_arrivals
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.prefixes import PREFIX_BLOCK, Prefixes
from plimsoll.simulate.request import Request
from plimsoll.simulate.tables import Tables
from plimsoll.simulate.traces import RateTrace
from tests.simulate.worlds import LIMITS, TIMES

SIZES = [16, 96, 528, 784, 1072]
"""Of engines' blocks: of those of hybrid models none divides what an id stands for."""


@pytest.mark.parametrize("free", [-1, 0])
def test_where_no_memory_is_free_nothing_that_nobody_uses_stays(free: int) -> None:
    prefixes = Prefixes(Tables((16,)))
    prefixes.take([1, 2])
    prefixes.release([1, 2])
    prefixes.trim(free)
    assert prefixes.held([1, 2]) == 0


def test_what_was_used_last_stays_longest() -> None:
    prefixes = Prefixes(Tables((512,)))
    for ids in ([1, 2], [1, 3]):
        prefixes.take(ids)
        prefixes.release(ids)
    prefixes.trim(2)
    assert (prefixes.held([1, 3]), prefixes.held([1, 2])) == (2, 1)


def test_of_a_prompt_that_is_cached_whole_the_last_token_is_computed_all_the_same() -> None:
    engine = Engine(
        TIMES, replace(LIMITS, block_size=16, blocks=4000, max_model_len=8192, max_num_batched_tokens=8192)
    )
    for at in (0.0, 100.0):
        engine.submit(Request(at, 2 * PREFIX_BLOCK, 10, (1, 2)), at)
        engine.advance(at + 100)
    assert engine.prefix_hits == 2 * PREFIX_BLOCK - 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sharers", [1, 2, 5])
def test_requests_that_share_a_beginning_hold_its_whole_blocks_once_and_all_else_each(
    size: int, sharers: int
) -> None:
    tokens, output = 5 * PREFIX_BLOCK + 100, 10
    engine = Engine(
        TIMES, replace(LIMITS, block_size=size, blocks=4000, max_model_len=8192, max_num_batched_tokens=8192)
    )
    for _ in range(sharers):
        engine.submit(Request(0.0, tokens, output, (1, 2, 3, 4, 5)), 0.0)
    while len(engine.running) < sharers:
        engine.advance(engine.now + 1e-6)
    shared = 5 * PREFIX_BLOCK // size
    alone = -(-(tokens + 1) // size)
    assert 4000 - engine.free_blocks in range(
        shared + sharers * (alone - shared - 1), shared + sharers * (alone - shared) + 1
    )
    engine.advance(1e6)
    assert engine.free_blocks == 4000


@given(
    size=st.sampled_from(SIZES),
    asked=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 300), st.integers(1, 200)), max_size=30
    ),
)
def test_no_more_is_ever_free_than_there_is_and_in_the_end_all_is(
    size: int, asked: list[tuple[int, int, int, int]]
) -> None:
    engine = Engine(
        TIMES, replace(LIMITS, block_size=size, blocks=64, max_model_len=4096, max_num_batched_tokens=2048)
    )
    for place, (kind, ids, more, output) in enumerate(asked):
        prefix = tuple(10 * kind + one for one in range(ids))
        engine.submit(Request(0.1 * place, ids * PREFIX_BLOCK + more, output, prefix), 0.1 * place)
        assert 0 <= engine.kv_fraction <= 1
    engine.advance(1e6)
    assert engine.free_blocks == 64


@given(asked=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 9)), max_size=40))
def test_what_is_still_there_is_what_was_used_last_of_all_that_passed_through_the_pool(
    asked: list[tuple[int, int, int]],
) -> None:
    """Beside a twin that hands out each block: other requests, and answers, take the place of what nobody uses, too."""
    engine = Engine(
        TIMES,
        replace(
            LIMITS, block_size=PREFIX_BLOCK, blocks=14, max_model_len=14 * 512, max_num_batched_tokens=8192
        ),
    )
    free: OrderedDict[int, None] = OrderedDict.fromkeys(range(14))
    holds: dict[int, int] = {}
    """Ids by block."""
    for kind, ids, more in asked:
        prefix = tuple(10 * kind + one for one in range(ids))
        at, before = engine.now, engine.prefix_hits
        engine.submit(Request(at, ids * PREFIX_BLOCK + 1, (more - 1) * PREFIX_BLOCK + 1, prefix), at)
        engine.advance(at + 1e6)
        blocks = {one: block for block, one in holds.items()}
        hits: list[int] = []
        for one in prefix:
            if one not in blocks:
                break
            hits.append(blocks[one])
            del free[blocks[one]]
        assert engine.prefix_hits - before == len(hits) * PREFIX_BLOCK
        taken = hits + [free.popitem(last=False)[0] for _ in range(ids + more - len(hits))]
        holds.update(dict.fromkeys(taken[len(hits) :], -1))
        holds.update(zip(taken, prefix, strict=False))
        free.update(dict.fromkeys(reversed(taken)))


@pytest.mark.parametrize(("shared", "cached"), [(200, 192), (500, 496), (819, 816)])
def test_a_declared_beginning_is_shared_to_its_last_whole_block(shared: int, cached: int) -> None:
    lengths = Lengths(input=Length(300, 0.0), output=Length(10, 0.0), shared_tokens=shared)
    rates = RateTrace(name="even", at=(0.0,), rates=(1.0,), cvs=(0.0,), last_s=60.0)
    arrivals = draw_arrivals(rates, lengths, seed=1)
    assert arrivals.prefixes is not None
    engine = Engine(TIMES, LIMITS, prefix_tokens=arrivals.prefix_tokens)
    for at, given_tokens, prefix in zip(arrivals.at, arrivals.inputs, arrivals.prefixes, strict=True):
        engine.submit(Request(at, given_tokens, 10, prefix), at)
    engine.advance(1e6)
    assert engine.prefix_hits == cached * (len(arrivals) - 1)
