"""What users of other operators complained about in status, rollouts and GitOps, where no cluster is needed to see it.

Each test is named after the complaint that must not be true here; most of them are reproduced on a cluster, in
`e2e/turns/test_complaints.py`. Those of topology are in `tests/planning/test_complaints.py` and
`tests/control/rollout/test_complaints.py`, those of autoscaling in `tests/control/test_complaints.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.applier import Applied
from plimsoll.objects import Body
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.token import mark_of
from plimsoll.reconcile.turn import _story
from plimsoll.render.routing import POOL, ROUTE
from plimsoll.status.told import news, status_after
from tests.planning.asking import LLAMA, deployment, facts, inventory, pool
from tests.reconcile.test_decide import after, hashes, read_back, seen
from tests.render.building import engine_words


def replicas(decision: Decision) -> dict[str, int]:
    """That sets should have."""
    assert decision.rollout is not None
    return {target.name: target.replicas for target in decision.rollout.targets}


def test_a_rollout_on_a_full_cluster_waits_for_ever_for_one_more_replica() -> None:
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    world = replace(
        after(first, asked), inventory=inventory(replace(pool(), free={0: 2}, held={"team-a/chat": 2}))
    )
    edited = decide(replace(world, deployment=deployment(replicas=2, workload={"contextTokens": 8192})))
    assert edited.rollout is not None
    numbers = {target.name in first.revisions: target.replicas for target in edited.rollout.targets}
    assert numbers == {True: 1, False: 0}, "an old one goes first, and one serves on"


def test_an_image_that_changes_restarts_what_has_another_or_none() -> None:
    """One resource's image is its own: what stands beside it, with the same model, keeps its set and every object."""
    asked = seen()
    first = decide(asked)
    own = {"engine": {"image": "registry.example/vllm:mine", "version": "0.20.0"}}
    changed = decide(
        seen(spec=own, config=OperatorConfig.model_validate({"trust": {"images": ["registry.example/*"]}}))
    )
    assert set(changed.revisions).isdisjoint(first.revisions)
    assert hashes(decide(after(first, asked))).items() >= {
        (ref, digest) for ref, digest in hashes(first).items() if not ref.startswith("ConfigMap")
    }


HOLES, CLOSED = "mine.example/vllm:0.33.0-1", "mine.example/vllm:0.33.0-2"


def offering(image: str, upgrade: str) -> OperatorConfig:
    """The admin's file with the one image of the one engine, and who moves deployments to another."""
    listed = [{"version": "0.33.0", "image": image}]
    return OperatorConfig.model_validate({"engines": {"versions": listed, "upgrade": upgrade}})


def test_an_image_whose_holes_are_closed_is_brought_by_hand_or_takes_down_what_serves() -> None:
    """KAITO 1980: nobody edits the resource; what serves stays until the new image serves, and comes back if it does not."""
    asked = seen(spec={"replicas": 2}, config=offering(HOLES, "operator"))
    first = decide(asked)
    (old,) = first.revisions
    moved = decide(replace(after(first, asked), config=offering(CLOSED, "operator")))
    (new,) = set(moved.revisions) - {old}
    assert (moved.revisions[old].image, moved.revisions[new].image) == (HOLES, CLOSED)
    assert moved.plan.pinning is not None
    assert moved.plan.pinning.kept, "the layout that serves was not thought over"
    assert replicas(moved) == {old: 2, new: 1}, "one comes first, and none goes for it"
    there = after(moved, replace(asked, config=offering(CLOSED, "operator")))
    dying = tuple(
        replace(pod, stage=Stage.FAILED, restarts=9, reason="CrashLoopBackOff")
        for pod in there.serving.set_named(new).pods  # type: ignore[union-attr]
    )
    sets = tuple(replace(one, pods=dying) if one.name == new else one for one in there.serving.sets)
    back = decide(replace(there, serving=replace(there.serving, sets=sets)))
    assert back.rollout is not None
    assert back.rollout.reason == "RolledBack"
    assert replicas(back) == {old: 2, new: 0}


def test_an_image_of_the_admins_reaches_who_has_not_allowed_it() -> None:
    asked = seen(spec={"replicas": 2}, config=offering(HOLES, "manual"))
    first = decide(asked)
    stays = decide(replace(after(first, asked), config=offering(CLOSED, "manual")))
    assert set(stays.revisions) == set(first.revisions)
    assert {one.image for one in stays.revisions.values()} == {HOLES}


