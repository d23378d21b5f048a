"""What an applier makes of answers that a real API server gives only now and then: a write that lost a race."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from plimsoll import names
from plimsoll.kube.applier import Applied, Applier, Refusal, Taken
from plimsoll.kube.child import read_child
from plimsoll.kube.children import Children
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Unreachable, refusal
from plimsoll.kube.kinds import STATEFUL_SET
from plimsoll.objects import Manifest, Owner, Ref, manifest

OWNER = Owner("team-a", "chat", "u1")
REF = Ref("v1", "Service", "team-a", "chat")
RACED = {
    "reason": "Conflict",
    "message": 'Operation cannot be fulfilled on resourcequotas "few": the object has been modified',
}


class Raced:
    """A door behind which each write meets another's, and the object is not there when it is looked for."""

    async def apply(self, *_: Any, **__: Any) -> Object:
        raise refusal(409, RACED)

    async def get(self, path: str, **_: Any) -> Object:
        raise refusal(404, {"reason": "NotFound", "message": f"{path} not found"})


class Recording:
    """A door that deletes what it is told to."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete(self, path: str, **_: Any) -> None:
        self.deleted.append(path.rpartition("/")[2])


def workload(uid: str, *, set_: str = "0a1b2c3d", digest: str = "h", **controller: str) -> Object:
    """As the API server lists it."""
    labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_DEPLOYMENT: "chat"}
    metadata = {
        "name": uid,
        "namespace": "team-a",
        "uid": uid,
        "resourceVersion": "5",
        "labels": labels | ({names.LABEL_SET: set_} if set_ else {}),
        "annotations": {names.ANNOTATION_HASH: digest} if digest else {},
        "ownerReferences": [{"apiVersion": "v1", "uid": "u1", "controller": True, **controller}]
        if controller
        else [],
    }
    return {"metadata": metadata, "spec": {"replicas": 1}}


def service() -> Manifest:
    labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_DEPLOYMENT: "chat"}
    metadata = {
        "name": "chat",
        "namespace": "team-a",
        "labels": labels,
        "annotations": {names.ANNOTATION_HASH: "h"},
    }
    return manifest({"apiVersion": "v1", "kind": "Service", "metadata": metadata})


def test_a_child_that_is_not_made_since_a_quota_was_counted_just_then_is_no_refusal_and_is_made_later() -> (
    None
):
    door = cast(Door, Raced())
    applied = asyncio.run(Applier(door, Children(door, lambda _: None)).apply(OWNER, [service()]))
    assert applied.waiting == [service().ref]
    assert applied.refused == []
    assert not applied.complete


def test_a_set_whose_owner_was_taken_away_ends_with_the_others_and_what_anybody_else_made_stays() -> None:
    door = Recording()
    children = Children(cast(Door, door), lambda _: None)
    there = [
        workload("orphan"),
        workload("owned", kind=names.KIND, name="chat", apiVersion=names.API_VERSION),
        workload("others", kind="Helper", name="h"),
        workload("made-by-hand", digest=""),
        workload("of-no-set", set_=""),
    ]
    for item in there:
        child = read_child(STATEFUL_SET, item)
        assert child is not None
        children.seen(child, as_of=5, first=True)
    applied = asyncio.run(Applier(cast(Door, door), children).apply(OWNER, []))
    assert sorted(door.deleted) == ["orphan", "owned"]
    assert applied.complete


@pytest.mark.parametrize(
    ("applied", "lasts"),
    [
        (Applied(), True),
        (Applied(refused=[Refusal(REF, refusal(422, {"reason": "Invalid"}))]), True),
        (Applied(refused=[Refusal(REF, refusal(422, {"reason": "Invalid"}))], held=[REF]), True),
        (Applied(refused=[Refusal(REF, refusal(403, {"reason": "Forbidden"}))]), False),
        (Applied(refused=[Refusal(REF, Unreachable("no answer"))]), False),
        (Applied(taken=[Taken(REF, "Helper h")]), False),
        (Applied(waiting=[REF]), False),
        (Applied(held=[REF]), False),
    ],
    ids=["all there", "invalid", "waits for what is", "forbidden", "unanswered", "taken", "leaving", "held"],
)
def test_what_is_refused_for_what_it_is_would_be_refused_again(applied: Applied, lasts: bool) -> None:
    assert applied.lasts is lasts
