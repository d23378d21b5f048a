"""What users of other operators complained about in rollouts and GitOps, where no cluster is needed to see it.

Each test is named after the complaint that must not be true here; most of them are reproduced on a cluster, in
`e2e/turns/test_complaints.py`, and those of autoscaling in `tests/control/test_complaints.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.facts.serving import Stage
from plimsoll.reconcile.decide import Decision, decide
from plimsoll.reconcile.token import mark_of
from tests.planning.asking import LLAMA, deployment, facts, inventory, pool
from tests.reconcile.test_decide import after, hashes, seen


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


def test_a_set_of_a_release_that_did_not_write_down_the_admins_image_is_known_by_its_digest() -> None:
    asked = seen(spec={"replicas": 2}, config=offering(HOLES, "operator"))
    first = decide(asked)
    there = after(first, asked)
    older = {name: replace(one, admins_image="") for name, one in there.revisions.items()}
    again = decide(replace(there, revisions=older, config=offering(HOLES, "manual")))
    assert replicas(again) == replicas(first)


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