@pytest.mark.parametrize(("before", "now"), [("manual", "operator"), ("operator", "manual")])
def test_who_may_bring_a_newer_image_restarts_what_runs_this_one(before: str, now: str) -> None:
    asked = seen(spec={"replicas": 2}, config=offering(HOLES, before))
    first = decide(asked)
    again = decide(replace(after(first, asked), config=offering(HOLES, now)))
    assert replicas(again) == replicas(first)
    newer = set(decide(replace(after(again, asked), config=offering(CLOSED, now))).revisions)
    assert (newer > set(first.revisions)) is (now == "operator")


@pytest.mark.parametrize("turned", [False, True])
def test_an_upgrade_that_is_forbidden_in_the_midst_of_it_ends_one_way_or_another(turned: bool) -> None:
    """In whatever order its sets are seen, it goes back."""
    asked = seen(spec={"replicas": 2}, config=offering(HOLES, "operator"))
    first = decide(asked)
    moved = decide(replace(after(first, asked), config=offering(CLOSED, "operator")))
    there = after(moved, replace(asked, config=offering(CLOSED, "manual")))
    made = sorted(there.revisions.items(), reverse=turned)
    assert len(made) == 2
    back = decide(replace(there, revisions=dict(made))).rollout
    assert back is not None
    assert {target.name for target in back.targets if target.planned} == set(first.revisions)


def test_a_set_of_a_release_that_did_not_write_down_the_admins_image_is_known_by_its_digest() -> None:
    asked = seen(spec={"replicas": 2}, config=offering(HOLES, "operator"))
    first = decide(asked)
    there = after(first, asked)
    older = {name: replace(one, admins_image="") for name, one in there.revisions.items()}
    again = decide(replace(there, revisions=older, config=offering(HOLES, "manual")))
    assert replicas(again) == replicas(first)
    both = decide(replace(there, revisions=older, config=offering(CLOSED, "manual")))
    assert replicas(both) == replicas(first), "nor is it replaced where the name changes with who may"
    brought = decide(replace(there, revisions=older, config=offering(CLOSED, "operator")))
    assert set(brought.revisions) > set(first.revisions)


@pytest.mark.parametrize(
    ("source", "brings"),
    [
        (f"hf://{LLAMA}", ("fetch", f"hf://{LLAMA}")),
        ("s3://models/llama", ("fetch", "s3://models/llama")),
        ("pvc://models/llama", ("claim", "models")),
        ("oci://registry.example/llama:1", ("image", "registry.example/llama:1")),
    ],
)
def test_pods_are_sent_to_nodes_without_the_model(source: str, brings: tuple[str, str]) -> None:
    """OME 521: there a pod counts on what lies on its node. Here each brings its model to wherever it is sent, or names what the
    scheduler and the kubelet bring there, and no folder of a node is ever mounted."""
    asked = seen(spec={"model": {"source": source}})
    known = facts(deployment())
    (revision,) = decide(replace(asked, facts=known)).revisions.values()
    pod = json.loads(json.dumps(revision.leader))["spec"]
    volumes = pod["volumes"]
    found = {
        ("claim", one["persistentVolumeClaim"]["claimName"])
        for one in volumes
        if "persistentVolumeClaim" in one
    }
    found |= {("image", one["image"]["reference"]) for one in volumes if "image" in one}
    words = [word for one in pod["containers"] for word in (*one.get("command", ()), *one.get("args", ()))]
    found |= {("fetch", word) for word in words if "://" in word}
    assert brings in found
    assert not any("hostPath" in one for one in volumes)


def test_a_change_of_the_configuration_triggers_no_update() -> None:
    """Every turn stands by release and admin's file: another file makes another mark, and all is looked at again."""
    admin = OperatorConfig.model_validate({"budgets": [{"namespace": "team-a", "gpus": 8}]})
    assert mark_of("1", OperatorConfig()) != mark_of("1", admin)
    assert mark_of("1", admin) != mark_of("2", admin)
    (turn, other) = (
        next(
            one.body["metadata"]["annotations"][names.ANNOTATION_TURN]
            for one in decide(seen(mark=mark)).manifests
            if one.ref.name == "chat-plan"
        )
        for mark in (mark_of("1", OperatorConfig()), mark_of("1", admin))
    )
    assert turn != other


LARGE = "meta-llama/Llama-3.1-405B-Instruct"
OVER_TWO = {"source": LARGE, "topology": {"tensor": 8, "pipeline": 2}}
FRONT = {"replicas": 2, "networking": {"gateway": {"name": "front", "endpointPicker": {"service": "picker"}}}}
MOVED = ("gateway.networking.k8s.io", "InferencePool")
"""Where the kind may be one day."""


