"""What turns keep between them saves reads, and is never older than what the cluster shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, cast

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.groups import Reservation
from plimsoll.facts.resolve import Resolver
from plimsoll.kube.child import Child
from plimsoll.kube.errors import NotFound
from plimsoll.objects import Ref
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.world import Cluster, World
from plimsoll.render.revision import Revision
from plimsoll.render.shared import plan_ref
from tests.render.building import frozen, plan_of, resource

KEY = "team-a/chat"
PLAN = plan_ref("team-a", "chat")


def child(ref: Ref, *, uid: str = "u", version: str = "5", clean: bool = True) -> Child:
    return Child(
        ref=ref, owner=KEY, uid=uid, version=version, owner_uid="o", holder="", hash="", mark=0, clean=clean,
        leaving=False, created=0.0, set="", failed="", workload=None,
    )  # fmt: skip


class Shelf:
    """A cluster of a few objects that counts how often it is read."""

    def __init__(self) -> None:
        self.there: dict[Ref, Child] = {}
        self.bodies: dict[Ref, dict[str, Any]] = {}
        self.reads = 0
        self.at_once = self.most_at_once = 0

    def children(self, _: str) -> Mapping[Ref, Child]:
        return self.there

    def promise(self, key: str, reservations: tuple[Reservation, ...]) -> None:
        """What is promised is of no interest here."""

    async def read(self, ref: Ref) -> Mapping[str, Any]:
        self.reads += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for _ in range(10):  # rounds of the loop: long enough for whoever asks at the same time
            await asyncio.sleep(0)
        self.at_once -= 1
        if ref not in self.bodies:
            raise NotFound(404, {"reason": "NotFound"})
        known = self.there[ref]
        return {
            **self.bodies[ref],
            "metadata": {"uid": known.uid, "resourceVersion": known.version, "name": ref.name},
        }


def world(shelf: Shelf) -> World:
    return World(
        cluster=cast(Cluster, shelf),
        resources=Resources(),
        models=Models(Resolver(), time.monotonic),
        now=time.time,
        config=OperatorConfig(),
    )


def kept(digest: str) -> Kept:
    return Kept(asked=digest)


def test_a_pinned_plan_is_read_once_a_version() -> None:
    shelf = Shelf()
    shelf.there[PLAN] = child(PLAN)
    shelf.bodies[PLAN] = {"data": {"replan": "1"}}
    here = world(shelf)
    assert [asyncio.run(here.kept(KEY)).asked for _ in range(3)] == ["1"] * 3
    assert shelf.reads == 1
    shelf.there[PLAN] = child(PLAN, version="6")
    shelf.bodies[PLAN] = {"data": {"replan": "2"}}
    assert asyncio.run(here.kept(KEY)).asked == "2"
    del shelf.there[PLAN]
    assert asyncio.run(here.kept(KEY)) == Kept()


@pytest.mark.parametrize(("clean", "reads"), [(True, 0), (False, 1)])
def test_what_was_just_written_is_not_read_back_unless_somebody_else_wrote_too(
    clean: bool, reads: int
) -> None:
    shelf = Shelf()
    shelf.there[PLAN] = child(PLAN, clean=clean)
    shelf.bodies[PLAN] = {"data": {"replan": "theirs"}}
    here = world(shelf)
    here.wrote(KEY, kept("ours"), {}, [PLAN])
    assert asyncio.run(here.kept(KEY)).asked == ("ours" if clean else "theirs")
    assert shelf.reads == reads


def test_a_set_that_was_just_made_is_not_read_back_and_reads_the_same() -> None:
    revision = frozen(resource())
    ref = Ref("apps/v1", "ControllerRevision", "team-a", revision.name)
    shelf = Shelf()
    shelf.there[ref] = child(ref, uid="made")
    shelf.bodies[ref] = {"data": revision.to_data()}
    here = world(shelf)
    here.wrote(KEY, Kept(), {revision.name: revision}, [ref])
    assert asyncio.run(here.revisions(KEY)) == {revision.name: revision}
    assert shelf.reads == 0
    assert Revision.read(asyncio.run(shelf.read(ref))) == revision
    assert asyncio.run(world(shelf).revisions(KEY)) == {revision.name: revision}


def test_what_is_kept_of_a_plan_is_what_would_be_read_back() -> None:
    ours = Kept(plan=plan_of(resource()), asked="now")
    assert ours.plan is not None
    data = {**ours.beside(), "plan.json": ours.plan.to_bytes().decode()}
    assert Kept.from_data(data) == ours


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, "[]", "7"], ids=["cut", "too deep", "a list", "a number"]
)
def test_what_was_kept_and_cannot_be_read_counts_as_none(text: str) -> None:
    keys = ("plan.json", "previous.json", "control.json", "retry.json", "models.json")
    assert Kept.from_data(dict.fromkeys(keys, text)) == Kept()


def test_a_plan_and_sets_of_a_resource_that_had_the_name_before_are_not_its_own() -> None:
    revision = frozen(resource())
    ref = Ref("apps/v1", "ControllerRevision", "team-a", revision.name)
    shelf = Shelf()
    shelf.there = {PLAN: child(PLAN), ref: child(ref, uid="made")}
    shelf.bodies = {PLAN: {"data": {"replan": "1"}}, ref: {"data": revision.to_data()}}
    here = world(shelf)
    for uid, own in (("o", True), ("another", False)):
        about = {"uid": uid, "namespace": "team-a", "name": "chat", "resourceVersion": "9"}
        here.resources.put(KEY, {"metadata": about})
        assert (asyncio.run(here.kept(KEY)) == Kept(asked="1")) is own
        assert bool(asyncio.run(here.revisions(KEY))) is own


def test_the_plan_and_all_sets_are_read_side_by_side() -> None:
    shelf = Shelf()
    shelf.there[PLAN], shelf.bodies[PLAN] = child(PLAN), {"data": {"replan": "1"}}
    revision = frozen(resource())
    for number, data in enumerate((revision.to_data(), revision.to_data(), {"nobody": "can read this"})):
        ref = Ref("apps/v1", "ControllerRevision", "team-a", f"chat-{number}")
        shelf.there[ref], shelf.bodies[ref] = child(ref, uid=f"u{number}"), {"data": data}
    left, sets = asyncio.run(world(shelf).left(KEY))
    assert (left.asked, list(sets)) == ("1", ["chat-0", "chat-1"])
    assert (shelf.most_at_once, shelf.reads) == (4, 4)


def test_what_is_gone_before_a_watch_has_told_of_it_is_gone_and_no_turn_fails_for_it() -> None:
    """A hand deleted a set's frozen template while a turn was about to read it: the turn failed, and was tried again in a second."""
    shelf = Shelf()
    revision = frozen(resource())
    gone, stays = (Ref("apps/v1", "ControllerRevision", "team-a", name) for name in ("chat-0", "chat-1"))
    shelf.there = {PLAN: child(PLAN), gone: child(gone, uid="gone"), stays: child(stays, uid="stays")}
    shelf.bodies = {stays: {"data": revision.to_data()}}
    here = world(shelf)
    left, sets = asyncio.run(here.left(KEY))
    assert (left, list(sets)) == (Kept(), ["chat-1"])
    shelf.bodies[PLAN] = {"data": {"replan": "1"}}
    assert asyncio.run(here.kept(KEY)).asked == "1", "it is not remembered as gone"


def test_what_was_just_decided_for_one_is_not_left_of_the_budget_to_another() -> None:
    """Two first plans at once: neither finds the other's in the cluster yet."""
    shelf = Shelf()
    here = world(shelf)
    here.config = OperatorConfig.model_validate({"budgets": [{"namespace": "team-a", "gpus": 8}]})
    for name in ("chat", "code"):
        about = {"uid": name, "namespace": "team-a", "name": name, "resourceVersion": "9"}
        here.resources.put(f"team-a/{name}", {"metadata": about})

    def left() -> float | None:
        asyncio.run(here.read_budget(KEY))
        limits = here.limits(KEY)
        return None if limits is None or limits.devices is None else float(limits.devices)

    assert left() == 8
    here.promise("team-a/code", Kept(plan=plan_of(resource(replicas=3))), ())
    assert left() == 5
    here.forget("team-a/code")
    here.resources.remove("team-a/code", uid="code")
    assert left() == 8
    assert here.limits("team-b/chat") is None
