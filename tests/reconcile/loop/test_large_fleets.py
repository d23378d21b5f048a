"""Where not all of a large fleet fit into one tick, each deployment has its turn, whoever comes and goes beside it."""

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from plimsoll.control.law import LAW
from plimsoll.reconcile.loop import judging

FLEET = tuple(f"team-{number % 7}/chat-{number}" for number in range(300))
EVERY = round(judging.SLOWER_S / LAW.tick_s)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whose traffic and settings were looked at, in their order."""
    looked: list[str] = []

    def retuned(_tick: object, case: SimpleNamespace, *_: object) -> None:
        looked.append(case.key)

    for name, stub in {
        "_running": lambda _tick, case: case,
        "_noticed": lambda _tick, case: case,
        "_situation": lambda *_: None,
        "_fleet": lambda *_: None,
        "decide_fleet": lambda *, memories, **_: [SimpleNamespace(name=key) for key in memories],
        "retuning_gpus": lambda _cases: {},
        "_scaled": lambda *_: None,
        "retuned": retuned,
        "unlooked": lambda *_: None,
        "_explained": lambda *_: None,
    }.items():
        monkeypatch.setattr(judging, name, stub)
    return looked


def tick(number: int, keys: Iterable[str]) -> None:
    cases = {key: SimpleNamespace(key=key, record=SimpleNamespace(memory=None)) for key in keys}
    now = SimpleNamespace(now=0.0, number=number, law=LAW, retuning={}, signals=lambda _case: None)
    judging.judged(now, cases)  # type: ignore[arg-type]


def test_nobody_is_passed_over_while_deployments_come_and_go(looks: list[str]) -> None:
    """One that sorts before all others is there at every other look at a neighbour."""
    for number in range(4 * EVERY):
        tick(number, FLEET if number % 2 else ("a/first", *FLEET))
    assert {looks.count(key) for key in FLEET} == {4}


def test_each_tick_has_about_as_many(looks: list[str]) -> None:
    many: list[int] = []
    for number in range(EVERY):
        tick(number, FLEET)
        many.append(len(looks) - sum(many))
    assert Counter(looks) == Counter(FLEET)
    assert max(many) < 1.5 * len(FLEET) / EVERY


def test_in_a_small_fleet_all_are_looked_at_in_each_tick(looks: list[str]) -> None:
    tick(1, FLEET[: judging.LARGE])
    assert len(looks) == judging.LARGE