def over_nodes(**spec: object) -> Seen:
    return seen(spec={**OVER_TWO, **spec}, pools=(pool(nodes=4, rdma=True),))


def grouped(decision: Decision, asked: Seen, stage: Stage = Stage.READY) -> Seen:
    """The world after a decision whose replicas are two pods each, all of them at this stage."""
    assert decision.rollout is not None
    sets = tuple(
        SetSeen(
            name=one.name,
            replicas=one.replicas,
            pods_per_replica=2,
            groups=one.groups,
            pods=tuple(
                PodSeen(
                    name=f"{one.name}-{group}-{rank}",
                    uid=f"{one.name}-{group}-{rank}",
                    stage=stage,
                    group=group,
                    rank=rank,
                    node=None if stage is Stage.GATED else f"node-{group}-{rank}",
                    message="example.com/topology" if stage is Stage.GATED else "",
                )
                for group in one.groups
                for rank in range(2)
            ),
        )
        for one in decision.rollout.targets
        if one.replicas
    )
    return replace(asked, serving=Serving(sets=sets), revisions=read_back(decision), kept=decision.kept)


def of_kind(decision: Decision, kind: str) -> list[Body]:
    return [json.loads(json.dumps(one.body)) for one in decision.manifests if one.ref.kind == kind]


def backend(decision: Decision) -> str:
    (route,) = of_kind(decision, "HTTPRoute")
    (rule,) = route["spec"]["rules"]
    (found,) = rule["backendRefs"]
    return f"{found['group']}/{found['kind']}"


def pods_of(decision: Decision) -> dict[str, str]:
    """What a pod would restart for."""
    return {ref: digest for ref, digest in hashes(decision).items() if ref.startswith("Deployment")}


def test_pods_of_a_replica_never_form_one_engine() -> None:
    """AIBrix 2210, production-stack 653: two pods, two engines, or one that waits for a worker that nobody started."""
    leader, workers = sorted(
        of_kind(decide(over_nodes(replicas=1)), "StatefulSet"), key=lambda one: one["metadata"]["name"]
    )
    assert leader["spec"]["podManagementPolicy"] == workers["spec"]["podManagementPolicy"] == "Parallel"
    first, number = workers["spec"]["ordinals"]["start"], workers["spec"]["replicas"]
    assert (leader["spec"]["replicas"], first, number) == (1, 1, 1), "ranks 0 and 1, and each of them once"
    words = [engine_words(one["spec"]["template"]) for one in (leader, workers)]
    assert [*words[0], "--headless"] == words[1], "one engine, of which one pod alone answers"
    for flag, value in (
        ("--nnodes", "2"),
        ("--tensor-parallel-size", "8"),
        ("--pipeline-parallel-size", "2"),
    ):
        assert words[0][words[0].index(flag) + 1] == value
    at = [
        next(each["value"] for each in env if each["name"] == "PLIMSOLL_LEADER")
        for one in (leader, workers)
        for env in [one["spec"]["template"]["spec"]["containers"][0]["env"]]
    ]
    assert at[0] == at[1], "they meet at one address"
    assert at[0].split(".")[0].replace("$(PLIMSOLL_GROUP)", "0") == f"{leader['metadata']['name']}-0"


def test_an_edit_of_the_cut_over_nodes_reaches_no_pod_or_all_at_once() -> None:
    """Kthena 1114: an edited topology stayed in the spec. Here it is another set, which comes beside what serves."""
    asked = over_nodes(replicas=1)
    first = decide(asked)
    (old,) = first.revisions
    edited = over_nodes(replicas=1, topology={"tensor": 4, "pipeline": 4})
    moved = decide(replace(grouped(first, asked), deployment=edited.deployment))
    (new,) = set(moved.revisions) - {old}
    assert replicas(moved) == {old: 1, new: 1}
    assert {str(one.entry.layout) for one in moved.revisions.values()} == {"tp8-pp2", "tp4-pp4"}


