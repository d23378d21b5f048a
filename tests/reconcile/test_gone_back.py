"""An older release finds what a newer one has made, as after a rollback of the operator, or sets whose revision it cannot read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.applier import Applied
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.rebuild import restored
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.turn import _story
from plimsoll.render.revision import Revision
from plimsoll.status.said import conditions_of
from tests.planning.asking import deployment
from tests.reconcile.test_decide import after, hashes, seen, serving

NEWER = {"of": ["a newer release"]}


def newer(made: Decision) -> dict[str, dict[str, Any]]:
    """The bodies of its revisions as a release writes them that knows more."""
    bodies = {}
    for one in made.manifests:
        if one.ref.kind == "ControllerRevision":
            body = json.loads(json.dumps(one.body))
            body["data"]["newer"] = body["data"]["entry"]["newer"] = NEWER
            body["data"]["entry"]["settings"]["newer"] = NEWER
            bodies[one.ref.name] = body
    return bodies


def gone_back(first: Decision, asked: Seen) -> Seen:
    """What the older release sees; the plan is one that it cannot read."""
    made = first.kept.plan
    assert made is not None
    plan = json.dumps({**made.to_data(), "newer": NEWER})
    kept = Kept.from_data({**first.kept.beside(), names.PLAN_KEY: plan})
    assert kept.plan is None
    there = {name: Revision.read(body) for name, body in newer(first).items()}
    kept = restored(kept, asked.deployment, asked.deployment.spec, serving(first), there)
    return replace(after(first, asked), revisions=there, kept=kept)


@pytest.mark.parametrize(
    ("edit", "replicas"),
    [
        pytest.param({}, 2, id="nothing"),
        pytest.param({"replicas": 3}, 3, id="scaled"),
        pytest.param({"replicas": 0}, 0, id="stopped"),
    ],
)
def test_a_set_of_the_newer_release_serves_on_and_is_scaled_and_stopped(
    edit: dict[str, Any], replicas: int
) -> None:
    first = decide(seen(spec={"replicas": 2}))
    (name,) = first.revisions
    asked = gone_back(first, seen(spec={"replicas": 2}))
    found = decide(replace(asked, deployment=deployment(**{"replicas": 2, **edit})))
    assert found.rollout is not None
    assert [(one.name, one.replicas) for one in found.rollout.targets] == [(name, replicas)]
    (revision,) = (one for one in found.manifests if one.ref.kind == "ControllerRevision")
    assert revision.body["data"] == newer(first)[name]["data"]
    workload = f"Deployment team-a/{name}"
    assert (hashes(found)[workload] == hashes(first)[workload]) == (replicas == 2), "no pod is made anew"


def test_a_set_of_the_newer_release_goes_after_an_edit() -> None:
    first = decide(seen(spec={"replicas": 2}))
    (name,) = first.revisions
    found = decide(
        replace(gone_back(first, seen(spec={"replicas": 2})), deployment=deployment(podLabels={"team": "b"}))
    )
    assert not found.spared
    assert found.rollout is not None
    assert {one.name: one.planned for one in found.rollout.targets}[name] is False


def test_a_set_whose_revision_cannot_be_read_is_not_ended() -> None:
    asked = seen()
    first = decide(asked)
    (name,) = first.revisions
    edited = replace(after(first, asked), revisions={}, deployment=deployment(podLabels={"team": "search"}))
    found = decide(edited)
    assert found.spared == {name[-names.SET_HASH_LENGTH :]}
    (said,) = (one for one in conditions_of(_story(edited, found, Applied())) if one.type == names.DEGRADED)
    assert (said.status, said.reason) == ("True", "SetUnreadable")


def test_the_last_pods_of_a_set_that_went_keep_nobody_waiting_for_its_revision() -> None:
    """It is deleted with its workload, and pods may drain for minutes, or stay for days on a node that is away."""
    asked = seen()
    first = decide(asked)
    (name,) = first.revisions
    edited = replace(asked, deployment=deployment(podLabels={"team": "search"}), kept=first.kept)
    rolled = after(decide(edited), edited)
    gone = SetSeen(name=name, replicas=0, pods=(PodSeen(name="p", uid="p", stage=Stage.LEAVING, node="n"),))
    found = decide(replace(rolled, serving=Serving(sets=(gone, *rolled.serving.sets))))
    assert not found.spared
    (said,) = (one for one in conditions_of(_story(rolled, found, Applied())) if one.type == names.DEGRADED)
    assert said.reason == "Healthy"


@pytest.mark.parametrize(
    ("groups", "kinds"),
    [
        (False, "delete deployments,statefulsets -n"),
        (True, "delete deployments,statefulsets,leaderworkersets -n"),
    ],
)
def test_what_ends_a_set_that_cannot_be_read_names_the_kind_that_makes_its_pods(
    groups: bool, kinds: str
) -> None:
    """A cluster that does not serve the kind would refuse the whole command."""
    asked = seen()
    first = decide(asked)
    (there,) = serving(first).sets
    left = replace(
        after(first, asked),
        serving=Serving(sets=(replace(there, one_object=groups),)),
        revisions={},
        deployment=deployment(podLabels={"team": "search"}),
    )
    (said,) = (
        one for one in conditions_of(_story(left, decide(left), Applied())) if one.type == names.DEGRADED
    )
    assert kinds in said.message
