"""What a request holds of a pool that tables of several kinds share."""

from __future__ import annotations

import pytest

from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.kv_groups import CachePlan
from plimsoll.planning.memory.kv_rules import cache_plan
from plimsoll.planning.settings import EngineSettings
from plimsoll.simulate.tables import Tables
from tests.planning.speed.test_performance import model


def planned(name: str, *, caching: bool = True) -> CachePlan:
    return cache_plan(
        model(name).architecture,
        gpu=gpu_named("H100-SXM-80GB"),
        layout=Layout(tensor=2),
        engine=engine_facts("vllm", "0.33.0"),
        settings=EngineSettings(
            max_model_len=16384,
            max_num_seqs=64,
            max_num_batched_tokens=8192,
            utilization=0.92,
            prefix_caching=caching,
        ),
    )


@pytest.mark.parametrize(
    ("name", "caching", "blocks"),
    [
        ("Qwen/Qwen3-32B", True, {600: 38, 1300: 82, 8300: 519}),
        # Six tables of a window of 1,024 tokens beside one of everything.
        ("google/gemma-3-27b-it", True, {600: 7 * 38, 1300: 82 + 6 * 65, 8300: 519 + 6 * 65}),
        # Three tables of states, each of one block, or of three where states are cached.
        ("Qwen/Qwen3.5-27B", False, {600: 1 + 3, 1300: 2 + 3, 8300: 11 + 3}),
        ("Qwen/Qwen3.5-27B", True, {600: 1 + 9, 1300: 2 + 9, 8300: 10 + 9}),
        ("openai/gpt-oss-20b", True, {600: 38 + 9, 1300: 82 + 9, 8300: 519 + 9}),
    ],
)
def test_a_request_holds_blocks_in_every_table(name: str, caching: bool, blocks: dict[int, int]) -> None:
    tables = Tables.of(planned(name, caching=caching))
    assert {tokens: tables.held(tokens, tokens) for tokens in blocks} == blocks


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3-32B", "google/gemma-3-27b-it", "Qwen/Qwen3.5-27B", "openai/gpt-oss-20b"]
)
@pytest.mark.parametrize("tokens", [1, 100, 5000, 16384])
def test_it_holds_no_more_than_the_engine_asks_for_at_the_worst_moment(name: str, tokens: int) -> None:
    plan = planned(name)
    assert 0 < Tables.of(plan).held(tokens, tokens) <= plan.blocks_for(tokens)


def test_where_all_layers_are_alike_there_is_one_table() -> None:
    assert Tables.of(planned("Qwen/Qwen3-32B")) == Tables((16,))
    assert Tables((16,)).only == 16
    assert Tables((16, 16)).only == Tables((16,), ((16, 9),)).only == 0
