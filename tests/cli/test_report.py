"""What a plan looks like, from plans made by hand; the goldens are reviewed as people would read them."""

from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.cli import drawing
from plimsoll.cli.remarks import Style
from plimsoll.cli.report import fleet_report
from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.plan import Finding, Outcome, Pinning, Severity
from tests.cli.plans import fleet, misfit, plan, plan_set

GOLDEN = Path(__file__).parent / "golden"


def shown(capsys, plans, **style) -> str:
    drawing.show(fleet_report(plans, Style(**style)))
    out: str = capsys.readouterr().out
    return out


@pytest.mark.parametrize(
    ("name", "plans", "style"),
    [
        ("fits", fleet(plan()), {"currency": "EUR"}),
        ("misfit", fleet(misfit()), {}),
        ("two", fleet(), {}),
        ("everything", fleet(plan()), {"everything": True}),
    ],
)
def test_a_report_reads_as_it_was_reviewed(name, plans, style, capsys, golden):
    golden(GOLDEN / f"{name}.txt", shown(capsys, plans, **style))


def test_a_report_of_one_plan_fits_a_screen(capsys):
    assert len(shown(capsys, fleet(plan())).splitlines()) <= 50


def test_an_unknown_price_is_said_and_never_zero(capsys):
    cost = replace(plan().sets[0].cost, per_hour=None, per_million_output_tokens=None)
    text = shown(capsys, fleet(plan(sets=(plan_set(cost=cost),), cost=cost)))
    assert "price unknown" in text
    assert "an hour" not in text.splitlines()[0]


def test_a_missed_target_stands_out(capsys):
    text = shown(capsys, fleet(plan(sets=(plan_set(meets_slo=False),))))
    assert text.startswith("FITS, MISSES slo  team-a/chat")
    assert "TARGET MISSED" in text


def test_the_target_that_nothing_keeps_is_named_in_the_headline_with_what_would_help(capsys):
    missed = Finding(
        severity=Severity.WARNING,
        reason=UNATTAINABLE,
        message="no layout keeps slo.itlP99Ms 1",
        field="slo.itlP99Ms",
        value="1",
        remedy="slo.itlP99Ms of 4 or more",
    )
    text = shown(capsys, fleet(plan(sets=(plan_set(meets_slo=False),), findings=(missed,))))
    assert text.startswith("FITS, MISSES slo.itlP99Ms  team-a/chat")
    assert "slo.itlP99Ms of 4 or more" in text


def test_no_prediction_is_no_latency_line(capsys):
    assert "Latency" not in shown(capsys, fleet(plan(sets=(plan_set(performance=None),))))


def test_the_throughput_is_told_with_its_load_and_beside_it_what_a_replica_carries_at_most(capsys):
    text = shown(capsys, fleet(plan(sets=(plan_set(most_per_second=9.87),))))
    assert "1,710 tokens/s and 6.68 requests/s on each replica at that load" in text
    assert "it carries up to 9.87 such requests/s within slo, with 120 in flight" in text


@pytest.mark.parametrize("meets", [None, False])
def test_without_a_target_that_is_kept_a_replica_carries_what_its_cache_and_sequences_take(meets, capsys):
    text = shown(capsys, fleet(plan(sets=(plan_set(most_per_second=9.87, meets_slo=meets),))))
    assert "it carries up to 9.87 such requests/s, with 120 in flight" in text
    assert "within slo" not in text


def test_a_load_that_is_the_most_a_replica_carries_is_called_that(capsys):
    text = shown(capsys, fleet(plan(sets=(plan_set(most_per_second=6.68, max_concurrency=32),))))
    assert "6.68 requests/s on each replica at that load; memory binds\n" in text
    assert "  which is the most that it carries within slo\n" in text
    assert "up to" not in text


@pytest.mark.parametrize(
    "unknown", [{"most_per_second": None}, {"most_per_second": 0.4, "max_concurrency": 0}]
)
def test_a_replica_that_carries_nobody_knows_what_is_said_to_carry_nothing_in_particular(unknown, capsys):
    text = shown(capsys, fleet(plan(sets=(plan_set(**unknown),))))
    assert "6.68 requests/s on each replica at that load; memory binds" in text
    assert "carries" not in text


def test_a_tight_plan_says_so_first(capsys):
    assert shown(capsys, fleet(plan(outcome=Outcome.TIGHT))).startswith("TIGHT  team-a/chat")


def test_a_better_plan_is_told_beside_the_pinned_one(capsys):
    pinning = Pinning(
        kept=True, reason="Pinned", message="nothing changed", better="1 x tp1 on H200 saves 2 GPUs"
    )
    text = shown(capsys, fleet(plan(pinning=pinning)))
    assert "Pinned       nothing changed" in text
    assert "1 x tp1 on H200 saves 2 GPUs" in text


def test_many_remarks_are_counted_and_not_hidden(capsys):
    many = plan(findings=plan().findings * 6)
    assert "more with --all" in shown(capsys, fleet(many))
    assert "more with --all" not in shown(capsys, fleet(many), everything=True)


def test_two_sets_are_told_apart(capsys):
    two = plan(sets=(plan_set(), plan_set(replicas=1)))
    text = shown(capsys, fleet(two))
    assert "2 x tp2 on H100-SXM-80GB + 1 x tp2 on H100-SXM-80GB" in text
    assert text.count("Memory ") == 2
