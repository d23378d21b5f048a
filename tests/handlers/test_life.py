"""What is told of resources reaches the turns, and nothing of one that is gone reaches another one of its name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.handlers.life import Life
from plimsoll.handlers.options import Options
from plimsoll.handlers.restored import restored
from plimsoll.reconcile.resources import Resources

KEY = "team/chat"


def body(uid: str, version: int) -> dict[str, Any]:
    about = {"uid": uid, "namespace": "team", "name": "chat", "resourceVersion": str(version)}
    return {"metadata": about, "spec": {"replicas": version}}


@pytest.mark.parametrize(
    ("told", "forgotten"),
    [
        ([("a", 1), ("a", 2)], 0),
        ([("a", 1), ("a", None)], 1),
        ([("a", 1), ("a", None), ("b", 3)], 1),
        ([("a", 1), ("b", 3), ("a", None)], 1),
        ([("a", 1), ("b", 3), ("a", 2), ("a", None)], 1),
    ],
    ids=["an edit", "a deletion", "made anew before a turn", "its deletion is told late", "all of it is told late"],
)  # fmt: skip
def test_what_was_known_of_a_resource_goes_with_it_though_another_bears_its_name_at_once(
    told: list[tuple[str, int | None]], forgotten: int
) -> None:
    calls: list[str] = []
    life = Life(Options())
    life.resources = Resources()
    life.connected = cast(Any, SimpleNamespace(forget=lambda uid: None, select=lambda _: None))
    life.world = cast(Any, SimpleNamespace(forget=calls.append))
    life.wakes = cast(Any, SimpleNamespace(wake=lambda _: None))
    for uid, version in told:
        life._seen(KEY, uid, None if version is None else body(uid, version))
    assert calls == [KEY] * forgotten


def test_after_the_data_of_the_cluster_were_restored_each_status_is_written_anew_in_a_turn() -> None:
    calls: list[str] = []
    life = Life(Options())
    life.connected = cast(Any, SimpleNamespace(restored=calls.append))
    life.world = cast(Any, SimpleNamespace(untold=set()))
    life.wakes = cast(Any, SimpleNamespace(wake=calls.append))
    restored(life, KEY, "a")
    assert calls == ["a", KEY]
    assert life.world.untold == {KEY}
