"""A pod that reads a model, as its status tells."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from plimsoll.facts.serving import Stage
from plimsoll.kube.door import Door
from plimsoll.kube.errors import Conflict, Refused
from plimsoll.kube.facts_pods import FactsPods, read_facts_pod
from plimsoll.objects import Manifest, Ref

OWNER = {"kind": "LLMDeployment", "name": "chat", "uid": "o", "controller": True}


def item(name="chat-facts-1", status=None, **metadata):
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid of {name}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"plimsoll.dev/deployment": "chat", "plimsoll.dev/role": "facts"},
            "annotations": {"plimsoll.dev/ticket": "t", "plimsoll.dev/attempt": "2"},
            "ownerReferences": [OWNER],
            **metadata,
        },
        "spec": {"nodeName": "n", "containers": [{"name": "facts"}]},
        "status": status or {},
    }


def ended(code, message, phase):
    state = {
        "terminated": {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "message": message,
            "finishedAt": "2026-01-01T00:01:00Z",
        }
    }
    return {"phase": phase, "containerStatuses": [{"name": "facts", "state": state}]}


def test_what_it_told_is_read_whole_where_it_ended_well():
    message = '{"schema": 1, "model": "' + "x" * 4000 + '"}'
    found = read_facts_pod(item(status=ended(0, message, "Succeeded")))
    assert (found.told, found.ticket, found.attempt, found.owner) == (message, "t", 2, "o")
    assert found.ended == 1767225660.0


def test_why_it_failed_is_its_supervisors_word():
    said = '{"word": "GatedModel", "message": "no", "remedy": "ask"}'
    found = read_facts_pod(item(status=ended(1, said, "Failed")))
    assert found.told is None
    assert found.ended
    assert found.seen.failure is not None
    assert (found.seen.failure.word, found.seen.failure.remedy) == ("GatedModel", "ask")


def test_one_that_was_ended_from_outside_has_ended():
    status = {"phase": "Failed", "reason": "DeadlineExceeded", "message": "too long"}
    found = read_facts_pod(item(status=status))
    assert (found.told, found.seen.reason) == (None, "DeadlineExceeded")
    assert found.ended == 1767225600.0


def test_one_that_runs_or_waits_has_not_ended():
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "hub" not found'}
    found = read_facts_pod(
        item(status={"containerStatuses": [{"name": "facts", "state": {"waiting": waiting}}]})
    )
    assert (found.ended, found.told, found.seen.stage) == (0.0, None, Stage.FAILED)
    assert read_facts_pod(item(annotations=None, ownerReferences=None)).attempt == 1


def test_one_that_leaves_ended_when_it_was_told_to():
    about = {"deletionTimestamp": "2026-01-01T00:02:30Z", "deletionGracePeriodSeconds": 30}
    found = read_facts_pod(item(status={"phase": "Running"}, **about))
    assert (found.leaving, found.told, found.ended) == (True, None, 1767225720.0)
    assert read_facts_pod(item(status=ended(0, "{}", "Succeeded"), **about)).ended == 1767225660.0


def test_its_deployment_is_woken_by_what_changes_and_by_nothing_else():
    woken: list[str] = []
    pods = FactsPods(cast(Door, None), woken.append)
    pods.put(item())
    pods.put(item())
    assert woken == ["team/chat"]
    pods.put(item(status=ended(0, "{}", "Succeeded")))
    assert len(woken) == 2
    assert [one.told for one in pods.of("team/chat")] == ["{}"]
    pods.forget("team/chat", "chat-facts-1")
    pods.forget("team/chat", "chat-facts-1")
    assert (len(woken), pods.of("team/chat"), pods.all()) == (3, (), [])


@pytest.mark.parametrize(
    "strange",
    [
        {"metadata": {"annotations": {"plimsoll.dev/attempt": "9" * 5000}, "ownerReferences": None}},
        {
            "status": {
                "phase": "Failed",
                "containerStatuses": [{"state": {"terminated": {"finishedAt": "?"}}}],
            }
        },
        {"status": {"conditions": [None]}},
    ],
)
def test_a_pod_that_anybody_may_make_does_not_end_the_list(strange):
    class Lists:
        async def pages(self, *_, **__):
            other = item("strange")
            yield SimpleNamespace(
                version="5",
                items=[
                    {**other, **strange, "metadata": other["metadata"] | strange.get("metadata", {})},
                    item(),
                ],
            )

        async def watch(self, *_, **__):
            await asyncio.Event().wait()
            yield

    async def seen():
        pods = FactsPods(cast(Door, Lists()), lambda _: None)
        pods.start()
        async with asyncio.timeout(60):
            await pods.synced()
        await pods.stop()
        return pods

    pods = asyncio.run(seen())
    assert not pods.problems
    assert "chat-facts-1" in [one.seen.name for one in pods.of("team/chat")]


@pytest.mark.parametrize(("said", "attempt"), [("12", 12), ("9" * 10, 1), ("-1", 1), ("", 1)])
def test_an_attempt_is_a_number_of_few_digits(said, attempt):
    assert read_facts_pod(item(annotations={"plimsoll.dev/attempt": said})).attempt == attempt


class Answers:
    def __init__(self, error=None):
        self.error = error
        self.paths = []

    async def create(self, path, body, *, manager, metadata):
        self.paths.append(path)
        if self.error is not None:
            raise self.error
        return item()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, False),
        (Conflict(409, {"reason": "AlreadyExists"}), False),
        (Refused(403, {"reason": "Forbidden", "message": "exceeded quota: few"}), True),
    ],
)
def test_one_that_is_there_already_is_as_good_as_made_and_a_refusal_is_told(error, told):
    woken: list[str] = []
    door = Answers(error)
    pods = FactsPods(cast(Door, door), woken.append)
    wanted = Manifest(Ref("v1", "Pod", "team", "chat-facts-1"), {})
    found = asyncio.run(pods.make(wanted))
    assert (found is not None) is told
    assert door.paths == ["/api/v1/namespaces/team/pods"]
    assert woken == [], "our own write seen back wakes nobody"
    assert len(pods.of("team/chat")) == (error is None)


SUCCEEDED = ended(0, "{}", "Succeeded")


@pytest.mark.parametrize(
    ("gone", "told"), [(False, ["{}"]), (True, [])], ids=["it has ended", "it is gone again"]
)
def test_what_is_seen_of_a_pod_before_the_answer_that_it_was_made_is_newer(gone, told):
    class Late(Answers):
        async def create(self, *_, **__):
            pods.put(item(status=SUCCEEDED))
            if gone:
                pods.forget("team/chat", "chat-facts-1")
            return item()

    pods = FactsPods(cast(Door, Late()), lambda _: None)
    assert asyncio.run(pods.make(Manifest(Ref("v1", "Pod", "team", "chat-facts-1"), item()))) is None
    assert [one.told for one in pods.of("team/chat")] == told
