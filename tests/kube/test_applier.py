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
from plimsoll.kube.kinds import STATEFUL_SET, kind_of
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


BY_HAND = [
    {
        "manager": "by-hand",
        "operation": "Update",
        "fieldsV1": {"f:spec": {"f:selector": {"f:example.com/else": {}}}},
    }
]


class Deleted:
    """A door to an object that a hand has changed, and that is deleted right after our apply."""

    def __init__(self, *, refuses: bool) -> None:
        self.missed = 0
        self._refuses = refuses

    async def apply(self, path: str, body: Object, **_: Any) -> Object:
        if self._refuses:
            raise refusal(422, {"reason": "Invalid", "message": f"{path} is not as it should be"})
        metadata = {**body["metadata"], "uid": "s1", "resourceVersion": "6", "managedFields": BY_HAND}
        return {**body, "metadata": metadata}

    async def get(self, path: str, *_: Any, **__: Any) -> Object:
        self.missed += 1
        raise refusal(404, {"reason": "NotFound", "message": f"{path} not found"})

    patch = get


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


@pytest.mark.parametrize(
    "refuses", [True, False], ids=["beside ours it is refused", "it chose nothing by it"]
)
def test_what_a_hand_adds_to_and_then_deletes_is_no_refusal_and_is_made_later(*, refuses: bool) -> None:
    door = Deleted(refuses=refuses)
    body = {**way_in("v1", "Service").body, "spec": {"selector": {names.LABEL_DEPLOYMENT: "chat"}}}
    there = manifest({**body, "metadata": {**body["metadata"], "managedFields": BY_HAND}})
    applied = asyncio.run(known(door, there).apply(OWNER, [manifest(body)]))
    assert applied.refused == []
    assert applied.waiting == ([there.ref] if refuses else [])
    assert door.missed == 1


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


class Storing:
    """A door that makes what it is told to, but for kinds that it refuses, and remembers in which order."""

    def __init__(self, *refused: str) -> None:
        self.asked: list[str] = []
        self._refused = refused

    async def apply(self, path: str, body: Object, **_: Any) -> Object:
        self.asked.append(f"apply {body['kind']}")
        await asyncio.sleep(0)
        if body["kind"] in self._refused:
            raise refusal(422, {"reason": "Invalid", "message": f"{path} is not as it should be"})
        return {**body, "metadata": {**body["metadata"], "uid": "made", "resourceVersion": "7"}}

    async def delete(self, path: str, **_: Any) -> None:
        self.asked.append(f"delete {path.rpartition('/')[2]}")


def way_in(api_version: str, kind: str, digest: str = "new") -> Manifest:
    labels = {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_DEPLOYMENT: "chat"}
    metadata = {
        "name": kind.lower(),
        "namespace": "team-a",
        "labels": labels,
        "annotations": {names.ANNOTATION_HASH: digest},
        "ownerReferences": [
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": "chat",
                "uid": "u1",
                "controller": True,
            }
        ],
    }
    return manifest({"apiVersion": api_version, "kind": kind, "metadata": metadata})


def route(digest: str = "new") -> Manifest:
    return way_in("gateway.networking.k8s.io/v1", "HTTPRoute", digest)


def pool() -> Manifest:
    return way_in("inference.networking.k8s.io/v1", "InferencePool")


def known(door: Storing | Deleted, *there: Manifest) -> Applier:
    """An applier that has seen these."""
    children = Children(cast(Door, door), lambda _: None)
    for one in there:
        metadata = {**one.body["metadata"], "uid": one.ref.kind, "resourceVersion": "5"}
        child = read_child(kind_of(one.ref), {**one.body, "metadata": metadata})
        assert child is not None
        children.seen(child, as_of=5, first=True)
    return Applier(cast(Door, door), children)


def test_a_route_is_turned_to_a_pool_only_once_that_is_there() -> None:
    door = Storing()
    applier = known(door)
    applied = asyncio.run(applier.apply(OWNER, [route(), pool()]))
    assert applied.complete
    assert door.asked == ["apply InferencePool", "apply HTTPRoute"]


def test_a_route_stays_where_it_leads_while_the_pool_is_refused() -> None:
    door = Storing("InferencePool")
    applier = known(door, route("to the Service"))
    applied = asyncio.run(applier.apply(OWNER, [route(), pool()]))
    assert door.asked == ["apply InferencePool"]
    assert applied.held == [route().ref]
    assert applied.lasts, "the same pool would be refused again"


