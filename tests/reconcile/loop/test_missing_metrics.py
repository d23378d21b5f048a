"""Where nobody knows how many requests a replica has, none is taken away and no retune begins, however the figure is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import control_fleet
from control_fleet import NOW, TICK_S, Estate
from plimsoll import names
from plimsoll.prometheus.client import Answered, Read, T
from plimsoll.prometheus.fleet import FleetMetrics
from plimsoll.prometheus.queries import queries
from plimsoll.prometheus.vocabulary import HISTOGRAMS, Vocabulary
from plimsoll.prometheus.wakes import WakeQueries
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.sources import ByPrometheus

WORDS = Estate.of(1).words
ENOUGH = 60
"""Ticks after which a calm load has let a replica go."""
Labels = Mapping[str, str]
Spoils = Callable[[str, str, str], str | None]
"""The value of a row, or none: from the figure that it tells, the pod and the value that is true."""


class Asks:
    """Says that two replicas have little to do, as far as it is not spoilt."""

    def __init__(self, estate: Estate, spoils: Spoils) -> None:
        self.estate, self.spoils = estate, spoils
        words = estate.words
        figures = {"kvUsage": 0.02, "running": 1.0, "waiting": 0.0, "preemptions": 0.0}
        self.steady = {name: value for word, value in figures.items() for name in words.of(word)}
        self.about = {text: about for tick in range(9) for about, text in queries(words, tick).items()}

    async def ask(self, questions: Mapping[str, str], read: Read[T]) -> Answered[T]:
        answers = {key: read(key, self._rows(self.about[text])) for key, text in questions.items()}
        return Answered(answers=answers, errors={})

    def _rows(self, about: str) -> Iterator[dict[str, Any]]:
        passed = self.estate.clock[0] - NOW
        for labels, _ in control_fleet._rows(about, self.estate.words, 0, self.estate.pods[0], 0):
            value = str(self._value(about, labels, passed))
            told = self.spoils(labels.get("__name__", about), labels.get("pod", ""), value)
            if told is not None:
                yield {"metric": labels, "value": [self.estate.clock[0], told]}

    def _value(self, about: str, labels: Labels, passed: float) -> float:
        match about:
            case "ages":
                return self.estate.clock[0]
            case "pools":
                return 1.0
            case "errors":
                return 0.0
            case _ if about in HISTOGRAMS:
                usual = 900.0 if about.endswith("lengths") else 0.05
                bound = float(labels.get("le", "nan"))
                return 600 * usual if "le" not in labels else 600.0 if bound >= usual else 0.0
        return self.steady.get(labels["__name__"], passed / TICK_S)

    def close(self) -> None:
        pass


def ends(spoils: Spoils) -> Direction:
    estate = Estate.of(1)
    asks, woken = Asks(estate, spoils), list[str]()
    source = ByPrometheus(FleetMetrics(asks, Vocabulary({})), WakeQueries(asks), asks)
    control = Control(estate.world, source, woken.append, interval_s=TICK_S)
    for _ in range(ENOUGH):
        estate.passed()
        asyncio.run(control.tick())
        estate.turned(woken)
    (direction,) = estate.world.directions.values()
    return direction


def test_where_all_is_said_a_calm_load_lets_a_replica_go() -> None:
    assert ends(lambda figure, pod, value: value).record.replicas == 1


def one_says_nothing(pod: str, value: str) -> str | None:
    return None if pod.endswith("1") else value


MISSING: Mapping[str, Callable[[str, str], str | None]] = {
    "absent": lambda pod, value: None,
    "one of two is silent": one_says_nothing,
    "not a number": lambda pod, value: "NaN",
    "no text of a number": lambda pod, value: "many",
    "infinite": lambda pod, value: "+Inf",
    "below zero": lambda pod, value: "-1",
}


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("figure", ["ages", "running", "waiting"])
def test_no_replica_goes_and_no_retune_begins_where_requests_are_not_counted(figure: str, kind: str) -> None:
    named = WORDS.of(figure) or (figure,)
    found = ends(lambda said, pod, value: MISSING[kind](pod, value) if said in named else value)
    assert (found.record.replicas, found.record.retune.step) == (2, None)


@pytest.mark.parametrize("kind", ["absent", "not a number"])
@pytest.mark.parametrize("figure", ["kvUsage", "requestSuccess", "preemptions"])
def test_no_replica_goes_where_none_says_what_its_engine_has_a_word_for(figure: str, kind: str) -> None:
    named = WORDS.of(figure)
    found = ends(lambda said, pod, value: MISSING[kind](pod, value) if said in named else value)
    assert found.record.replicas == 2


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (-90, "are more than 60 s old"),
        (-400, "are more than 60 s old"),
        (90, "are more than 60 s ahead of the operator's clock"),
    ],
)
def test_samples_that_are_not_of_now_are_none_and_that_is_told(shift: float, words: str) -> None:
    found = ends(lambda figure, pod, value: str(float(value) + shift) if figure == "ages" else value)
    assert (found.record.replicas, found.record.retune.step) == (2, None)
    (told,) = [one for one in found.told if one.type == names.METRICS]
    assert (told.status, told.reason) == ("False", "OutOfDate")
    assert f"the newest samples of 2 of 2 ready replicas {words}" in told.message