def test_a_group_has_pods_of_two_revisions() -> None:
    """LeaderWorkerSet 280: an update reached some pods of a group. Here a group is of one set, and its template stays."""
    asked = over_nodes(replicas=1)
    first = decide(asked)
    again = decide(
        replace(
            grouped(first, asked),
            deployment=over_nodes(replicas=1, podAnnotations={"team": "b"}).deployment,
        )
    )
    assert len(again.revisions) == 2
    by_group: dict[tuple[str, str], set[str]] = {}
    for one in of_kind(again, "StatefulSet"):
        labels = one["spec"]["template"]["metadata"]["labels"]
        selected = one["spec"]["selector"]["matchLabels"]
        assert selected.items() <= labels.items()
        assert one["spec"]["updateStrategy"]["type"] == "OnDelete"
        key = (labels[names.LABEL_SET], labels[names.LABEL_GROUP])
        by_group.setdefault(key, set()).add(
            str(one["spec"]["template"]["metadata"].get("annotations", {}).get("team"))
        )
    assert sorted(map(sorted, by_group.values())) == [["None"], ["b"]]
    kept = {ref: digest for ref, digest in hashes(first).items() if ref.startswith("StatefulSet")}
    assert kept.items() <= hashes(again).items(), "nothing of the group that serves is another"


def test_a_group_that_comes_from_zero_stays_gated_with_no_event() -> None:
    """Dynamo 14278, Grove 809: what holds it back is said in a condition, in the count of replicas, and once by an event."""
    asked = over_nodes(replicas=0)
    zero = decide(asked)
    idle = status_after(
        _story(grouped(zero, asked), zero, Applied()), LLMDeploymentStatus(), "2026-01-01T00:00:00Z"
    )
    ready = get_condition(idle.conditions, names.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Stopped")
    woken = replace(grouped(zero, asked), deployment=over_nodes(replicas=1).deployment)
    held = grouped(decide(woken), woken, Stage.GATED)
    now = status_after(_story(held, decide(held), Applied()), idle, "2026-01-01T00:01:00Z")
    ready = get_condition(now.conditions, names.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "WaitingForQuota")
    assert "held back by a scheduling gate: example.com/topology" in ready.message
    assert now.replica_status is not None
    assert now.replica_status.waiting_for_quota == 1
    (event,) = [one for one in news(idle.conditions, now.conditions) if one.about == names.READY]
    assert (event.type, event.reason, event.message) == ("Warning", ready.reason, ready.message)
    assert (
        news(
            now.conditions,
            status_after(_story(held, decide(held), Applied()), now, "2026-01-01T00:02:00Z").conditions,
        )
        == ()
    )


def test_what_is_suspended_for_a_queue_is_planned_anew_when_it_comes_back() -> None:
    """KServe 5645: `replicas: 0` gives every GPU back and keeps plan and set; what comes back is the same, in the same queue."""
    queue = {"scheduling": {"queue": "llms"}}
    asked = over_nodes(replicas=1, **queue)
    first = decide(asked)
    off = replace(grouped(first, asked), deployment=over_nodes(replicas=0, **queue).deployment)
    stopped = decide(off)
    assert of_kind(stopped, "StatefulSet") == []
    assert stopped.reservations == ()
    back = decide(replace(grouped(stopped, off), deployment=asked.deployment))
    sets = {ref: digest for ref, digest in hashes(first).items() if ref.startswith("StatefulSet")}
    assert sets.items() <= hashes(back).items()
    assert {
        one["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for one in of_kind(back, "StatefulSet")
    } == {"llms"}


@pytest.mark.parametrize(
    ("served", "leads"),
    [
        ({ROUTE}, "/Service"),
        ({ROUTE, MOVED}, "/Service"),
        ({ROUTE, POOL}, "/".join(POOL)),
        ({ROUTE, POOL, MOVED}, "/".join(POOL)),
    ],
    ids=["it is not there", "it has moved", "it is there", "it is at both places"],
)
def test_an_inference_pool_that_is_not_there_or_moves_leaves_no_way_in(
    served: set[tuple[str, str]], leads: str
) -> None:
    """Gateway API 4919: the route leads to the pool where the cluster serves the kind as it is known here, else to the Service."""
    found = decide(seen(spec=FRONT, capabilities=frozenset(served)))
    assert backend(found) == leads
    assert len(of_kind(found, "InferencePool")) == (POOL in served)
    assert [one.field for one in found.unserved] == [
        "spec.networking.gateway.endpointPicker" for _ in {POOL} - served
    ]


def test_an_inference_pool_that_comes_or_goes_restarts_what_serves() -> None:
    """Gateway API inference extension 1558: a move of that API meant to delete and make again."""
    asked = seen(spec=FRONT, capabilities=frozenset({ROUTE, POOL}))
    first = decide(asked)
    gone = decide(replace(after(first, asked), capabilities=frozenset({ROUTE, MOVED})))
    back = decide(replace(after(gone, asked), capabilities=frozenset({ROUTE, POOL})))
    assert [backend(one) for one in (first, gone, back)] == ["/".join(POOL), "/Service", "/".join(POOL)]
    assert pods_of(first) == pods_of(gone) == pods_of(back) != {}