def test_a_route_that_waits_for_its_pool_keeps_no_replica_that_is_not_wanted() -> None:
    """Each replica over nodes is a StatefulSet, and a pool may be refused for ever, as where a picker's own chart made one of its name."""
    service, replica = way_in("v1", "Service"), way_in("apps/v1", "StatefulSet")
    door = Storing("InferencePool")
    applier = known(door, route("to the Service"), service, replica)
    applied = asyncio.run(applier.apply(OWNER, [route(), pool()]))
    assert door.asked == ["apply InferencePool", "delete statefulset"]
    assert applied.held == [route().ref]


def test_nothing_goes_while_what_was_decided_is_not_on_record() -> None:
    """An operator that ended then would leave a record by which the next one makes again what is gone."""
    record = way_in("v1", "ConfigMap")
    record = manifest({**record.body, "data": {names.PLAN_KEY: "{}"}})
    replica = way_in("apps/v1", "StatefulSet")
    door = Storing("ConfigMap")
    applied = asyncio.run(known(door, replica).apply(OWNER, [record]))
    assert door.asked == ["apply ConfigMap"]
    assert not applied.complete
    door = Storing()
    asyncio.run(known(door, replica).apply(OWNER, [record]))
    assert door.asked == ["apply ConfigMap", "delete statefulset"]


def test_what_a_route_has_led_to_goes_a_turn_after_the_route_was_turned() -> None:
    """A gateway hears of either by a watch of its own, of the deletion perhaps first."""
    door = Storing()
    applier = known(door, route("to the pool"), pool())
    applied = asyncio.run(applier.apply(OWNER, [route("to the Service")]))
    assert door.asked == ["apply HTTPRoute"]
    assert applied.waiting == [pool().ref]
    assert not applied.lasts, "another turn comes"
    applied = asyncio.run(applier.apply(OWNER, [route("to the Service")]))
    assert door.asked == ["apply HTTPRoute", "delete inferencepool"]
    assert applied.complete


def claim(size: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}}
    return manifest({**way_in("v1", "PersistentVolumeClaim", size).body, "spec": spec})


class Growing(Storing):
    """A door to a claim that asks for so much."""

    def __init__(self, has: str, *, unseen: bool = False) -> None:
        super().__init__()
        self.requests: list[str] = []
        self._there, self._unseen = claim(has).body, unseen

    async def get(self, path: str, **_: Any) -> Object:
        assert path.endswith("/persistentvolumeclaims/persistentvolumeclaim")
        return {**self._there, "metadata": {**self._there["metadata"], "uid": "PersistentVolumeClaim"}}

    async def apply(self, path: str, body: Object, **how: Any) -> Object:
        if self._unseen and "uid" not in body["metadata"]:
            raise refusal(409, {"reason": "Conflict", "message": "it is there"})
        self.requests.append(body["spec"]["resources"]["requests"]["storage"])
        return await super().apply(path, body, **how)


@pytest.mark.parametrize(
    ("has", "asked", "written"),
    [
        ("29Gi", "15Gi", "29Gi"),
        ("200Gi", "29Gi", "200Gi"),
        ("29Gi", "150Gi", "150Gi"),
        ("30Gi", "30720Mi", "30720Mi"),
        ("40G", "29Gi", "40G"),
        ("4e10", "29Gi", "4e10"),
    ],
    ids=[
        "a smaller model",
        "enlarged by hand",
        "a larger model",
        "as much",
        "in other units",
        "with an exponent",
    ],
)
@pytest.mark.parametrize("unseen", [False, True], ids=["known", "without its labels"])
def test_a_claim_asks_for_no_less_than_it_did_and_is_done(
    has: str, asked: str, written: str, *, unseen: bool
) -> None:
    door = Growing(has, unseen=unseen)
    applier = known(door) if unseen else known(door, claim(has))
    applied = asyncio.run(applier.apply(OWNER, [claim(asked)]))
    assert door.requests == [written]
    assert applied.complete
    asyncio.run(applier.apply(OWNER, [claim(asked)]))
    assert len(door.requests) == 1, "it is as it should be"


class Lost(Growing):
    """A door to a claim that is gone, of which nobody has heard."""

    async def get(self, path: str, **_: Any) -> Object:
        raise refusal(404, {"reason": "NotFound", "message": f"{path} not found"})

    async def apply(self, *_: Any, **__: Any) -> Object:
        raise refusal(409, {"reason": "Conflict", "message": "uid mismatch: the provided object is gone"})


def test_a_claim_that_has_gone_unseen_is_made_later() -> None:
    applied = asyncio.run(known(Lost("29Gi"), claim("29Gi")).apply(OWNER, [claim("15Gi")]))
    assert (applied.waiting, applied.refused) == ([claim("15Gi").ref], [])
