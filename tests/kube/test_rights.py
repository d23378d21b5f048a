"""Which of the things that a resource names its author may hand on, as the API server is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plimsoll.kube.rights import Rights, User
from plimsoll.reconcile.admission import Named

ALICE = User(name="alice", uid="u1", groups=("people",), extra={"scope": ("all",)})
HUB, TLS, ROBOT = (
    Named("a", "secrets", "hub"),
    Named("b", "secrets", "tls"),
    Named("c", "serviceaccounts", "robot"),
)


class Door:
    """Answers by the rights that it was given, as `verb resource` or `verb resource/name`."""

    def __init__(self, *rights: str) -> None:
        self.rights = set(rights)
        self.asked: list[dict[str, Any]] = []

    async def create(
        self, path: str, body: dict[str, Any], *, manager: str, metadata: bool
    ) -> dict[str, Any]:
        assert path == "/apis/authorization.k8s.io/v1/namespaces/team-a/localsubjectaccessreviews"
        self.asked.append(body["spec"])
        on = body["spec"]["resourceAttributes"]
        key = f"{on['verb']} {'/'.join(filter(None, (on['resource'], on.get('subresource'))))}"
        return {"status": {"allowed": bool({key, f"{key}/{on.get('name')}"} & self.rights)}}


TOKEN = Named("d", "serviceaccounts/token", "robot")


def lacking(door: Door, *things: Named) -> tuple[Named, ...]:
    return asyncio.run(Rights(door).lacking(ALICE, "team-a", things))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rights", "left"),
    [
        ((), (HUB, TLS, ROBOT)),
        (("get secrets/hub",), (TLS, ROBOT)),
        (("get secrets",), (ROBOT,)),
        (("impersonate serviceaccounts/robot",), (HUB, TLS)),
        (("create pods",), ()),
    ],
    ids=["none", "one secret", "all secrets", "the account", "pods of their own"],
)
def test_what_is_lacking_is_what_no_right_covers(rights: tuple[str, ...], left: tuple[Named, ...]) -> None:
    assert lacking(Door(*rights), HUB, TLS, ROBOT) == left


@pytest.mark.parametrize(
    ("right", "left"),
    [
        ("impersonate serviceaccounts/robot", (TOKEN,)),
        ("create serviceaccounts/token/robot", ()),
        ("create pods", ()),
    ],
)
def test_a_token_takes_the_right_to_create_one(right: str, left: tuple[Named, ...]) -> None:
    assert lacking(Door(right), TOKEN) == left


def test_where_nothing_is_named_nobody_is_asked() -> None:
    door = Door()
    assert lacking(door) == ()
    assert door.asked == []


def test_the_user_is_told_as_the_api_server_knows_them() -> None:
    door = Door()
    lacking(door, HUB, HUB)
    assert [one["resourceAttributes"]["resource"] for one in door.asked] == ["pods", "secrets"]
    assert {key: door.asked[0][key] for key in ("user", "uid", "groups", "extra")} == {
        "user": "alice",
        "uid": "u1",
        "groups": ["people"],
        "extra": {"scope": ["all"]},
    }
