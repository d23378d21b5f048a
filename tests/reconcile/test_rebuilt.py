"""The plan made again from the sets that serve, where its ConfigMap is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.rebuild import rebuilt
from plimsoll.reconcile.seen import Seen
from tests.reconcile.test_decide import after, read_back, seen, serving

REPLICAS = 4


def midway(ready: int, of: int) -> Seen:
    """A rollout that leaves the plan as it is, as far as so many of the new set's replicas; and the plan is lost."""
    first = decide(seen(spec={"replicas": REPLICAS}))
    changed = seen(spec={"replicas": REPLICAS, "podAnnotations": {"a": "b"}})
    second = decide(after(first, changed))
    (old,) = serving(first).sets
    assert second.rollout is not None
    (new,) = {target.name for target in second.rollout.targets} - {old.name}
    left = REPLICAS + 1 - of
    coming = SetSeen(
        name=new,
        replicas=of,
        pods=tuple(
            PodSeen(
                name=f"{new}-{n}",
                uid=f"{new}{n}",
                node="n",
                stage=Stage.READY if n < ready else Stage.LOADING,
            )
            for n in range(of)
        ),
    )
    return replace(
        changed,
        serving=Serving(sets=(replace(old, replicas=left, pods=old.pods[:left]), coming)),
        revisions={**read_back(first), **read_back(second)},
    )


@pytest.mark.parametrize(
    ("ready", "of", "replicas"), [(0, 1, 4), (1, 1, 5), (1, 2, 4), (2, 3, 4), (3, 4, 4), (4, 4, 5)]
)
def test_two_sets_of_one_plan_in_the_midst_of_a_rollout_are_one_set_of_it_with_as_many_replicas_as_serve(
    ready: int, of: int, replicas: int
) -> None:
    there = midway(ready, of)
    plan = rebuilt(there.deployment, there.deployment.spec, there.serving, there.revisions)
    assert plan is not None
    assert [chosen.replicas for chosen in plan.sets] == [replicas] == [plan.replicas_wanted]


@pytest.mark.parametrize(("ready", "of"), [(0, 1), (1, 1), (1, 2), (4, 4)])
def test_a_rollout_whose_plan_is_lost_goes_on_to_its_end(ready: int, of: int) -> None:
    """Each turn failed from then on."""
    there = midway(ready, of)
    old, new = (one.name for one in there.serving.sets)
    kept = replace(
        there.kept, plan=rebuilt(there.deployment, there.deployment.spec, there.serving, there.revisions)
    )
    for _ in range(5 * REPLICAS):
        found = decide(replace(there, kept=kept))
        there = replace(there, serving=serving(found), revisions={**there.revisions, **read_back(found)})
        kept = found.kept
    assert found.rollout is not None
    assert found.rollout.settled
    assert {target.name: target.replicas for target in found.rollout.targets}[new] == REPLICAS
    assert old not in {one.name for one in there.serving.sets if one.replicas}
