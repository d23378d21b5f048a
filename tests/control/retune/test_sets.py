"""A plan of several sets, of which the largest is looked at: which that is changes with the load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.memory import Memory, RoleMemory
from plimsoll.control.record import Record
from plimsoll.control.retune import RetuneMemory, Scene, advance
from tests.control.retune.world import OLD, Behaviour, World
from tests.control.situations import NOW

CALM = Behaviour(preempted=0.0, kv=0.3, gap=0.5, itl=0.03)
LIGHT = replace(OLD, preempted=0.1)


def look(of: str, how: Behaviour, passed_s: float) -> Scene:
    """At a set whose number of requests was raised before, so many seconds after the first look."""
    world = World(old=how, about=f"tp1 on {of}", planned={"maxSequences": "16"})
    world.now += passed_s
    scene = world.scene()
    return replace(scene, serving=replace(scene.serving, name=of))


@pytest.mark.parametrize(
    ("looks", "begun"),
    [
        ((("H100", 0), ("H100", 300)), True),
        ((("H100", 0), ("A100", 300)), False),
        ((("H100", 0), ("A100", 150), ("H100", 300)), False),
        ((("H100", 0), ("A100", 150), ("A100", 450)), True),
    ],
    ids=["one set", "another set", "another one in between", "another set for as long"],
)
def test_how_long_something_has_been_so_is_told_of_each_set(
    looks: tuple[tuple[str, float], ...], begun: bool
) -> None:
    memory = RetuneMemory()
    for of, passed_s in looks:
        memory = advance(look(of, LIGHT, passed_s), memory).memory
    assert (memory.step is not None) is begun


def test_the_calm_of_a_set_goes_on_after_a_restart_as_that_of_no_other() -> None:
    roles = {"": RoleMemory(begun=NOW, seen=NOW + 3600)}
    memory = RetuneMemory()
    for passed_s in (0.0, 3600.0):
        memory = advance(look("H100", CALM, passed_s), memory).memory
    again = Record(retune=memory, memory=Memory(roles=roles)).read(NOW + 7200).retune
    assert again.calm_since == NOW + 3600
    assert advance(look("H100", CALM, 7200.0), again).memory.calm_since == NOW + 3600
    assert advance(look("A100", CALM, 7200.0), again).memory.calm_since == NOW + 7200


def test_calm_of_days_is_still_known_after_a_restart_as_an_admin_may_ask_for_a_week_of_it() -> None:
    roles = {"": RoleMemory(begun=NOW, seen=NOW + 5 * 86400)}
    memory = advance(look("H100", CALM, 0.0), RetuneMemory()).memory
    again = Record(retune=memory, memory=Memory(roles=roles)).read(NOW + 5 * 86400 + 60).retune
    assert again.calm_since == NOW + 60


@pytest.mark.parametrize(
    ("before", "now"), [("", "tp1 on H100"), ("tp1 on H100", ""), ("", "")], ids=["comes", "goes", "neither"]
)
def test_how_long_it_has_been_so_goes_on_while_another_set_comes_beside_it_or_goes(
    before: str, now: str
) -> None:
    memory = RetuneMemory()
    for about, passed_s in ((before, 0.0), (now, 300.0)):
        memory = advance(replace(look("H100", LIGHT, passed_s), about=about), memory).memory
    assert memory.step is not None


@pytest.mark.parametrize("about", ["", "tp1 on H100"], ids=["the only set", "the largest of several"])
def test_calm_that_the_release_before_saw_counts_for_the_set_that_is_looked_at(about: str) -> None:
    memory = RetuneMemory(since={"relaxed": NOW})
    memory = advance(replace(look("H100", CALM, 3600.0), about=about), memory).memory
    assert memory.calm_since == NOW
    assert advance(look("A100", CALM, 7200.0), memory).memory.calm_since == NOW + 7200
