"""Edit after edit of a deployment that nobody gets to serve: what is kept of each, and what is told."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.seen import Seen
from tests.planning.asking import deployment
from tests.reconcile.test_decide import read_back, seen


def edited(asked: Seen, commit: int) -> Seen:
    return replace(asked, deployment=deployment(replicas=1, podAnnotations={"commit": str(commit)}))


def carried_out(found: Decision, asked: Seen, stage: Stage) -> Seen:
    """What is seen once a decision was carried out and its pods came as far as this."""
    assert found.rollout is not None
    sets = tuple(
        SetSeen(
            name=target.name,
            replicas=target.replicas,
            pods=tuple(
                PodSeen(
                    name=f"{target.name}-{n}",
                    uid=f"{target.name}-{n}",
                    stage=stage,
                    node="n",
                    reason="ImagePullBackOff",
                )
                for n in range(target.replicas)
            ),
        )
        for target in found.rollout.targets
    )
    return replace(asked, serving=Serving(sets=sets), revisions=read_back(found), kept=found.kept)


def test_no_set_is_kept_for_each_edit_that_cannot_be_pulled() -> None:
    asked = seen(spec={"replicas": 1})
    for commit in range(40):
        for _ in range(4):
            found = decide(edited(asked, commit))
            asked = carried_out(found, asked, Stage.FAILED)
        assert found.rollout is not None
        assert len(found.rollout.targets) <= 3


def test_what_served_before_is_kept_through_edits_that_cannot_be_pulled() -> None:
    first = decide(asked := seen(spec={"replicas": 1}))
    asked = carried_out(first, asked, Stage.READY)
    asked = carried_out(decide(asked), asked, Stage.FAILED)
    (served,) = first.revisions
    for commit in range(5):
        for _ in range(4):
            found = decide(edited(asked, commit))
            asked = carried_out(found, asked, Stage.FAILED)
        assert served in found.revisions
