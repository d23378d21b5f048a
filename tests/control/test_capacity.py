"""What a plan says that a replica carries is what its limits allow, whatever little was declared."""

from dataclasses import replace

import pytest

from plimsoll.control.capacity import NEAR, SURE, capacity_of
from tests.planning.asking import LLAMA, QWEN_MOE, deployment, planned, pool


def capacity(model=LLAMA, topology=None, **workload):
    lengths = {"inputTokens": {"p50": 800, "p95": 2000}, "outputTokens": {"p50": 200, "p95": 400}}
    asked = deployment(
        model,
        workload={**lengths, "contextTokens": 8192, **workload},
        slo={"ttftP99Ms": 2000, "itlP99Ms": 60},
        **({"topology": topology} if topology else {}),
    )
    (one,) = planned(asked, pool(nodes=2)).sets
    return one, capacity_of(one)


LOADS = [{}, {"requestsPerSecond": "0.5"}, {"requestsPerSecond": "30"}, {"concurrency": 4}]


@pytest.mark.parametrize("workload", LOADS, ids=str)
def test_a_replica_carries_as_much_whatever_load_is_declared(workload):
    _, declared = capacity(**workload)
    _, nothing = capacity()
    assert declared.concurrency == nothing.concurrency
    assert declared.requests_per_second == pytest.approx(nothing.requests_per_second)
    assert declared.requests_per_second > 1


def test_a_plan_of_the_release_before_says_only_what_it_predicted_for_nearly_as_many():

    one, known = capacity(requestsPerSecond="0.5")
    before = replace(one, most_per_second=None)
    assert before.load.concurrency < NEAR * before.max_concurrency
    assert capacity_of(before).requests_per_second is None
    full = replace(before, load=replace(before.load, concurrency=before.max_concurrency))
    assert capacity_of(full).requests_per_second == before.performance.requests_per_second
    assert known.requests_per_second == pytest.approx(SURE * one.most_per_second)


TOPOLOGIES = [{"tensor": 2, "data": 4}, {"tensor": 1, "data": 8, "expertParallel": True}, {"tensor": 8}]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_what_is_set_for_each_rank_is_there_once_for_each(topology):
    """The engines' metrics are sums over all ranks of a replica, and so is what the plan predicts of it."""
    one, known = capacity(QWEN_MOE, topology)
    ranks, pool = one.layout.data, one.ledger.capacity
    assert ranks == topology.get("data", 1)
    assert known.max_num_seqs == ranks * one.settings.max_num_seqs >= known.concurrency
    assert known.max_batched_tokens == ranks * one.settings.max_num_batched_tokens
    assert known.kv_tokens == pytest.approx(ranks * pool.blocks.mid * pool.block_size, abs=ranks)


def test_each_stage_of_a_pipeline_has_a_step_of_its_own_under_way():
    """As throughput is predicted: what steps carry is that of all stages, while the cap on requests is of all of them together."""
    one, known = capacity(QWEN_MOE, {"tensor": 4, "pipeline": 2})
    assert one.layout.pipeline == 2
    assert known.max_batched_tokens == 2 * one.settings.max_num_batched_tokens
    assert known.max_num_seqs == one.settings.max_num_seqs
