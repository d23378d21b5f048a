"""Bounds only spare work: what is chosen is what weighing everything would choose."""

import pytest

from plimsoll.planning.choice import weighing
from plimsoll.planning.layouts.rules import MODEL_RULES
from tests.planning.asking import LLAMA, LLAMA_70B, QWEN_32B, QWEN_MOE, R1, deployment, planned, pool

FLEET = (
    pool(nodes=3),
    pool("H200-SXM-141GB", nodes=1),
    pool("B200-SXM", nodes=1),
    pool("L40S-48GB", 4, 4),
    pool("A100-SXM-80GB", nodes=2),
    pool("L4-24GB", 1, 6),
    pool("MI300X", nodes=1),
)
PRICED = tuple(
    pool(gpu, size, nodes, price_per_hour=price)
    for gpu, size, nodes, price in (
        ("H100-SXM-80GB", 8, 3, "2.5"),
        ("L40S-48GB", 4, 4, "0.9"),
        ("A100-SXM-80GB", 8, 2, "1.4"),
        ("L4-24GB", 1, 40, "0.4"),
    )
)


@pytest.mark.parametrize("fleet", [FLEET, PRICED], ids=["GPU-hours", "money"])
@pytest.mark.parametrize(
    ("model", "workload"),
    [
        (LLAMA, {"preset": "chat"}),
        (LLAMA, {"preset": "chat", "concurrency": 900}),
        (LLAMA, {"preset": "batch", "requestsPerSecond": "40"}),
        (QWEN_32B, {"preset": "tool-calling", "concurrency": 35}),
        (LLAMA_70B, {"preset": "code-completion"}),
        (QWEN_MOE, {"preset": "reasoning", "concurrency": 60}),
        (R1, {"preset": "chat"}),
        ("google/gemma-3-27b-it", {"preset": "long-documents"}),
    ],
    ids=lambda value: value.rpartition("/")[2] if isinstance(value, str) else "",
)
def test_bounds_never_change_what_is_chosen(model, workload, fleet, monkeypatch):
    asked = deployment(model, workload=workload)
    bounded = planned(asked, *fleet)
    monkeypatch.setattr(weighing._Weighing, "matters", lambda self, prospect: True)
    monkeypatch.setattr(weighing, "MOST_MISSES", 10**6)
    everything = planned(asked, *fleet)
    assert bounded.sets == everything.sets
    assert [other.sets for other in bounded.alternatives] == [other.sets for other in everything.alternatives]


FOUR = tuple(pool(gpu, 8, 2) for gpu in ("H100-SXM-80GB", "A100-SXM-80GB", "L40S-48GB", "L4-24GB"))


@pytest.mark.parametrize(
    ("fleet", "rate", "most"),
    [(FOUR, "42", 1), (FLEET, "100", 2), (FLEET, "400", 5)],
    ids=["one", "two", "five"],
)
def test_bounds_never_change_what_is_chosen_where_the_number_of_replicas_ends(fleet, rate, most, monkeypatch):
    asked = deployment(
        LLAMA,
        workload={"preset": "chat", "requestsPerSecond": rate},
        scaling={"min": 1, "max": most},
    )
    bounded = planned(asked, *fleet)
    monkeypatch.setattr(weighing._Weighing, "matters", lambda self, prospect: True)
    monkeypatch.setattr(weighing, "MOST_MISSES", 10**6)
    assert bounded.sets == planned(asked, *fleet).sets


def test_layouts_are_turned_down_by_a_rule_or_by_cost_and_none_is_forgotten():
    made = planned(deployment(workload={"preset": "chat"}), *FLEET)
    rules = {row.rule for row in made.rejected}
    assert "cost" in rules
    assert rules - {name for name, _ in MODEL_RULES} <= {
        "cost",
        "memory",
        "pcie",
        "node",
        "pool",
        "nvlink-domain",
        "pipeline-in-node",
        "partitioned",
        "share",
        "nodes",
        "context-parallel",
        "target",
        "fp8-block",
        "marlin-shard",
        "quantization-group",
        "weight-format",
        "interconnect",
    }
    everywhere = [row for row in made.rejected if row.rule in {"heads", "dense-data"}]
    assert everywhere
    assert all(row.hardware == () for row in everywhere)


def test_more_than_a_plan_can_hold_is_cut_and_the_telling_ones_stay():
    made = planned(deployment(R1, workload={"preset": "chat"}), *FLEET)
    assert len(made.rejected) <= weighing.MOST_REJECTED


def test_sizes_that_the_user_fixed_are_tried_however_large_they_are_together():
    asked = deployment(LLAMA_70B, topology={"mode": "manual", "tensor": 8, "pipeline": 2})
    made = planned(asked, pool(nodes=4))
    assert [str(one.layout) for one in made.sets] == ["tp8-pp2"]
