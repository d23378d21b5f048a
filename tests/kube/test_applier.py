"""What an applier makes of answers that a real API server gives only now and then: a write that lost a race."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from plimsoll import names
from plimsoll.kube.applier import Applier
from plimsoll.kube.children import Children
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import refusal
from plimsoll.objects import Manifest, Owner, manifest

OWNER = Owner("team-a", "chat", "u1")
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
