"""What serves is disturbed only for a reason that is named."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.planning.pinning import UNREAD, Event, Wish, digest_before, spec_digest
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.planning.settle.changed import changed_set, planned_value
from tests.planning.asking import LLAMA, deployment, finding, inventory, planned, pool, reasons

CHAT = {"preset": "chat"}


def pinned_plan(**spec):
    return planned(deployment(workload=CHAT, **spec), pool(nodes=1))


def test_a_first_plan_says_so_and_a_kept_one_is_the_same_sets():
    first = pinned_plan()
    assert first.pinning is not None
    assert first.pinning.reason == "FirstPlan"
    again = planned(deployment(workload=CHAT), pool(nodes=1), pinned=first)
    assert again.pinning is not None
    assert again.pinning.kept
    assert again.sets == first.sets
    assert again.digest == first.digest


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 3},
        {"scaling": {"min": 2, "max": 4}},
        {"rollout": {"strategy": "replace"}},
        {"paused": True},
        {"slo": {"availabilityPercent": "99.9"}},
        {"tuning": {"mode": "off"}},
        {"networking": {"apiKeySecret": {"name": "key"}}},
        {"podLabels": {"a": "b"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_fields_that_planning_does_not_read_restart_nothing(change):
    first = pinned_plan()
    again = planned(deployment(workload=CHAT, **change), pool(nodes=1), pinned=first)
    assert again.pinning is not None
    assert again.pinning.kept
    assert {one.digest for one in again.sets} == {one.digest for one in first.sets}


@pytest.mark.parametrize(
    "change",
    [
        {"workload": {"preset": "batch"}},
        {"workload": CHAT | {"contextTokens": 2048}},
        {"slo": {"itlP99Ms": 20}},
        {"engine": {"maxSequences": 7}},
        {"quantization": {"method": "fp8_per_tensor"}},
        {"topology": {"tensor": 2}},
        {"memory": {"utilizationPercent": 80}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_what_planning_reads_is_a_new_plan(change):
    again = planned(deployment(**{"workload": CHAT, **change}), pool(nodes=1), pinned=pinned_plan())
    assert again.pinning is not None
    assert (again.pinning.kept, again.pinning.reason) == (False, "SpecChanged")


@pytest.mark.parametrize(
    ("event", "kept", "reason"),
    [
        (Event.REQUESTED, False, "Requested"),
        (Event.SET_FAILED, False, "SetFailed"),
        (Event.LOST_HARDWARE, True, "Pinned"),
    ],
)
def test_an_event_replaces_the_plan_but_hardware_is_lost_only_where_nothing_could_hold_it(
    event, kept, reason
):
    again = planned(deployment(workload=CHAT), pool(nodes=1), pinned=pinned_plan(), event=event)
    assert again.pinning is not None
    assert (again.pinning.kept, again.pinning.reason) == (kept, reason)


def test_a_disk_that_others_fill_is_no_lost_hardware():
    full = pool(nodes=1, host_disk_bytes=2**40, host_free_disk_bytes=0)
    again = planned(deployment(workload=CHAT), full, pinned=pinned_plan(), event=Event.LOST_HARDWARE)
    assert again.pinning is not None
    assert again.pinning.kept
    assert "HardwareGone" not in reasons(again)


def test_a_disk_that_is_smaller_than_planned_is_no_lost_hardware_where_its_pods_serve():
    """A patch of the pods, or a policy of the cluster's, asks for less; another node with more disk moves nobody."""
    serves = pool(nodes=1, host_disk_bytes=2**30, host_free_disk_bytes=0, held={"team-a/chat": 8})
    large = pool(key="large", host_disk_bytes=2**40, host_free_disk_bytes=2**40, price_per_hour="9")
    again = planned(deployment(workload=CHAT), serves, large, pinned=pinned_plan(), event=Event.LOST_HARDWARE)
    assert again.pinning is not None
    assert again.pinning.kept
    assert "HardwareGone" not in reasons(again)


def retuned(first, field, value):
    """The plan with a setting changed, as a retune that was found good leaves it."""
    (chosen,) = first.sets
    changed = changed_set(
        chosen,
        replace(chosen.settings, **{field: value}),
        field=field,
        value=str(value),
        why="it preempted",
        engine=first.engine,
        version=first.engine_version,
    )
    return replace(first, sets=(changed,))


