"""What the benchmark of control plays is a fleet that answers every question and is decided upon, by a constant number of questions."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import Connection

import pytest

import control_fleet
import control_scale
from control_fleet import TICK_S, TURNS, Answers, Estate
from control_scale import Cost
from plimsoll import names
from plimsoll.prometheus.client import Answered, Read, T
from plimsoll.prometheus.fleet import FleetMetrics
from plimsoll.prometheus.rows import rows_of
from plimsoll.prometheus.vocabulary import Vocabulary
from plimsoll.prometheus.wakes import WakeQueries
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.knowing import AT_A_TIME
from plimsoll.reconcile.loop.sources import ByPrometheus


class Asks:
    """Answers without a connection, and counts the questions of each tick."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.ticks: list[Counter[str]] = []

    async def ask(self, questions: Mapping[str, str], read: Read[T]) -> Answered[T]:
        found = {about: self.answers.to(text) for about, text in questions.items()}
        self.ticks[-1].update(self.answers.asked[-len(questions) :])
        answers = {about: read(about, rows_of(data.decode())) for about, data in found.items()}
        return Answered(answers=answers, errors={})

    def close(self) -> None:
        pass


def played(size: int) -> tuple[Estate, Asks, ByPrometheus]:
    estate = Estate.of(size)
    asks = Asks(Answers(estate.words, estate.pods))
    return estate, asks, ByPrometheus(FleetMetrics(asks, Vocabulary({})), WakeQueries(asks), asks)


def ticked(size: int, ticks: int) -> tuple[Estate, Asks]:
    estate, asks, source = played(size)
    woken: list[str] = []
    control = Control(estate.world, source, woken.append, interval_s=TICK_S)
    for _ in range(ticks):
        estate.passed()
        asks.ticks.append(Counter())
        asyncio.run(control.tick())
        estate.turned(woken)
    return estate, asks


def test_every_deployment_of_the_played_fleet_is_seen_and_decided_on() -> None:
    estate, _ = ticked(4, 2 * TURNS)
    found = {key: estate.world.directions[key] for key in estate.world.resources}
    assert len(found) == 4
    for direction in found.values():
        record = direction.record
        assert record.replicas is not None
        assert record.memory.of("serve").seen is not None
        assert {one.type: one.status for one in direction.told}[names.METRICS] == "True"


def test_the_number_of_questions_is_the_same_for_one_deployment_and_for_a_dozen_and_never_above_twelve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_fleet, "SLEEPS", 1)
    # Queries of users are tried alone before they are asked together, a few a tick.
    (_, one), (_, dozen) = (ticked(size, 3 + TURNS) for size in (1, 12))
    assert one.ticks[-TURNS:] == dozen.ticks[-TURNS:]
    assert max(tick.total() for tick in dozen.ticks) <= 12


def test_others_have_the_loop_between_the_decisions_of_a_large_fleet() -> None:
    estate, asks, source = played(2 * AT_A_TIME + 1)
    rounds, woken = [0], []
    control = Control(estate.world, source, lambda _: woken.append(rounds[0]), interval_s=TICK_S)

    async def turns() -> None:
        while True:
            rounds[0] += 1
            await asyncio.sleep(0)

    async def run() -> None:
        others = asyncio.create_task(turns())
        await control.tick()
        others.cancel()

    asks.ticks.append(Counter())
    asyncio.run(run())
    assert [found for _, found in sorted(Counter(woken).items())] == [AT_A_TIME, AT_A_TIME, 1]


def test_costs_are_told_in_the_form_that_is_promised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = Cost(tick_s=0.4, cpu_s=0.3, queries=9, rss_mb=90.0, gather_s=0.1, ask_s=0.1, decide_s=0.1)
    monkeypatch.setattr(control_scale, "measured", lambda size: replace(cost, queries=size))
    control_scale.main(["--deployments", "4", "5", "--json"])
    told = json.loads(capsys.readouterr().out)["by_deployments"]
    assert {size: each["queries"] for size, each in told.items()} == {"4": 4, "5": 5}
    assert all({"tick_s", "queries", "rss_mb"} <= each.keys() for each in told.values())


def dies(_size: int, _result: Connection) -> None:
    os._exit(9)


def test_a_process_that_dies_before_it_tells_anything_is_told_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_scale, "_measure", dies)
    with pytest.raises(SystemExit, match="measures 4 deployments ended with 9 and told nothing"):
        control_scale.measured(4)
