"""Costs are compared in money unless a GPU that holds the model has no price."""

import pytest

from tests.planning.asking import QWEN_32B, deployment, finding, planned, pool, reasons

PRICED = (pool(price_per_hour="2.00"), pool("H200-SXM-141GB", price_per_hour="9.00"))
TOO_SMALL = pool("T4-16GB", 1, 1)
CHAT = {"preset": "chat"}
UNPRICED = pool("A100-SXM-80GB", 1, 1)


def test_a_gpu_without_a_price_that_cannot_hold_the_model_leaves_the_prices_in_force():
    made = planned(deployment(QWEN_32B), *PRICED, TOO_SMALL)
    assert [str(chosen.hardware) for chosen in made.sets] == ["H100-SXM-80GB"]
    assert made.choice.startswith("the least money for each output token at a modest load, among ")
    assert made.choice.endswith(" layouts that fit on 2 kinds of GPU")
    assert "PricesUnknown" not in reasons(made)
    assert "cost" not in {row.rule for row in made.rejected if "T4-16GB" in row.hardware}
    assert made.sets == planned(deployment(QWEN_32B), *PRICED).sets


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ((UNPRICED,), "A100-SXM-80GB has"),
        ((UNPRICED, TOO_SMALL), "A100-SXM-80GB has"),
        ((UNPRICED, pool("B200-SXM", 1)), "A100-SXM-80GB and B200-SXM have"),
        (
            (UNPRICED, *(pool(gpu, 8) for gpu in ("B200-SXM", "L40S-48GB", "MI300X", "MI325X"))),
            "A100-SXM-80GB, B200-SXM, L40S-48GB and 2 more have",
        ),
    ],
)
def test_those_without_a_price_that_hold_the_model_are_named(others, named):
    made = planned(deployment(QWEN_32B), *PRICED, *others)
    told = finding(made, "PricesUnknown").message
    assert told == f"{named} no price, so costs are compared in GPU-hours"
    assert made.choice.startswith("the least GPU-hours ")


def test_a_gpu_that_holds_the_model_and_misses_the_target_counts_as_one_that_holds_it():
    made = planned(deployment(QWEN_32B, slo={"itlP99Ms": 1}, workload=CHAT), *PRICED, UNPRICED)
    assert {"Unattainable", "PricesUnknown"} <= set(reasons(made))


def test_where_nothing_has_a_price_nothing_is_worked_out_to_know_it(monkeypatch):
    monkeypatch.setattr("plimsoll.planning.choice.money.Prospects", None)
    made = planned(deployment(QWEN_32B), pool(), TOO_SMALL)
    assert finding(made, "PricesUnknown").message.startswith("H100-SXM-80GB has no price, ")


def test_prices_that_come_into_force_move_nothing_that_serves_and_say_what_would_be_cheaper():
    asked = deployment(QWEN_32B)
    pinned = planned(asked, PRICED[1])
    stands = planned(asked, *PRICED, TOO_SMALL, pinned=pinned)
    assert [chosen.digest for chosen in stands.sets] == [chosen.digest for chosen in pinned.sets]
    assert stands.pinning.kept
    assert "would cost 2 instead of 9 an hour" in stands.pinning.better.replace(".00", "")
