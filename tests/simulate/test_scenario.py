"""How many replicas a story may have, and what is said of it: as the operator would have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.api.config_fleet import PROVISION_S
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.facts.gpus import Vendor
from plimsoll.facts.learned import NOTHING
from plimsoll.planning.ask.reading import read
from plimsoll.planning.lengths import P95, P99
from plimsoll.planning.planner import plan
from plimsoll.simulate.from_plan import lengths_of, scenario_of
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.steps import steps_ahead
from tests.planning.asking import deployment, facts, inventory, pool


def scenario(interval_s: float = 15.0, **spec: Any) -> Scenario:
    asked = deployment(workload={"preset": "chat", "requestsPerSecond": "2"}, topology={"tensor": 1}, **spec)
    there, known = inventory(pool(nodes=1)), facts(asked)
    reading = read(asked, there, known, NOTHING, OperatorConfig())
    return scenario_of(plan(asked, there, known), reading, interval_s=interval_s)


@pytest.mark.parametrize(
    ("spec", "least", "most", "bounded", "fixed"),
    [
        ({"scaling": {"min": 2, "max": 5}}, 2, 5, True, False),
        ({"scaling": {"min": 2, "max": 50}}, 2, 8, True, False),
        ({}, 1, 8, False, False),
        ({"replicas": 3}, 3, 3, True, True),
        ({"replicas": 3, "scaling": {"min": 1, "max": 5}}, 3, 3, True, True),
    ],
    ids=[
        "as scaling says",
        "no more than the fleet has",
        "all that the fleet has, where nothing is said",
        "the number that a person fixed",
        "whatever scaling says beside it",
    ],
)
def test_replicas_are_those_that_the_operator_would_have(
    spec: dict[str, Any], least: int, most: int, bounded: bool, fixed: bool
) -> None:
    made = scenario(**spec)
    assert (made.least, made.most, made.bounded, made.fixed) == (least, most, bounded, fixed)


@pytest.mark.parametrize(
    ("scaling", "interval_s", "up_s", "down_s"),
    [
        ({"max": 5}, 15.0, 30.0, None),
        ({"max": 5}, 60.0, 120.0, None),
        ({"max": 5, "upWindowSeconds": 0, "downWindowSeconds": 0}, 15.0, 0.0, 0.0),
        ({"max": 5, "upWindowSeconds": 120, "downWindowSeconds": 900}, 15.0, 120.0, 900.0),
    ],
)
def test_windows_are_those_that_the_operator_would_wait_for(
    scaling: dict[str, int], interval_s: float, up_s: float, down_s: float | None
) -> None:
    made = scenario(interval_s, scaling=scaling)
    assert (made.up_window_s, made.down_window_s) == (up_s, down_s)


@pytest.mark.parametrize(("replicas", "told"), [(0, True), (1, False)])
def test_a_resource_that_is_stopped_is_simulated_with_one_replica_and_that_is_said(
    replicas: int, told: bool
) -> None:
    made = scenario(replicas=replicas)
    assert (made.least, made.most) == (1, 1)
    assert any("spec.replicas is 0" in said for said in made.left_out) == told


@pytest.mark.parametrize(
    ("spec", "told"), [({}, True), ({"scaling": {"max": 4}}, False), ({"replicas": 2}, False)]
)
def test_that_the_operator_would_not_follow_the_load_is_said(spec: dict[str, Any], told: bool) -> None:
    assert any("without scaling.max" in said for said in scenario(**spec).left_out) == told


@pytest.mark.parametrize(("most", "told"), [(20, True), (8, False), (None, False)])
def test_that_the_fleet_has_room_for_fewer_than_scaling_allows_is_said(most: int | None, told: bool) -> None:
    made = scenario(scaling={} if most is None else {"max": most})
    assert made.most == 8
    assert ("scaling.max allows 20 replicas, and the fleet has room for 8" in made.left_out) == told


@pytest.mark.parametrize(
    ("engine", "vendor", "ahead"),
    [
        ({}, Vendor.NVIDIA, True),
        ({"extraArgs": ["--no-async-scheduling"]}, Vendor.NVIDIA, False),
        ({"extraArgs": ["--no_async_scheduling"]}, Vendor.NVIDIA, False),
        ({"extraArgs": ["--no-async-scheduling", "--async-scheduling"]}, Vendor.NVIDIA, True),
        ({}, Vendor.CPU, False),
    ],
    ids=[
        "as engines do by themselves",
        "a person wants it otherwise",
        "in another spelling",
        "and wants it after all",
        "on CPUs",
    ],
)
def test_steps_are_chosen_ahead_where_the_engine_does_so(
    engine: dict[str, Any], vendor: Vendor, ahead: bool
) -> None:
    asked = deployment(workload={"preset": "chat", "requestsPerSecond": "2"}, engine=engine)
    there, known = inventory(pool(nodes=1)), facts(asked)
    reading = read(asked, there, known, NOTHING, OperatorConfig())
    assert reading.task is not None
    gpu = replace(reading.slots[0].gpu, vendor=vendor)
    assert steps_ahead(reading.task, gpu) is ahead


@pytest.mark.parametrize(
    ("tuning", "mode"), [({}, "auto"), ({"mode": "off"}, "off"), ({"mode": "dryRun"}, "dryRun")]
)
def test_settings_are_retuned_as_the_resource_allows_and_the_engine_has_them(
    tuning: dict[str, Any], mode: str
) -> None:
    made = scenario(tuning=tuning)
    assert made.tunable is not None
    assert (made.tunable.consent.mode, made.tunable.has_watermark) == (mode, True)
    assert made.tunable.knobs.max_sequences == made.limits.max_num_seqs
    fewer = made.tunable.variant({"maxSequences": "8", "watermark": "100"})
    assert (fewer.limits.max_num_seqs, fewer.capacity.max_num_seqs) == (8, 8)
    assert fewer.limits.watermark_blocks == made.limits.blocks // 10
    assert fewer.limits.blocks == made.limits.blocks
    as_planned = made.tunable.variant({})
    assert (as_planned.times, as_planned.limits, as_planned.capacity) == (
        made.times,
        made.limits,
        made.capacity,
    )


@pytest.mark.parametrize(
    "tokens",
    [{"p50": 1000, "p95": 4000, "p99": 9000}, {"p50": 1000, "p95": 4000}, {"p50": 1000}],
    ids=["all declared", "no p99", "the middle alone"],
)
def test_a_shared_prefix_leaves_prompts_as_long_as_they_are_declared(tokens: dict[str, int]) -> None:
    whole = lengths_of(Workload.model_validate({"inputTokens": tokens})).input
    cut = lengths_of(Workload.model_validate({"inputTokens": tokens, "sharedPrefixPercent": 60}))
    assert cut.shared_tokens == 600
    # Where only one of the far percentiles is declared, the other is a guess either way.
    for far in (0.0, P95, P99) if "p99" in tokens else (0.0, P95):
        assert cut.input.at(far) + 600 == pytest.approx(whole.at(far))


@pytest.mark.parametrize(
    ("provision", "takes_s"), [({"big": 900.0}, 900.0), ({}, PROVISION_S), ({"other": 60.0}, PROVISION_S)]
)
def test_a_node_takes_as_long_as_the_admin_says_of_its_class(
    provision: dict[str, float], takes_s: float
) -> None:
    asked = deployment(workload={"preset": "chat", "requestsPerSecond": "2"}, topology={"tensor": 1})
    there, known = inventory(pool(nodes=1, declared_nodes=2, node_class="big")), facts(asked)
    made = scenario_of(
        plan(asked, there, known),
        read(asked, there, known, NOTHING, OperatorConfig()),
        provision=provision,
    )
    assert (made.hardware.ready, made.hardware.growing, made.hardware.node_s) == (8, 16, takes_s)


@pytest.mark.parametrize(
    ("spec", "words"),
    [({"scaling": {"min": 20, "max": 30}}, "short of GPUs"), ({"paused": True}, "spec.paused"), ({}, None)],
    ids=["more than there are", "paused", "neither"],
)
def test_what_is_simulated_though_it_would_not_be_so_is_said(spec: dict[str, Any], words: str | None) -> None:
    said = [one for one in scenario(**spec).left_out if "short of GPUs" in one or "spec.paused" in one]
    assert (words is not None and any(words in one for one in said)) or said == []


def test_what_the_plan_warns_of_is_told_of_its_replay_and_its_notes_are_not() -> None:
    asked: dict[str, Any] = {"scaling": {"max": 3, "zero": {"wake": {"annotation": True}}}, "replicas": 2}
    assert scenario(**asked).warned == (
        "scaling.zero has no effect: spec.replicas holds 2. What helps: leave replicas out",
    )
    assert scenario(scaling={"max": 3}).warned == ()
