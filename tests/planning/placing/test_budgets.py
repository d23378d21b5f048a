"""What an admin lets a namespace take holds in every unit, and is named where it binds."""

import pytest

from plimsoll.planning.plan import Outcome, Severity
from tests.planning.asking import LLAMA_70B, SMALL, cpu_pool, deployment, finding, planned, pool, reasons

CHAT = {"preset": "chat"}


def test_a_namespace_budget_caps_and_is_named():
    config = {"budgets": [{"namespace": "team-a", "gpus": 2}]}
    made = planned(deployment(workload=CHAT, replicas=5), pool(), config=config)
    assert made.devices <= 2
    assert "BudgetExhausted" in reasons(made)
    alone = planned(
        deployment(LLAMA_70B, workload=CHAT), pool(), config={"budgets": [{"namespace": "*", "gpus": 1}]}
    )
    assert alone.outcome is Outcome.DOES_NOT_FIT
    assert any(row.rule == "budget" for row in alone.rejected)


@pytest.mark.parametrize(
    ("bound", "field"),
    [
        ({"gpus": 0}, "budgets.gpus"),
        ({"gpusByProduct": [{"product": "H100-SXM-80GB", "gpus": 0}]}, "budgets.gpusByProduct"),
        ({"maxReplicas": 0}, "budgets.maxReplicas"),
        ({"gpus": 0, "maxReplicas": 0}, "budgets.gpus and budgets.maxReplicas"),
    ],
)
def test_what_helps_against_a_budget_names_the_field_that_bounds(bound: dict[str, object], field: str):
    config = {"budgets": [{"namespace": "team-a", **bound}]}
    made = planned(deployment(workload=CHAT), pool(), config=config)
    said = finding(made, "BudgetExhausted").remedy
    assert f"a larger {field} in the admin's config" in said


def test_cpus_count_against_no_budget_of_gpus():
    made = planned(
        deployment(SMALL, workload=CHAT, topology={"cpu": {}}),
        cpu_pool(),
        config={"budgets": [{"namespace": "*", "gpus": 0}]},
    )
    assert made.outcome is Outcome.FITS
    assert "host-hours" in made.choice


def test_a_partition_counts_against_the_budget_of_its_card():
    slice_of = pool("A100-SXM-80GB", 7, partition="1g.10gb", card="A100-SXM-80GB", memory_bytes=20 * 2**30)
    config = {"budgets": [{"namespace": "*", "gpusByProduct": [{"product": "A100-SXM-80GB", "gpus": 1}]}]}
    made = planned(deployment(SMALL, workload=CHAT, replicas=9), slice_of, config=config)
    assert made.replicas == 7


def test_money_that_cannot_be_counted_is_said_where_it_is_bounded():
    made = planned(deployment(workload=CHAT, cost={"maxPerHour": "5"}), pool())
    told = finding(made, "PricesUnknown")
    assert (told.severity, told.field) == (Severity.WARNING, "cost.maxPerHour")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"prices": {"gpuHour": [{"product": "H1000", "perHour": "2"}]}}, "prices.gpuHour"),
        (
            {"budgets": [{"namespace": "*", "gpusByProduct": [{"product": "H1000", "gpus": 1}]}]},
            "budgets.gpusByProduct",
        ),
    ],
)
def test_products_that_the_admin_misspelt_are_said(config, field):
    told = finding(planned(deployment(workload=CHAT), pool(), config=config), "UnknownGPU")
    assert (told.severity, told.field, told.value) == (Severity.WARNING, field, "H1000")