@pytest.mark.parametrize(
    ("field", "value"), [("max_num_seqs", 9), ("watermark_permille", 40), ("max_num_batched_tokens", 600)]
)
def test_a_plan_that_a_person_asks_for_keeps_what_was_retuned_and_says_so(field, value):
    before = retuned(pinned_plan(), field, value)
    again = planned(deployment(workload=CHAT), pool(nodes=1), pinned=before, event=Event.REQUESTED)
    assert [one.digest for one in again.sets] == [one.digest for one in before.sets], "nothing restarts"
    assert f"kept of what was retuned: {field} {value}" in again.choice
    (found,) = (one for one in again.sets[0].values if one.name == field)
    (own,) = (one for one in pinned_plan().sets[0].values if one.name == field)
    assert planned_value(found) == own.value
    twice = planned(deployment(workload=CHAT), pool(nodes=1), pinned=again, event=Event.REQUESTED)
    assert twice.sets == again.sets


@pytest.mark.parametrize(
    ("allow", "runs", "told"),
    [
        ({}, 64, "not kept of what was retuned: max_num_seqs 9, as the spec sets 64 and spec.tuning.allow"),
        ({"allow": ["maxSequences"]}, 9, "kept of what was retuned: max_num_seqs 9"),
    ],
    ids=["not named", "named"],
)
def test_a_plan_that_a_person_asks_for_has_what_they_set_unless_they_named_it_as_what_may_be_retuned(
    allow, runs, told
):
    """The release before retuned what was set too: this is the way back, as the spec says what it should already."""
    asked = deployment(workload=CHAT, engine={"maxSequences": 64}, tuning=allow)
    before = retuned(planned(asked, pool(nodes=1)), "max_num_seqs", 9)
    again = planned(asked, pool(nodes=1), pinned=before, event=Event.REQUESTED)
    assert again.sets[0].settings.max_num_seqs == runs
    assert told in again.choice


@pytest.mark.parametrize("event", [Event.SET_FAILED, None])
def test_what_was_retuned_goes_with_an_edit_and_with_a_start_that_failed(event):
    first = pinned_plan()
    asked = deployment(workload=CHAT if event else CHAT | {"contextTokens": 2048})
    again = planned(asked, pool(nodes=1), pinned=retuned(first, "max_num_seqs", 9), event=event)
    assert again.sets[0].settings.max_num_seqs != 9
    assert "retuned" not in again.choice


def test_what_was_retuned_elsewhere_or_beyond_the_plan_is_not_kept_and_that_is_said():
    moved = planned(
        deployment(workload=CHAT), pool("L40S-48GB", 4), pinned=retuned(pinned_plan(), "max_num_seqs", 9),
        event=Event.LOST_HARDWARE,
    )  # fmt: skip
    assert "not kept of what was retuned: max_num_seqs 9, as nothing of it runs on" in moved.choice
    raised = retuned(pinned_plan(), "max_num_seqs", 300)
    asked = deployment(workload=CHAT)
    again = planned(asked, pool(nodes=1), pinned=raised, event=Event.REQUESTED)
    assert again.sets[0].settings.max_num_seqs == 300, "as many served on ground that is the same"
    (chosen,) = raised.sets
    values = tuple(
        replace(one, inputs={"as planned": "200"}) if one.name == "max_num_seqs" else one
        for one in chosen.values
    )
    raised = replace(raised, sets=(replace(chosen, values=values),))
    again = planned(asked, pool(nodes=1), pinned=raised, event=Event.REQUESTED)
    said = "not kept of what was retuned: max_num_seqs 300, as it asks for more than is planned now"
    assert said in again.choice
    assert again.sets[0].settings.max_num_seqs == pinned_plan().sets[0].settings.max_num_seqs


UNREAD_MODEL = PlanFacts(model=None, problem="the hub is not reachable")


@pytest.mark.parametrize(
    ("nodes", "budget", "wished", "replicas"),
    [(4, None, 3, 3), (0, None, 3, 1), (4, 2, 3, 2), (4, None, 0, 1), (4, None, None, 1)],
    ids=["room", "no room", "a budget", "less is wished", "nobody wishes"],
)
def test_while_nothing_can_be_planned_what_serves_still_grows_by_what_traffic_wishes(
    nodes, budget, wished, replicas
):
    first = planned(deployment(workload=CHAT, scaling={"max": 5}), pool(nodes=1))
    each = first.sets[0].devices_per_replica
    free = {8: nodes, 0: 1} if nodes else {0: 1}
    config = OperatorConfig.model_validate(
        {} if budget is None else {"budgets": [{"namespace": "*", "gpus": budget * each}]}
    )
    again = plan(
        deployment(workload=CHAT, scaling={"max": 5}),
        inventory(pool(free=free, held={"team-a/chat": each})),
        UNREAD_MODEL,
        config=config,
        pinned=first,
        wish=None if wished is None else Wish(replicas=wished),
    )
    assert (first.replicas, again.replicas) == (1, replicas)
    assert finding(again, "ModelUnreadable")
    assert {one.digest for one in again.sets} == {one.digest for one in first.sets}


