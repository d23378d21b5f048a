"""What is told of resources reaches the turns, and nothing of one that is gone reaches another one of its name."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plimsoll.facts.capabilities import NONE
from plimsoll.handlers.options import Options
from plimsoll.handlers.waking import Waking
from plimsoll.kube.pace import Pace

KEY = "team/chat"


def body(uid: str, version: int) -> dict[str, Any]:
    about = {"uid": uid, "namespace": "team", "name": "chat", "resourceVersion": str(version)}
    return {"metadata": about, "spec": {"replicas": version}}


def waking(**parts: Any) -> Waking:
    """Without a cluster, and with these in place of its own parts."""
    made = Waking(Options(), cast(Any, None), Pace())
    for name, part in parts.items():
        setattr(made, name, SimpleNamespace(**part))
    return made


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
    alone = waking(
        connected={"forget": lambda uid: None, "select": lambda _: None},
        world={"forget": calls.append},
        wakes={"wake": lambda _: None},
    )
    for uid, version in told:
        alone.seen(KEY, uid, None if version is None else body(uid, version))
    assert calls == [KEY] * forgotten


def test_after_the_data_of_the_cluster_were_restored_each_status_is_written_anew_in_a_turn() -> None:
    calls: list[str] = []
    alone = waking(
        connected={"restored": calls.append}, world={"untold": set()}, wakes={"wake": calls.append}
    )
    alone.restored(KEY, "a")
    assert calls == ["a", KEY]
    assert alone.world.untold == {KEY}


@pytest.mark.parametrize(
    "told", [lambda alone: alone.evaluate(KEY), lambda alone: alone._feed()], ids=["an alert", "the fleet"]
)
def test_who_is_told_of_something_beside_its_own_objects_has_a_full_turn(
    told: Callable[[Waking], None],
) -> None:
    calls: list[str] = []
    looked_at = {KEY: 99.0, "team/quiet": 99.0}
    alone = waking(
        connected={"capabilities": lambda: NONE},
        world={"looked_at": looked_at, "hungry": {KEY}},
        wakes={"wake": calls.append},
        control={"soon": lambda: None},
    )
    told(alone)
    assert (calls, looked_at) == ([KEY], {KEY: 0.0, "team/quiet": 99.0})
