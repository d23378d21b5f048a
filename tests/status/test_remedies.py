"""Who is called at night reads one condition: it says which field, what is wrong, and what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.control.rollout import Rules
from plimsoll.facts.failure import Failure
from plimsoll.facts.serving import Stage
from plimsoll.status.said import conditions_of
from plimsoll.status.story import Story, Trouble
from tests.planning.asking import R1, planned, pool
from tests.status.every_reason import STORIES
from tests.status.stories import asked, pod, story
from tests.status.test_conditions import OLD


def said(scene: Story, kind: str) -> str:
    (message,) = (one.message for one in conditions_of(scene) if one.type == kind)
    return message


@pytest.mark.parametrize(
    ("scene", "kind", "words"),
    [
        ("fewer GPUs are free than asked for", names.DEGRADED, ("replicas (40)", "What helps: more nodes, or fewer")),
        ("more than the most is wanted", names.SCALING, ("scaling.max is 3; raise it",)),
        ("more than the fleet has is wanted", names.SCALING, ("free GPUs, add nodes",)),
        ("more than the budget allows is wanted", names.SCALING, ("budgets raised in the admin's config",)),
        ("what fails to start is wanted", names.SCALING, ("plimsoll doctor",)),
        ("the engine dies again and again", names.STALLED,
         ("kubectl logs chat-aaaa-0 --previous", "the spec is edited", names.ANNOTATION_REPLAN)),
        ("no layout fits any GPU", names.STALLED, ("workload.contextTokens", "`plimsoll plan` lists")),
        ("no layout fits any GPU", names.PLACED, ("Stalled says",)),
        ("something is not trusted", names.PLACED, ("as Stalled",)),
        ("a set that serves cannot be read", names.DEGRADED, ("kubectl delete", f"'{names.LABEL_SET} in (aaaa)'")),
        ("GPUs are held by others", names.RECONCILING, ("What helps: free those GPUs",)),
        ("the model is being read", names.RECONCILING, ("model.source (",)),
    ],
)  # fmt: skip
def test_a_condition_says_what_to_do(scene: str, kind: str, words: tuple[str, ...]) -> None:
    message = said(STORIES[scene], kind)
    for word in words:
        assert word in message


def test_fewer_replicas_than_wanted_are_told_with_the_pod_that_fails() -> None:
    """ "1 of 2 replicas answer" alone sent whoever read it to look for the reason elsewhere."""
    failing = pod(Stage.FAILED, 1, reason="ImagePullBackOff", message="not found")
    message = said(story(pod(), failing, spec={"replicas": 2}), names.DEGRADED)
    assert message.startswith("1 of 2 replicas answer: ")
    assert "check engine.image" in message


def test_the_remedy_after_a_rollback_is_not_of_a_pod_of_the_set_that_serves() -> None:
    why = Failure("DiskFull", "a disk is full", "free the disk")
    old = replace(OLD, pods=tuple(replace(one, restarts=1, failure=why) for one in OLD.pods))
    dead = pod(Stage.FAILED, reason="CrashLoopBackOff", restarts=5, message="bad flag")
    message = said(story(dead, old=(old,), rules=Rules()), names.STALLED)
    assert "kubectl logs chat-aaaa-0 --previous" in message
    assert "free the disk" not in message


def test_what_was_fixed_and_does_not_fit_may_be_left_free() -> None:
    one = asked(source=R1, topology={"tensor": 1})
    (found,) = (found for found in planned(one, pool("L4-24GB")).findings if found.reason == "DoesNotFit")
    assert (found.remedy or "").startswith("another topology.tensor, or none, larger or more GPUs")


def test_what_stalls_is_not_told_as_a_replica_that_loads() -> None:
    taken = Trouble(reason="NameConflict", message="Service chat is not ours", stalled=True)
    message = said(story(pod(), spec={"replicas": 2}, troubles=(taken,)), names.DEGRADED)
    assert message == "1 of 2 replicas answer: Stalled says why"


def test_a_pod_that_dies_while_its_deployment_is_paused_is_told() -> None:
    dead = pod(Stage.FAILED, 1, reason="OOMKilled", restarts=3)
    scene = story(pod(), dead, spec={"replicas": 2, "paused": True})
    for kind in (names.READY, names.DEGRADED):
        assert "spec.paused is true; " in said(scene, kind)
        assert "chat-aaaa-1" in said(scene, kind)