@given(
    nodes=st.integers(0, 5),
    free=st.integers(0, 8),
    held=st.booleans(),
    other=st.sampled_from(["B200-SXM", "L4-24GB", "H200-SXM-141GB"]),
    price=st.sampled_from([None, "1", "9"]),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_a_pinned_plan_survives_every_change_of_inventory_that_it_still_fits(nodes, free, held, other, price):
    first = pinned_plan()
    mine = pool(free={8: nodes, free: 1}, held={"team-a/chat": 1} if held else {}, price_per_hour=price)
    again = planned(deployment(workload=CHAT), mine, pool(other, nodes=nodes + 1), pinned=first)
    assert again.pinning is not None
    assert again.pinning.kept
    assert [one.digest for one in again.sets][:1] == [first.sets[0].digest]


def test_a_better_plan_is_told_with_what_it_saves_and_not_taken():
    first = planned(deployment(workload=CHAT), pool(nodes=1, price_per_hour="4"))
    again = planned(
        deployment(workload=CHAT),
        pool(nodes=1, price_per_hour="4"),
        pool("L40S-48GB", 4, price_per_hour="0.3"),
        pinned=first,
    )
    assert again.pinning is not None
    assert again.sets[0].hardware.gpu == "H100-SXM-80GB"
    assert again.pinning.better is not None
    assert "L40S-48GB would cost 0.3 instead of 4 an hour" in again.pinning.better


def test_a_plan_without_sets_pins_nothing():
    nothing = planned(deployment(workload=CHAT), pool(free={0: 1}))
    assert not nothing.sets
    again = planned(deployment(workload=CHAT), pool(), pinned=nothing)
    assert again.pinning is not None
    assert again.pinning.reason == "FirstPlan"


@pytest.mark.parametrize(
    "edit",
    [
        {"scheduling": {"priorityClass": "high", "queue": "team-a"}},
        {"toolCalling": {"parser": "hermes"}},
        {"reasoning": {"parser": "deepseek_r1"}},
        {"structuredOutput": {"backend": "xgrammar"}},
        {"chatTemplate": {"inline": "{{ messages }}"}},
        {"podPatches": [{"op": "add", "path": "/spec/hostname", "value": '"one"'}]},
        {"podLabels": {"team": "a"}},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_what_only_pods_read_leaves_the_plan_where_it_is(edit):
    first = planned(deployment(workload=CHAT), pool(nodes=1, price_per_hour="4"))
    cheaper = pool("L40S-48GB", 4, price_per_hour="0.3")
    again = planned(
        deployment(workload=CHAT, **edit), pool(nodes=1, price_per_hour="4"), cheaper, pinned=first
    )
    assert again.pinning is not None
    assert again.pinning.kept
    assert [one.digest for one in again.sets] == [one.digest for one in first.sets]


BEFORE = [
    ({}, "4a473855629c7ebe"),
    ({"scheduling": {"priorityClass": "high", "queue": "team-a"}}, "25eb185f7004e62f"),
    ({"toolCalling": {"parser": "hermes"}}, "a26fbb3a5bba1cfe"),
    ({"reasoning": {"parser": "deepseek_r1"}}, "9b9e9f855390a9a6"),
    ({"structuredOutput": {"backend": "xgrammar"}}, "193d0529f22f4a9d"),
    ({"chatTemplate": {"inline": "{{ messages }}"}}, "cb5195a1ad821a7e"),
    ({"podPatches": [{"op": "add", "path": "/spec/hostname", "value": '"one"'}]}, "4678199ac6f44259"),
    (
        {"adapters": {"runtimeLoading": True, "items": [{"name": "a", "source": "pvc://loras/a"}]}},
        "ed816833d6c95c35",
    ),
]
"""Digests as the release before gave them: they stand in clusters, so a change here makes plans anew that nobody edited."""


@pytest.mark.parametrize(("said", "before"), BEFORE, ids=str)
def test_a_plan_that_the_release_before_pinned_is_of_the_same_spec(said, before):
    asked = deployment(workload=CHAT, **said)
    assert digest_before(effective(asked.spec, asked.namespace, OperatorConfig()).spec) == before
    own, cheaper = pool(nodes=1, price_per_hour="4"), pool("L40S-48GB", 4, price_per_hour="0.3")
    config = {"trust": {"podPatches": {"allow": ["/spec/hostname"]}}}
    first = planned(asked, own, config=config)
    assert first.sets
    again = planned(asked, own, cheaper, pinned=replace(first, spec_digest=before), config=config)
    assert again.pinning.kept
    assert [one.digest for one in again.sets] == [one.digest for one in first.sets]
    assert again.spec_digest == first.spec_digest
    edited = deployment(workload=CHAT | {"contextTokens": 2048}, **said)
    changed = planned(edited, own, cheaper, pinned=replace(first, spec_digest=before), config=config)
    assert changed.pinning.reason == "SpecChanged"


def test_unread_fields_exist():
    spec = deployment(LLAMA).spec
    aliases = {info.alias: name for name, info in type(spec).model_fields.items()}
    assert {path[0] for path in UNREAD} <= set(aliases)
    assert spec_digest(spec) == spec_digest(deployment(LLAMA, name="other").spec)


def test_a_pinned_plan_grows_within_the_budget_only_and_keeps_what_serves():
    config = {"budgets": [{"namespace": "team-a", "gpus": 4}]}
    first = pinned_plan(replicas=2)
    more = planned(deployment(workload=CHAT, replicas=6), pool(), pinned=first, config=config)
    assert (more.replicas, more.replicas_wanted, more.outcome) == (4, 6, Outcome.SHORT)
    assert "the budget leaves 4 GPUs" in finding(more, "BudgetExhausted").message
    lowered = {"budgets": [{"namespace": "team-a", "gpus": 1}]}
    assert planned(deployment(workload=CHAT, replicas=2), pool(), pinned=first, config=lowered).replicas == 2


def test_replicas_beyond_the_pinned_ones_are_placed_where_there_is_room():
    first = planned(deployment(workload=CHAT), pool(key="a", nodes=1, free={1: 1}))
    pools = (pool(key="a", free={0: 1}, held={"team-a/chat": 1}), pool(key="b", nodes=1))
    grown = planned(deployment(workload=CHAT, replicas=3), *pools, pinned=first)
    assert [(place.pool, place.replicas) for place in grown.sets[0].placements] == [("a", 1), ("b", 2)]


def test_what_is_said_of_a_pinned_plan_is_said_of_its_own_sets():
    first = pinned_plan(replicas=8)
    own = pool(free={0: 1}, held={"team-a/chat": 8}, declared_nodes=2, node_class="big")
    again = planned(deployment(workload=CHAT, replicas=8), own, pinned=first)
    assert not {"NodeDeclared", "NoFreeGPUs", "NoGPUs"} & set(reasons(again))


def test_a_pinned_plan_stands_where_its_pool_goes_by_another_name():
    first = planned(deployment(workload=CHAT), pool(key="old", nodes=1))
    again = planned(deployment(workload=CHAT), pool(key="new", nodes=1, declared_nodes=1), pinned=first)
    assert again.pinning.kept


@pytest.mark.parametrize(("replicas", "stays"), [(2, 2), (0, 0)])
def test_a_model_that_cannot_be_read_for_a_while_takes_nothing_down_but_what_a_person_takes_away(
    replicas, stays
):
    asked = deployment(workload=CHAT, replicas=replicas)
    nothing = PlanFacts(model=None, problem="the hub does not answer")
    again = plan(asked, inventory(pool()), nothing, pinned=pinned_plan(replicas=2))
    assert again.replicas == stays
    assert [one.digest for one in again.sets] == [one.digest for one in pinned_plan().sets]
    assert finding(again, "ModelUnreadable").message == "the hub does not answer"


def test_an_edit_that_contradicts_itself_is_told_and_takes_nothing_down():
    changed = deployment(workload=CHAT, topology={"tensor": 3})
    again = planned(changed, pool(), pinned=pinned_plan())
    assert again.outcome is Outcome.INVALID
    assert finding(again, "TopologyContradiction").field == "topology.tensor"
    assert again.sets == pinned_plan().sets


def test_a_pinned_plan_whose_hardware_is_gone_says_so():
    again = planned(deployment(workload=CHAT), pool("L40S-48GB", 4), pinned=pinned_plan())
    assert "H100-SXM-80GB" in finding(again, "HardwareGone").message
    assert "HardwareGone" not in reasons(
        planned(deployment(workload=CHAT), pool(free={0: 1}), pinned=pinned_plan())
    )
