"""Asks the API server what a user may do, by SubjectAccessReviews in a namespace, which store nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from plimsoll import names
from plimsoll.kube.door import Door
from plimsoll.kube.kinds import LOCAL_REVIEW

TAKES: Final = {"secrets": "get", "serviceaccounts": "impersonate", "serviceaccounts/token": "create"}
"""The right that a user needs on each kind of thing to hand it to pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user of an admission request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Thing(Protocol):
    @property
    def plural(self) -> str: ...
    @property
    def name(self) -> str: ...


_Thing = TypeVar("_Thing", bound=Thing)


class Rights:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def lacking(self, user: User, namespace: str, things: Sequence[_Thing]) -> tuple[_Thing, ...]:
        """The things that the user may not hand to pods. A user who may make pods can hand them everything in the namespace."""
        if not things or await self._may(user, namespace, "create", "pods", ""):
            return ()
        asked = sorted({(TAKES[one.plural], one.plural, one.name) for one in things})
        answers = await asyncio.gather(*(self._may(user, namespace, *one) for one in asked))
        held = {(plural, name) for (_, plural, name), may in zip(asked, answers, strict=True) if may}
        return tuple(one for one in things if (one.plural, one.name) not in held)

    async def _may(self, user: User, namespace: str, verb: str, plural: str, name: str) -> bool:
        resource, _, part = plural.partition("/")
        attributes = {
            "namespace": namespace,
            "verb": verb,
            "version": "v1",
            "resource": resource,
            "subresource": part,
            "name": name,
        }
        body: dict[str, Any] = {
            "apiVersion": LOCAL_REVIEW.api_version,
            "kind": LOCAL_REVIEW.name,
            "metadata": {"namespace": namespace},
            "spec": {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": {key: list(values) for key, values in user.extra.items()},
                "resourceAttributes": {key: value for key, value in attributes.items() if value},
            },
        }
        path = LOCAL_REVIEW.collection(namespace)
        answer = await self._door.create(path, body, manager=names.MANAGER_CHILDREN, metadata=False)
        return bool((answer.get("status") or {}).get("allowed"))
