"""The pure middle of a turn, from what is seen to what should be there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.control.record import Record
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.applier import Applied
from plimsoll.planning.pinning import digest_before
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile import decide as room
from plimsoll.reconcile.decide import decide, foreseen
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.loop.subject import subject_of
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.turn import _story
from plimsoll.render.revision import Revision
from plimsoll.status.said import conditions_of
from tests.planning.asking import LLAMA, deployment, facts, inventory, pool


def seen(**others) -> Seen:
    asked = deployment(**others.pop("spec", {}))
    return Seen(
        deployment=asked,
        inventory=inventory(*others.pop("pools", (pool(),))),
        facts=facts(asked),
        now=1000.0,
        **others,
    )


def serving(decision: Decision) -> Serving:
    """The world after a decision was carried out and its pods became ready."""
    assert decision.rollout is not None
    return Serving(
        sets=tuple(
            SetSeen(
                name=target.name,
                replicas=target.replicas,
                pods=tuple(
                    PodSeen(name=f"{target.name}-{n}", uid=str(n), stage=Stage.READY, node="n")
                    for n in range(target.replicas)
                ),
            )
            for target in decision.rollout.targets
        )
    )


def read_back(decision: Decision) -> dict[str, Revision]:
    """Revisions as an API server gives them."""
    return {
        one.ref.name: Revision.read(json.loads(json.dumps(one.body)))
        for one in decision.manifests
        if one.ref.kind == "ControllerRevision"
    }


def hashes(decision: Decision) -> dict[str, str]:
    return {
        str(one.ref): one.body["metadata"]["annotations"][names.ANNOTATION_HASH] for one in decision.manifests
    }


def after(first: Decision, asked: Seen) -> Seen:
    return replace(asked, serving=serving(first), revisions=read_back(first), kept=first.kept)


def test_the_second_turn_keeps_that_the_set_serves_and_the_third_finds_nothing_to_change() -> None:
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    second = decide(after(first, asked))
    assert {ref for ref, digest in hashes(second).items() if hashes(first)[ref] != digest} == {
        "ConfigMap team-a/chat-plan"
    }
    assert second.kept.served == tuple(second.revisions)
    third = decide(after(second, asked))
    assert hashes(third) == hashes(second)
    assert third.rollout is not None
    assert third.rollout.settled


def test_without_an_admins_file_nothing_unusual_is_trusted() -> None:
    found = decide(seen(spec={"model": {"source": f"hf://{LLAMA}", "trustRemoteCode": True}}))
    assert found.plan.outcome is Outcome.INVALID
    assert "NotTrusted" in {one.reason for one in found.plan.findings}
    assert found.manifests == ()


def test_the_plan_is_kept_whole_and_can_be_read_back() -> None:
    found = decide(seen())
    config_map = next(one for one in found.manifests if one.ref.name == "chat-plan")
    assert Kept.from_data(config_map.body["data"]).plan == found.kept.plan
    assert names.PLAN_KEY in config_map.body["data"]


def test_a_field_that_planning_does_not_read_but_pods_do_makes_another_set_of_the_same_plan() -> None:
    asked = seen()
    first = decide(asked)
    other = replace(after(first, asked), deployment=deployment(podLabels={"team": "search"}))
    second = decide(other)
    assert [one.digest for one in second.plan.sets] == [one.digest for one in first.plan.sets]
    assert second.rollout is not None
    assert len(second.rollout.targets) == 2


@pytest.mark.parametrize("change", [{"replicas": 3}, {"paused": True}, {"scaling": {"min": 1, "max": 2}}])
def test_a_field_that_no_pod_sees_keeps_the_set(change: dict[str, object]) -> None:
    asked = seen()
    first = decide(asked)
    second = decide(replace(after(first, asked), deployment=deployment(**change)))
    assert set(second.revisions) == set(first.revisions)


def test_who_goes_back_in_the_middle_gets_the_plan_and_the_set_of_before() -> None:
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    edited = replace(after(first, asked), deployment=deployment(replicas=2, workload={"contextTokens": 8192}))
    second = decide(edited)
    assert second.kept.previous == first.kept.plan
    # Meanwhile another fleet would give another plan.
    back = replace(
        after(second, edited),
        deployment=asked.deployment,
        inventory=inventory(pool("H200-SXM-141GB"), pool()),
    )
    third = decide(back)
    assert third.plan.sets[0].digest == first.plan.sets[0].digest
    assert set(first.revisions) <= set(third.revisions)


def test_who_goes_back_after_an_upgrade_gets_the_plan_and_the_set_of_before_too() -> None:
    asked = seen(spec={"replicas": 2, "toolCalling": {"parser": "hermes"}})
    first = decide(asked)
    edited = deployment(replicas=2, toolCalling={"parser": "hermes"}, workload={"contextTokens": 8192})
    second = decide(replace(after(first, asked), deployment=edited))
    assert second.kept.previous is not None
    spec = effective(asked.deployment.spec, asked.deployment.namespace, asked.config).spec
    written = replace(second.kept, previous=replace(second.kept.previous, spec_digest=digest_before(spec)))
    back = replace(
        after(replace(second, kept=written), asked), inventory=inventory(pool("H200-SXM-141GB"), pool())
    )
    third = decide(back)
    assert third.plan.sets[0].digest == first.plan.sets[0].digest
    assert third.plan.pinning is not None
    assert third.plan.pinning.kept


def test_an_upgrade_replaces_no_set_whose_adapters_lie_on_claims() -> None:
    item = {"name": "law", "source": "pvc://adapters/law"}
    asked = seen(spec={"replicas": 2, "adapters": {"runtimeLoading": True, "items": [item]}})
    # As the release before made it: no list of adapters reached its pods, and no claim was in its name.
    bare = deployment(replicas=2, adapters={"runtimeLoading": True})
    alone = OperatorConfig.model_validate({"runtime": {"enabled": False}})
    first = decide(replace(asked, deployment=bare, config=alone))
    upgraded = decide(after(first, asked))
    assert set(upgraded.revisions) == set(first.revisions)
    subject = subject_of(asked.deployment, upgraded.kept, asked.config, upgraded.revisions)
    assert subject is not None
    assert [one.name for one in subject.sets] == list(first.revisions)
    assert set(decide(after(upgraded, asked)).revisions) == set(first.revisions)


def test_an_edit_that_contradicts_the_model_changes_and_deletes_nothing() -> None:
    asked = seen()
    first = decide(asked)
    wrong = decide(replace(after(first, asked), deployment=deployment(topology={"tensor": 3})))
    assert wrong.plan.outcome is Outcome.INVALID
    assert [str(one.ref) for one in wrong.manifests] == [
        str(one.ref) for one in first.manifests if one.ref.kind in ("PodDisruptionBudget", "Deployment")
    ]
    assert hashes(wrong).items() <= hashes(first).items()
    assert not wrong.prune


def test_hardware_without_an_engine_image_is_left_out_where_other_hardware_remains() -> None:
    gaudi = pool("Gaudi3", nodes=4)
    both = decide(seen(pools=(gaudi, pool("L4", 1))))
    assert {one.hardware.vendor for one in both.plan.sets} == {"nvidia"}
    assert "NoImage" in {one.reason for one in both.plan.findings}
    alone = decide(seen(pools=(gaudi,)))
    assert alone.plan.outcome is Outcome.INVALID
    assert "gaudiImage" in alone.plan.findings[0].message


def test_devices_of_pods_that_are_not_on_a_node_yet_are_reserved() -> None:
    asked = seen(spec={"replicas": 3})
    first = decide(asked)
    assert sum(one.pods for one in first.reservations) == 3
    assert decide(after(first, asked)).reservations == ()


@pytest.mark.parametrize(
    "edit",
    [
        {"model": {"source": f"hf://{LLAMA}", "trustRemoteCode": True}},
        {"engine": {"image": "evil.example/vllm:1"}},
        {"scheduling": {"serviceAccount": "admin"}},
        {"podPatches": [{"op": "add", "path": "/spec/hostNetwork", "value": "true"}]},
        {"model": {"source": "hf://nobody/knows-this"}},
        {"topology": {"tensor": 3}},
    ],
)
def test_nothing_of_an_edit_that_is_refused_reaches_a_pod(edit: dict[str, object]) -> None:
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    edited = deployment(**{"replicas": 2, **edit})
    wrong = decide(replace(after(first, asked), deployment=edited, facts=facts(edited)))
    assert wrong.rollout is not None
    assert {target.name: target.replicas for target in wrong.rollout.targets} == {
        next(iter(first.revisions)): 2
    }
    assert {one.ref.kind for one in wrong.manifests} == {"PodDisruptionBudget", "Deployment"}
    assert hashes(wrong).items() <= hashes(first).items()
    assert not wrong.prune


def test_what_grows_while_nothing_can_be_planned_is_promised_and_no_restart_takes_it_back() -> None:
    asked = seen(spec={"scaling": {"max": 5}})
    first = decide(asked)
    unread = PlanFacts(model=None, problem="the hub is not reachable")
    busy = Direction(record=Record(replicas=3))
    blind = replace(after(first, asked), facts=unread, direction=busy)
    grown = decide(blind)
    name = next(iter(first.revisions))
    assert grown.rollout is not None
    assert [(one.name, one.replicas) for one in grown.rollout.targets] == [(name, 3)]
    assert sum(one.pods for one in grown.reservations) == 2
    assert grown.kept.plan is not None
    assert grown.kept.plan.replicas == 3, "what is left of a namespace's budget is counted by it"
    stored = next(one.body["data"] for one in grown.manifests if one.ref.name == "chat-plan")
    again = replace(
        blind, serving=serving(grown), kept=Kept.from_data(json.loads(json.dumps(stored))), direction=None
    )
    second = decide(again)
    assert second.rollout is not None
    assert [(one.name, one.replicas) for one in second.rollout.targets] == [(name, 3)]
    assert second.reservations == ()
    assert hashes(second).items() <= hashes(grown).items()
    assert "ConfigMap team-a/chat-plan" not in hashes(second), "what is written already is not written again"
    well = decide(replace(again, facts=asked.facts))
    assert set(well.revisions) == {name}
    assert well.plan.replicas == 3


def test_what_sleeps_wakes_though_nothing_can_be_planned() -> None:
    asked = seen(spec={"scaling": {"max": 5, "zero": {"wake": {"annotation": True}}}})
    asleep = decide(replace(after(decide(asked), asked), direction=Direction(record=Record(replicas=0))))
    unread = PlanFacts(model=None, problem="the hub is not reachable")
    woken = decide(
        replace(after(asleep, asked), facts=unread, direction=Direction(record=Record(replicas=1)))
    )
    assert woken.rollout is not None
    assert [(one.name, one.replicas) for one in woken.rollout.targets] == [(next(iter(asleep.revisions)), 1)]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"replicas": 3},
        {"topology": {"tensor": 3}},
        {"topology": {"gpuProducts": ["H1000"]}},
        {"model": {"source": f"hf://{LLAMA}", "trustRemoteCode": True}},
        {"podPatches": [{"op": "remove", "path": "/spec/nothing/of/it"}]},
        {"workload": {"preset": "nobody-knows-this"}},
    ],
    ids=["fits", "fits thrice", "contradicts itself", "a GPU that nobody knows", "is not trusted",
         "cannot be written down", "a preset that is not there"],
)  # fmt: skip
def test_who_only_asks_whether_it_may_be_hears_what_a_first_turn_would_say_and_no_object_is_made(
    spec: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = OperatorConfig.model_validate({"trust": {"podPatches": {"allow": ["/spec/nothing/*"]}}})
    asked = seen(spec=spec, config=admin)
    first = decide(asked)
    monkeypatch.delattr(room, "manifests_of")
    assert foreseen(asked) == first.plan
    said = "podPatches[0]" in str(first.plan.findings)
    assert said == ("podPatches" in spec), "what no pod can be made of is found where it is written down"


def test_a_set_that_was_given_up_is_tried_again_when_a_person_asks() -> None:
    asked = seen()
    first = decide(asked)
    (name,) = first.revisions
    failed = SetSeen(name=name, replicas=0, failed="it died")
    given_up = replace(after(first, asked), serving=Serving(sets=(failed,)))
    again = deployment()
    metadata = again.metadata.model_copy(update={"annotations": {names.ANNOTATION_REPLAN: "now"}})
    found = decide(replace(given_up, deployment=again.model_copy(update={"metadata": metadata})))
    assert found.rollout is not None
    assert [(target.name, target.replicas, target.state) for target in found.rollout.targets] == [
        (name, 1, "Starting")
    ]
    revision = next(one for one in found.manifests if one.ref.kind == "ControllerRevision")
    assert names.ANNOTATION_FAILED not in revision.body["metadata"]["annotations"]


def test_paused_tells_what_is_there_and_writes_nothing_but_what_a_drain_may_take() -> None:
    asked = seen()
    first = decide(asked)
    found = decide(
        replace(after(first, asked), deployment=deployment(paused=True, workload={"contextTokens": 8192}))
    )
    assert found.frozen
    assert [one.ref.kind for one in found.manifests] == ["PodDisruptionBudget"]
    assert hashes(found).items() <= hashes(first).items()
    assert not found.prune
    assert found.reservations == ()
    assert set(found.revisions) == set(first.revisions)


def budget(decision: Decision) -> int:
    (found,) = [one.body for one in decision.manifests if one.ref.kind == "PodDisruptionBudget"]
    return int(found["spec"]["minAvailable"])


@pytest.mark.parametrize(("blind", "stays"), [(False, 2), (True, 1)])
def test_no_eviction_takes_a_pod_that_is_wanted_where_a_drain_can_be_seen(blind: bool, stays: int) -> None:
    asked = seen(spec={"replicas": 2})
    asked = replace(asked, inventory=replace(asked.inventory, nodes_unseen=blind))
    first = decide(asked)
    assert budget(first) == stays
    assert budget(decide(after(first, asked))) == stays


def test_a_replica_that_leaves_its_node_is_one_more_and_the_budget_stays() -> None:
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    (there,) = serving(first).sets
    leaves = replace(there, pods=(replace(there.pods[0], leaves="node n, which is cordoned"), there.pods[1]))
    second = decide(replace(after(first, asked), serving=Serving(sets=(leaves,))))
    assert second.rollout is not None
    assert [target.replicas for target in second.rollout.targets] == [3]
    assert budget(second) == 2
    full = replace(
        after(first, asked),
        inventory=inventory(replace(pool(), free={0: 4})),
        serving=Serving(sets=(leaves,)),
    )
    assert budget(decide(full)) == 1
    gone = replace(full, inventory=inventory(replace(pool(), free={}, unavailable={"cordoned": 4})))
    assert budget(decide(gone)) == 1


@pytest.mark.parametrize("also", [{}, {"paused": True}])
def test_a_preset_that_nobody_knows_is_told_beside_what_serves(also: dict[str, object]) -> None:
    asked = seen()
    first = decide(asked)
    edited = deployment(workload={"preset": "nobody-knows"}, **also)
    now = replace(after(first, asked), deployment=edited)
    second = decide(now)
    assert second.plan.outcome is Outcome.INVALID
    assert set(second.revisions) == set(first.revisions)
    told = {one.type: one for one in conditions_of(_story(now, second, Applied()))}
    assert (told["Stalled"].status, told["Stalled"].reason) == ("True", "InvalidSpec")


def test_the_address_that_is_told_is_the_one_that_its_namespace_s_defaults_make() -> None:
    networking = {"tlsSecret": "certificate"}
    admin = OperatorConfig.model_validate(
        {"defaults": [{"namespace": "team-*", "spec": {"networking": networking}}]}
    )
    plain, asked = seen(), seen(config=admin)
    assert _story(plain, decide(plain), Applied()).endpoint == "http://chat.team-a.svc"
    assert _story(asked, decide(asked), Applied()).endpoint == "https://chat.team-a.svc:80"


def test_what_a_version_of_the_engine_has_no_word_for_is_told() -> None:
    for version, untold in (("0.20.2", True), ("0.33.0", False)):
        asked = seen(spec={"engine": {"version": version, "maxQueuedRequests": 50}})
        said = {one.type: one for one in conditions_of(_story(asked, decide(asked), Applied()))}
        assert said["Degraded"].status == "False"
        assert ("the engine was not told --max-num-queued-reqs 50" in said["Degraded"].message) == untold, (
            said["Degraded"].message
        )
