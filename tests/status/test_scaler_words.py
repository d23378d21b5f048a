"""Autoscalers of others: what they scale, and which condition tells when that cannot work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll import names
from plimsoll.facts.scaler_aims import Aim, aim_of
from plimsoll.status.said import conditions_of
from tests.status.stories import pod, story

HPA = "HorizontalPodAutoscaler"


def scaler(kind: str, name: str, api_version: str = "", **metadata: Any) -> dict[str, Any]:
    target = {"kind": kind, "name": name} | ({"apiVersion": api_version} if api_version else {})
    return {
        "metadata": {"name": "load", "namespace": "team"} | metadata,
        "spec": {"scaleTargetRef": target},
    }


@pytest.mark.parametrize(
    ("item", "aim"),
    [
        (scaler(names.KIND, "chat", names.API_VERSION), Aim("team/chat", f"{HPA} load")),
        (scaler(names.KIND, "chat", "other.dev/v1"), None),
        (
            scaler("Deployment", "chat-1a2b3c4d", "apps/v1"),
            Aim("team/chat", f"{HPA} load on Deployment chat-1a2b3c4d", "chat-1a2b3c4d"),
        ),
        (
            scaler("StatefulSet", "chat-1a2b3c4d-0-w", "apps/v1"),
            Aim("team/chat", f"{HPA} load on StatefulSet chat-1a2b3c4d-0-w", "chat-1a2b3c4d-0-w"),
        ),
        (scaler("Deployment", "web"), None),
        (
            scaler(
                names.KIND,
                "chat",
                names.API_VERSION,
                ownerReferences=[{"kind": "ScaledObject", "name": "load"}],
            ),
            None,
        ),
        ({"metadata": {"name": "load", "namespace": "team"}}, None),
    ],
)
def test_an_autoscaler_is_ours_to_tell_of_by_what_it_scales(item: dict[str, Any], aim: Aim | None) -> None:
    assert aim_of(HPA, item) == aim


@pytest.mark.parametrize(
    ("replicas", "scalers", "below", "said"),
    [
        (None, (), (), {}),
        (2, (f"{HPA} a",), (), {}),
        (None, (f"{HPA} a",), (), {names.SCALING: "SetReplicas"}),
        (2, (f"{HPA} a", "ScaledObject b"), (), {names.AUTOSCALER_CONFLICT: "SeveralWriters"}),
        (2, (), (f"{HPA} a on Deployment chat-1a2b3c4d",), {names.AUTOSCALER_CONFLICT: "SeveralWriters"}),
    ],
)
def test_writers_of_the_same_number_are_told(
    replicas: int | None, scalers: tuple[str, ...], below: tuple[str, ...], said: dict[str, str]
) -> None:
    one = story(pod(), spec={"replicas": replicas} if replicas else {}, scalers=scalers)
    one = replace(one, serving=replace(one.serving, scalers_below=below))
    kinds = (names.SCALING, names.AUTOSCALER_CONFLICT)
    found = {each.type: each for each in conditions_of(one) if each.type in kinds}
    assert {kind: each.reason for kind, each in found.items()} == said
    for each in found.values():
        assert all(who in each.message for who in (*scalers, *below))
