"""Children are written once, undone when edited, left alone when foreign, and deleted when they are ours and not wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from cluster import Cluster
from cluster.api import ApiError
from kube.conftest import Doors
from kube.things import (
    LONGEST_SECONDS,
    Seen,
    account,
    child,
    config_map,
    deployment,
    family,
    quiet,
    revision,
    seeing,
    service,
    soon,
    workload,
)
from plimsoll import names
from plimsoll.kube.kinds import path_of
from plimsoll.objects import Manifest, Owner


@pytest.fixture
def owner(cluster: Cluster, namespace: str) -> Owner:
    return deployment(cluster.api, namespace)


def turn(door: Doors, does: Callable[[Seen], Awaitable[None]]) -> None:
    async def run() -> None:
        async with door() as opened, seeing(opened) as seen:
            await does(seen)

    asyncio.run(run())


def test_children_are_made_once_and_our_writes_wake_nobody(door: Doors, owner: Owner) -> None:
    async def does(seen: Seen) -> None:
        first = await seen.applier.apply(owner, family(owner))
        assert first.complete
        assert first.written == sorted(one.ref for one in family(owner))
        await quiet()
        assert not seen.woken[owner.key]
        again = await seen.applier.apply(owner, family(owner))
        assert again.complete
        assert not again.written

    turn(door, does)


def test_a_restart_writes_nothing_to_what_nobody_touched(door: Doors, owner: Owner) -> None:
    async def first(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner, replicas=1))
        await quiet()

    async def restarted(seen: Seen) -> None:
        assert len(seen.children.of(owner.key)) == 5
        assert not (await seen.applier.apply(owner, family(owner, replicas=1))).written
        assert not seen.woken[owner.key]

    turn(door, first)
    turn(door, restarted)


def test_what_is_wanted_otherwise_is_written_and_nothing_else(door: Doors, owner: Owner) -> None:
    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        wanted = [*family(owner)[:-1], workload(owner, replicas=3)]
        applied = await seen.applier.apply(owner, wanted)
        assert applied.written == [workload(owner).ref]
        known = seen.children.of(owner.key)[workload(owner).ref]
        assert known.workload is not None
        assert known.workload.replicas == 3

    turn(door, does)


EDITS: dict[str, tuple[Callable[[Owner], Manifest], dict[str, Any]]] = {
    "data of a ConfigMap": (config_map, {"data": {"plan.json": "mine"}}),
    "ports of a Service": (service, {"spec": {"ports": [{"port": 81}]}}),
    "replicas of a workload": (workload, {"spec": {"replicas": 2}}),
    "a label of a workload": (workload, {"metadata": {"labels": {names.LABEL_SET: "ffffffff"}}}),
    "the deployment's label": (service, {"metadata": {"labels": {names.LABEL_DEPLOYMENT: "another"}}}),
    "the label that we watch by": (service, {"metadata": {"labels": {names.LABEL_MANAGED_BY: None}}}),
    "all our labels": (account, {"metadata": {"labels": None}}),
    "the owner": (config_map, {"metadata": {"ownerReferences": None}}),
    "the owner of a workload": (workload, {"metadata": {"ownerReferences": None}}),
    "the hash": (revision, {"metadata": {"annotations": {names.ANNOTATION_HASH: "0"}}}),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_by_hand_wakes_the_owner_and_is_undone(
    cluster: Cluster, door: Doors, owner: Owner, what: str
) -> None:
    make, patch = EDITS[what]
    path = path_of(make(owner).ref)

    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        await quiet(0.2)
        await asyncio.to_thread(cluster.api.patch, path, patch)
        assert await soon(lambda: seen.woken[owner.key] > 0)
        applied = await seen.applier.apply(owner, family(owner))
        assert applied.written == [make(owner).ref]
        assert applied.complete
        found = cluster.api.get(path)
        wanted = make(owner).body
        assert found.get("data") == wanted.get("data")
        assert found["metadata"]["labels"] == wanted["metadata"]["labels"]
        assert found["metadata"]["annotations"].items() >= wanted["metadata"]["annotations"].items()
        assert found["metadata"]["ownerReferences"] == wanted["metadata"]["ownerReferences"]
        woken = seen.woken[owner.key]
        await quiet()
        assert seen.woken[owner.key] == woken
        assert not (await seen.applier.apply(owner, family(owner))).written

    turn(door, does)


def test_an_edit_while_nobody_looked_is_undone_after_a_restart(
    cluster: Cluster, door: Doors, owner: Owner
) -> None:
    async def first(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))

    async def restarted(seen: Seen) -> None:
        assert (await seen.applier.apply(owner, family(owner))).written == [config_map(owner).ref]
        assert not (await seen.applier.apply(owner, family(owner))).written

    turn(door, first)
    cluster.api.patch(
        path_of(config_map(owner).ref), {"data": {"plan.json": "mine"}}, fieldManager="somebody"
    )
    turn(door, restarted)
    assert cluster.api.get(path_of(config_map(owner).ref))["data"] == {"plan.json": "1"}


@pytest.mark.parametrize("index", range(5))
def test_a_child_that_is_deleted_by_hand_is_made_again(
    cluster: Cluster, door: Doors, owner: Owner, index: int
) -> None:
    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        gone = family(owner)[index]
        await asyncio.to_thread(cluster.api.delete, path_of(gone.ref))
        assert await soon(lambda: seen.woken[owner.key] > 0)
        assert (await seen.applier.apply(owner, family(owner))).written == [gone.ref]

    turn(door, does)


@pytest.mark.parametrize("labelled", [False, True], ids=["its own labels", "our labels"])
@pytest.mark.parametrize("index", range(5))
def test_a_foreign_object_of_the_same_name_is_left_as_it_is(
    cluster: Cluster, door: Doors, owner: Owner, index: int, *, labelled: bool
) -> None:
    body = dict(family(owner)[index].body)
    name, labels = body["metadata"]["name"], body["metadata"]["labels"] if labelled else {"by": "hand"}
    body["metadata"] = {"name": name, "namespace": owner.namespace, "labels": labels}
    path = path_of(family(owner)[index].ref)
    cluster.api.create(path.rpartition("/")[0], body, fieldManager="by-hand")

    def writers() -> list[str]:
        """Controllers write a status whenever they like."""
        fields = cluster.api.get(path)["metadata"]["managedFields"]
        return [one["manager"] for one in fields if not one.get("subresource")]

    before = writers()

    async def does(seen: Seen) -> None:
        applied = await seen.applier.apply(owner, family(owner))
        assert [taken.ref for taken in applied.taken] == [family(owner)[index].ref]
        assert "by-hand" in str(applied.taken[0])
        assert not applied.passing
        # A workload does not start without what it needs; all else is written.
        assert applied.held == ([] if index == 4 else [workload(owner).ref])

    turn(door, does)
    assert "ownerReferences" not in cluster.api.get(path)["metadata"]
    assert writers() == before


def test_what_is_ours_and_not_wanted_is_deleted_and_wakes_nobody(door: Doors, owner: Owner) -> None:
    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        applied = await seen.applier.apply(owner, [account(owner), config_map(owner)])
        assert applied.deleted == sorted(
            one.ref for one in (service(owner), revision(owner), workload(owner))
        )
        assert await soon(lambda: len(seen.children.of(owner.key)) == 2)
        await quiet()
        assert not seen.woken[owner.key]

    turn(door, does)


def test_one_refusal_is_told_and_stops_no_other_write(door: Doors, owner: Owner) -> None:
    async def does(seen: Seen) -> None:
        bad = workload(owner, image="")
        applied = await seen.applier.apply(owner, [*family(owner)[:-1], bad])
        (refusal,) = applied.refused
        assert refusal.ref == bad.ref
        assert "image: Required value" in str(refusal)
        assert not applied.passing
        assert len(applied.written) == 4

    turn(door, does)


def test_children_of_a_resource_that_had_the_name_before_are_waited_for(
    cluster: Cluster, door: Doors, owner: Owner
) -> None:
    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        collection = f"/apis/{names.API_VERSION}/namespaces/{owner.namespace}/{names.PLURAL}"
        await asyncio.to_thread(cluster.api.delete, f"{collection}/{owner.name}?propagationPolicy=Background")
        new = deployment(cluster.api, owner.namespace)

        def gone(path: str, uid: str) -> None:
            with suppress(ApiError):
                if cluster.api.get(path)["metadata"]["ownerReferences"][0]["uid"] == uid:
                    cluster.api.delete(path)

        assert new.uid != owner.uid
        applied = await seen.applier.apply(new, family(new))
        assert not applied.taken
        # The garbage collector hears of a new CRD every 30 s only, so that its work is done here.
        for one in family(owner):
            await asyncio.to_thread(gone, path_of(one.ref), owner.uid)
        async with asyncio.timeout(LONGEST_SECONDS):
            while not applied.complete or applied.written:
                await asyncio.sleep(0.1)
                applied = await seen.applier.apply(new, family(new))
                assert not applied.taken
        assert {one.owner_uid for one in seen.children.of(new.key).values()} == {new.uid}
        assert len(seen.children.of(new.key)) == 5

    turn(door, does)


@pytest.mark.parametrize("made_again", [True, False], ids=["replaced", "deleted"])
def test_a_child_that_went_unseen_is_not_written_over(
    cluster: Cluster, door: Doors, owner: Owner, *, made_again: bool
) -> None:
    path = path_of(config_map(owner).ref)

    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        await seen.children.stop()
        cluster.api.delete(path)
        if made_again:
            foreign = {"metadata": {"name": config_map(owner).ref.name}, "data": {"of": "others"}}
            cluster.api.create(path.rpartition("/")[0], foreign)
        applied = await seen.applier.apply(owner, [config_map(owner, "2")])
        assert applied.waiting == [config_map(owner).ref]
        assert not applied.refused
        if made_again:
            assert cluster.api.get(path)["data"] == {"of": "others"}

    turn(door, does)


def test_a_child_that_is_slow_to_go_is_made_again_once_it_has_gone(
    cluster: Cluster, door: Doors, owner: Owner
) -> None:
    path = path_of(config_map(owner).ref)

    async def does(seen: Seen) -> None:
        await seen.applier.apply(owner, family(owner))
        cluster.api.patch(path, {"metadata": {"finalizers": ["test.example/slow"]}})
        cluster.api.delete(path)
        assert await soon(lambda: seen.children.of(owner.key)[config_map(owner).ref].leaving)
        applied = await seen.applier.apply(owner, family(owner))
        assert applied.waiting == [config_map(owner).ref]
        seen.woken.clear()
        cluster.api.patch(path, {"metadata": {"finalizers": None}})
        assert await soon(lambda: seen.woken[owner.key] > 0)
        assert (await seen.applier.apply(owner, family(owner))).written == [config_map(owner).ref]

    turn(door, does)


@pytest.fixture
def shared(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A storage class with a volume to which one claim is bound, and in which that can grow."""
    classes, volumes = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
    metadata = {"name": namespace}
    spec = {
        "capacity": {"storage": "20Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": namespace,
        "hostPath": {"path": "/nowhere"},
    }
    provisioner = "kubernetes.io/no-provisioner"
    cluster.api.create(
        classes, {"metadata": metadata, "provisioner": provisioner, "allowVolumeExpansion": True}
    )
    cluster.api.create(volumes, {"metadata": metadata, "spec": spec})
    yield namespace
    cluster.api.delete(f"{volumes}/{namespace}")
    cluster.api.delete(f"{classes}/{namespace}")


def test_a_claim_that_a_hand_or_a_model_has_made_large_is_written_and_stays_as_large(
    cluster: Cluster, door: Doors, owner: Owner, shared: str
) -> None:
    def claim(size: str) -> Manifest:
        requests = {"requests": {"storage": size}}
        spec = {"accessModes": ["ReadWriteMany"], "storageClassName": shared, "resources": requests}
        return child(owner, "v1", "PersistentVolumeClaim", "chat-weights", spec=spec)

    path = path_of(claim("8Gi").ref)

    def asks() -> str:
        return str(cluster.api.get(path)["spec"]["resources"]["requests"]["storage"])

    async def does(seen: Seen) -> None:
        assert (await seen.applier.apply(owner, [claim("8Gi")])).complete
        assert await soon(lambda: cluster.api.get(path)["status"].get("phase") == "Bound")
        more = {"spec": {"resources": {"requests": {"storage": "10Gi"}}}}
        await asyncio.to_thread(cluster.api.patch, path, more)
        await quiet()
        for wanted, comes_to in (("8Gi", "10Gi"), ("4Gi", "10Gi"), ("12Gi", "12Gi"), ("4Gi", "12Gi")):
            applied = await seen.applier.apply(owner, [claim(wanted)])
            assert applied.complete, applied
            assert asks() == comes_to
            await quiet(0.2)
            assert not (await seen.applier.apply(owner, [claim(wanted)])).written

    turn(door, does)
