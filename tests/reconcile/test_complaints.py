"""What users of other operators complained about in rollouts and GitOps, where no cluster is needed to see it.

Each test is named after the complaint that must not be true here; most of them are reproduced on a cluster, in
`e2e/turns/test_complaints.py`, and those of autoscaling in `tests/control/test_complaints.py`.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.token import mark_of
from tests.planning.asking import deployment, inventory, pool
from tests.reconcile.test_decide import after, hashes, seen


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
