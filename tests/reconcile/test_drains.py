"""What a drain may take where nothing else is written: while the spec is paused, or wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.facts.serving import Serving, Stage
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.seen import Seen
from tests.planning.asking import deployment, inventory, pool
from tests.reconcile.test_decide import after, budget, seen

DRAINED = "node n, which is cordoned"


def one_leaves(first: Decision, asked: Seen, leaving: int = 1, stage: Stage = Stage.READY) -> Seen:
    world = after(first, asked)
    (there,) = world.serving.sets
    went = tuple(replace(pod, leaves=DRAINED, stage=stage) for pod in there.pods[:leaving])
    sets = (replace(there, pods=(*went, *there.pods[leaving:])),)
    return replace(world, serving=Serving(sets=sets))


def edited(world: Seen, **spec: Any) -> Decision:
    return decide(replace(world, deployment=deployment(**spec)))


@pytest.mark.parametrize("leaving", [1, 4])
def test_a_drain_takes_one_replica_after_the_other_while_paused(leaving: int) -> None:
    asked = seen(spec={"replicas": 4})
    first = decide(asked)
    found = edited(one_leaves(first, asked, leaving), replicas=4, paused=True)
    assert [one.ref.kind for one in found.manifests] == ["PodDisruptionBudget"]
    assert budget(found) == 3
    assert not found.prune
    assert found.rollout is not None
    assert (found.rollout.reason, found.rollout.message) == ("Held", "spec.paused is true")
    assert [target.replicas for target in found.rollout.targets] == [4]
    went = edited(one_leaves(first, asked, leaving, Stage.LEAVING), replicas=4, paused=True)
    assert budget(went) == 4, "and holds again what stays"


def test_what_the_edit_of_a_paused_spec_asks_for_holds_and_lets_go_nothing() -> None:
    asked = seen(spec={"replicas": 4})
    world = after(decide(asked), asked)
    assert budget(edited(world, replicas=2, paused=True)) == 4
    assert budget(edited(world, replicas=9, paused=True)) == 4


def test_nothing_is_made_for_what_was_paused_before_it_ran() -> None:
    assert decide(seen(spec={"replicas": 4, "paused": True})).manifests == ()


def test_what_a_drain_has_let_go_is_held_again_while_the_spec_is_wrong() -> None:
    asked = seen(spec={"replicas": 4})
    first = decide(asked)
    full = inventory(replace(pool(), free={0: 4}))
    drained = edited(replace(one_leaves(first, asked, 4), inventory=full), replicas=4, topology={"tensor": 3})
    assert budget(drained) == 3
    assert budget(edited(after(first, asked), replicas=4, topology={"tensor": 3})) == 4
