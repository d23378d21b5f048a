"""The operator's own page of metrics: only what the table lists, in the form that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.handlers import telemetry
from plimsoll.handlers.health import Metric, exposition
from plimsoll.handlers.wakes import LONGER, TurnCounts
from plimsoll.prometheus import own
from plimsoll.reconcile.books import OTHER, Books, Figures
from plimsoll.status.told import News


def page(metrics: Iterable[Metric]) -> list[str]:
    return [
        line
        for text in exposition(iter(metrics))
        for line in text.splitlines()
        if not line.startswith(("# HELP", "# TYPE"))
    ]


def test_a_label_is_escaped_and_a_large_figure_keeps_its_digits() -> None:
    told = telemetry.metric(own.KV_TOKENS, [(("team", 'a"b\\c\nd', "measured"), 1_234_567_890)])
    assert page([told]) == [
        'plimsoll_kv_tokens{llm_namespace="team",llm="a\\"b\\\\c\\nd",source="measured"} 1234567890'
    ]


def test_a_histogram_of_turns_is_cumulative_and_ends_in_all_of_them() -> None:
    counts = TurnCounts(seconds=1.5)
    counts.took[0], counts.took[-1] = 3, 1
    lines = page(telemetry.turns(counts, waiting=0))
    assert 'plimsoll_turn_seconds_bucket{le="0.001"} 3' in lines
    assert f'plimsoll_turn_seconds_bucket{{le="{LONGER[-1]:g}"}} 3' in lines
    assert lines[-3:] == [
        'plimsoll_turn_seconds_bucket{le="+Inf"} 4',
        "plimsoll_turn_seconds_sum 1.5",
        "plimsoll_turn_seconds_count 4",
    ]


def test_devices_of_a_pool_are_free_held_or_others() -> None:
    pool = Pool(
        key="p", gpu=gpu_named("L40S-48GB"), memory_bytes=1, resource="nvidia.com/gpu", devices_per_node=8,
        free={8: 2, 3: 1, 0: 1}, held={"team/chat": 4},
    )  # fmt: skip
    values = {line.partition('state="')[2]: line for line in page(telemetry.fleet(Inventory(pools=(pool,))))}
    assert sorted(values) == ['free"} 19', 'held"} 4', 'others"} 9']


class Counted(Books):
    """Two deployments, and how often all were looked through."""

    looks = 0

    def __iter__(self) -> Iterator[tuple[str, Figures]]:
        self.looks += 1
        yield "a/chat", Figures(replicas=(("ready", 2), ("wanted", 3)), tensor=4, link="nvlink", devices=12)
        yield (
            "b/code",
            Figures(conditions=(("Ready", True),), limited=("StartFailed", "GPUsUnavailable"), restarts=1),
        )


def test_each_figure_stands_under_its_deployment_and_its_word() -> None:
    books = Counted()
    assert page(one for one in telemetry.deployments(books) if one.name != own.DECISIONS.name) == [
        'plimsoll_replicas{llm_namespace="a",llm="chat",state="ready"} 2',
        'plimsoll_replicas{llm_namespace="a",llm="chat",state="wanted"} 3',
        'plimsoll_llm_devices{llm_namespace="a",llm="chat"} 12',
        'plimsoll_tensor_parallel{llm_namespace="a",llm="chat",link="nvlink"} 4',
        'plimsoll_condition{llm_namespace="b",llm="code",type="Ready"} 1',
        'plimsoll_scaling_limited{llm_namespace="b",llm="code",reason="StartFailed"} 1',
        'plimsoll_scaling_limited{llm_namespace="b",llm="code",reason="GPUsUnavailable"} 1',
        'plimsoll_engine_restarts_total{llm_namespace="a",llm="chat"} 0',
        'plimsoll_engine_restarts_total{llm_namespace="b",llm="code"} 1',
        'plimsoll_engine_restarts_again_total{llm_namespace="a",llm="chat"} 0',
        'plimsoll_engine_restarts_again_total{llm_namespace="b",llm="code"} 0',
    ]
    assert books.looks == 1


def test_a_decision_or_failure_is_counted_from_0_on_before_there_is_one_of_its_kind() -> None:
    """Else the first of a kind comes as a counter that is at 1 already, which is no rise."""
    books = Books()
    books.decided([News("Normal", "Scale", "LoadRose", "m")])
    told = page(telemetry.deployments(books))
    assert 'plimsoll_decisions_total{about="Scale",reason="LoadRose"} 1' in told
    for about, reason in (("Retune", "RetuneFailed"), ("Stalled", "StartFailed"), ("Ready", OTHER)):
        assert f'plimsoll_decisions_total{{about="{about}",reason="{reason}"}} 0' in told
    failed = page(telemetry.turns(TurnCounts(failures=Counter(Bug=2)), waiting=0))
    assert 'plimsoll_turns_failed_total{reason="Bug"} 2' in failed
    assert 'plimsoll_turns_failed_total{reason="403"} 0' in failed


def test_whoever_asks_for_other_metrics_has_no_deployment_looked_at() -> None:
    books = Counted()
    told = [one for one in telemetry.deployments(books) if one.name == own.PLANS.name]
    assert (page(told), books.looks) == ([], 0)


def test_every_metric_is_one_of_the_table() -> None:
    told = [
        *telemetry.process(),
        *telemetry.turns(TurnCounts(), waiting=0),
        *telemetry.fleet(Inventory(pools=())),
        *telemetry.deployments(Books()),
    ]
    table = {metric.name: (metric.kind, metric.text) for metric in own.ALL}
    assert {one.name: (one.kind, one.text) for one in told}.items() <= table.items()
