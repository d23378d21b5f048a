"""The index of children where a watch or a list tells late what our own writes and deletions have gone over since."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import cast

import pytest

from plimsoll.kube.applier import Applier
from plimsoll.kube.child import read_child
from plimsoll.kube.children import Children, _ChildrenSink
from plimsoll.kube.door import Door
from plimsoll.kube.kinds import kind_of
from tests.kube.test_applier import OWNER as RESOURCE
from tests.kube.test_applier import Storing, way_in
from tests.kube.test_children import OWNER, Index


def test_a_label_that_was_taken_off_before_our_write_put_it_back_leaves_the_child_known() -> None:
    """A watch by label tells of that as of a deletion."""
    index = Index()
    index.lists(version=3)
    index.children.writing(index.ref)
    index.answers(version=5)
    index.loses(version=4)
    assert index.there
    index.sees(version=5)
    assert not index.woken


@pytest.mark.parametrize(("answer", "there"), [(5, False), (11, True)], ids=["before", "after"])
def test_what_a_list_finds_gone_during_our_write_is_gone_if_that_was_before_the_list(
    answer: int, *, there: bool
) -> None:
    index = Index()
    index.lists(version=3)
    index.children.writing(index.ref)
    _ChildrenSink(index.children, index.kind, "").keep_only(set(), as_of=9)
    index.answers(version=answer)
    assert index.there is there
    assert bool(index.woken[OWNER]) is not there


def test_what_we_delete_goes_on_leaving_when_something_from_before_is_told_late() -> None:
    index = Index()
    index.lists(version=3)
    index.children.deleting(index.ref)
    index.children.deleted(index.ref, done=True)
    index.sees(version=4)
    assert index.children.of(OWNER)[index.ref].leaving
    assert not index.woken


def test_whoever_wants_a_name_again_that_we_have_deleted_is_woken_when_it_is_free() -> None:
    async def main() -> None:
        woken: Counter[str] = Counter()
        door = cast(Door, Storing())
        children = Children(door, lambda owner: woken.update([owner]))
        wanted = way_in("v1", "PersistentVolumeClaim")
        metadata = {**wanted.body["metadata"], "uid": "there", "resourceVersion": "5"}
        there = read_child(kind_of(wanted.ref), {**wanted.body, "metadata": metadata})
        assert there is not None
        children.seen(there, as_of=5, first=True)
        applier = Applier(door, children)
        assert (await applier.apply(RESOURCE, [])).deleted == [wanted.ref]
        assert (await applier.apply(RESOURCE, [wanted])).waiting == [wanted.ref]
        assert not woken
        children.gone(there._replace(version="6"))
        assert woken[RESOURCE.key] == 1

    asyncio.run(main())
