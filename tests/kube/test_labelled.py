"""Whose an object is that bears our labels: by them it is seen, but they do not make it ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plimsoll import names
from plimsoll.kube.door import Object
from plimsoll.objects import manifest
from tests.kube.test_applier import OWNER, Storing, known, way_in


class Owned(Storing):
    """A door to a Service that stands with these metadata."""

    def __init__(self, metadata: Object) -> None:
        super().__init__()
        self._metadata = metadata

    async def get(self, path: str, **_: Any) -> Object:
        self.asked.append(f"get {path.rpartition('/')[2]}")
        return {"metadata": self._metadata}


HASHED = {"annotations": {names.ANNOTATION_HASH: "old"}}
OURS = {"managedFields": [{"manager": names.MANAGER_CHILDREN}]}
WRITTEN, LEFT = ["apply Service"], ["get service"]


@pytest.mark.parametrize(
    ("stands", "asked"),
    [
        ({}, LEFT),
        ({"managedFields": [{"manager": "helm"}]}, LEFT),
        (OURS, LEFT),
        ({**HASHED, **OURS}, WRITTEN),
        ({**HASHED, "managedFields": [{"manager": "restored"}]}, WRITTEN),
        ({"ownerReferences": way_in("v1", "Service").body["metadata"]["ownerReferences"]}, WRITTEN),
    ],
    ids=[
        "nobody's",
        "another app's",
        "ours until a hand took hash and owner",
        "an orphan",
        "out of a backup",
        "ours without a hash",
    ],
)
def test_labels_alone_make_no_object_ours(stands: Object, asked: list[str]) -> None:
    """Anybody may write them, and an app copies a chart with all that is in it."""
    wanted = way_in("v1", "Service")
    labels = wanted.body["metadata"]["labels"]
    metadata = {"name": "service", "namespace": "team-a", "labels": labels, **stands}
    door = Owned({**metadata, "uid": "Service"})
    there = manifest({**wanted.body, "metadata": metadata})
    applied = asyncio.run(known(door, there).apply(OWNER, [wanted]))
    assert door.asked == asked
    assert [one.ref for one in applied.taken] == ([wanted.ref] if asked == LEFT else [])


def test_who_has_just_become_ours_is_written_although_the_index_is_behind() -> None:
    wanted = way_in("v1", "Service")
    metadata = wanted.body["metadata"]
    behind = manifest(
        {**wanted.body, "metadata": {key: metadata[key] for key in ("name", "namespace", "labels")}}
    )
    door = Owned({**metadata, "uid": "Service"})
    assert asyncio.run(known(door, behind).apply(OWNER, [wanted])).written == [wanted.ref]
    assert door.asked == [*LEFT, *WRITTEN]
