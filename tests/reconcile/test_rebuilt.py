"""The plan made again from the sets that serve, where its ConfigMap is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.retune import Phase
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.reconcile import turn as turns
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.rebuild import rebuilt, restored
from plimsoll.reconcile.seen import Seen
from tests.reconcile.test_decide import after, read_back, seen, serving
from tests.reconcile.test_direction import directed, settled, step
from tests.reconcile.test_turns import KEY, staged

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


def trying(phase: Phase, *, rolled: int, surge: bool, retuned_before: str | None = None) -> tuple[Seen, str]:
    """A retune that is so far under way, and the digest of what served before it. The plan is lost, and who tried with it."""
    asked = seen(spec={"replicas": 3})
    first = decide(asked)
    if retuned_before is not None:
        before = first.plan.sets[0]
        done = step(before.digest, Phase.DONE, str(before.settings.max_num_seqs), after=retuned_before)
        first = decide(directed(after(first, asked), None, done))
        while first.rollout is None or not first.rollout.settled:
            first = decide(after(first, asked))
    (chosen,) = first.plan.sets
    retune = step(
        chosen.digest, phase, str(chosen.settings.max_num_seqs), rolled=rolled, surge=surge, replicas=3
    )
    there = after(first, asked)
    found = settled(there, retune)
    lost = replace(
        asked, serving=serving(found), revisions={**there.revisions, **read_back(found)}, kept=Kept()
    )
    return lost, chosen.digest


@pytest.mark.parametrize("retuned_before", [None, "31"])
@pytest.mark.parametrize(
    ("phase", "rolled", "surge", "replicas"),
    [
        (Phase.CANARY, 1, True, 4),
        (Phase.JUDGING, 1, False, 3),
        (Phase.ROLLING, 2, True, 4),
        (Phase.ROLLING_BACK, 0, False, 3),
    ],
)
def test_what_a_retune_only_tried_is_no_part_of_a_plan_that_is_made_again(
    phase: Phase, rolled: int, surge: bool, replicas: int, retuned_before: str | None
) -> None:
    lost, served = trying(phase, rolled=rolled, surge=surge, retuned_before=retuned_before)
    there = {lost.revisions[one.name].entry.digest for one in lost.serving.sets if one.replicas}
    assert len(there) == (1 if phase is Phase.ROLLING_BACK else 2)
    plan = rebuilt(lost.deployment, lost.deployment.spec, lost.serving, lost.revisions)
    assert plan is not None
    assert [(one.digest, one.replicas) for one in plan.sets] == [(served, replicas)]
    assert plan.replicas_wanted == replicas
    found = decide(replace(lost, kept=Kept(plan=plan)))
    assert found.rollout is not None
    assert [one.digest for one in found.plan.sets] == [served]
    planned = {one.name for one in found.rollout.targets if one.planned}
    assert {lost.revisions[name].entry.digest for name in planned} == {served}


def test_which_was_tried_is_told_whichever_set_was_made_first() -> None:
    """One that failed before may be tried again."""
    lost, served = trying(Phase.JUDGING, rolled=1, surge=True)
    turned_about = replace(lost.serving, sets=lost.serving.sets[::-1])
    plan = rebuilt(lost.deployment, lost.deployment.spec, turned_about, lost.revisions)
    assert plan is not None
    assert [one.digest for one in plan.sets] == [served]


def test_where_all_run_with_the_change_there_is_nothing_else_to_go_by() -> None:
    lost, served = trying(Phase.VERIFYING, rolled=3, surge=False)
    plan = rebuilt(lost.deployment, lost.deployment.spec, lost.serving, lost.revisions)
    assert plan is not None
    assert [one.replicas for one in plan.sets] == [3]
    assert plan.sets[0].digest != served


def asking(deployment: LLMDeployment, value: str) -> LLMDeployment:
    """As a person asks for a new plan; empty: as nobody does."""
    said = {names.ANNOTATION_REPLAN: value} if value else {}
    about = deployment.metadata.model_copy(update={"annotations": said})
    return deployment.model_copy(update={"metadata": about})


@pytest.mark.parametrize(
    ("left", "value", "reason"),
    [
        pytest.param(Kept(), "march", "Pinned", id="whether it was answered is lost"),
        pytest.param(Kept(), "", "Pinned", id="nobody asked"),
        pytest.param(Kept(asked="march"), "march", "Pinned", id="the plan alone is lost"),
        pytest.param(Kept(asked="march"), "april", "Requested", id="it is known to be another"),
    ],
)
def test_what_a_person_asked_for_once_is_not_answered_again_as_the_plan_is_lost(
    left: Kept, value: str, reason: str
) -> None:
    """A better pool may be there by then, and every pod was replaced for it."""
    asked = seen(spec={"replicas": 2})
    asked = replace(asked, deployment=asking(asked.deployment, value))
    first = decide(asked)
    doors, world = staged()
    doors.there = serving(first)

    def again(deployment: LLMDeployment, kept: Kept) -> Seen:
        return turns._seen(
            world, KEY, deployment, facts=asked.facts, kept=kept, revisions=read_back(first), limits=None
        )

    found = decide(again(asked.deployment, left))
    assert found.plan.pinning is not None
    assert (found.plan.pinning.reason, found.kept.asked) == (reason, value)
    later = decide(again(asking(asked.deployment, "june"), found.kept))
    assert later.plan.pinning is not None
    assert later.plan.pinning.reason == "Requested"


def test_what_sleeps_counts_as_having_served_where_that_is_lost_too() -> None:
    """Else it would be no set to go back to, should an edit that wakes it not start."""
    asked = seen(spec={"replicas": 2})
    first = decide(asked)
    asleep = replace(
        serving(first), sets=tuple(replace(one, replicas=0, pods=()) for one in serving(first).sets)
    )
    kept = restored(Kept(), asked.deployment, asked.deployment.spec, asleep, read_back(first))
    assert (kept.plan, kept.served) == (None, tuple(first.revisions))
    known = restored(
        Kept(served=("other",)), asked.deployment, asked.deployment.spec, asleep, read_back(first)
    )
    assert known.served == ("other",)
