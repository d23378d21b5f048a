"""A replica of several pods that each take requests: what these say is put together as what one engine says of its ranks is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from plimsoll.control.joining import Wholes
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import COUNTERS, HISTOGRAMS, PodSample


def said(pod: str, count: float, share: float = 0.5, at: float = 1000.0) -> PodSample:
    """A pod that counts so many of everything."""
    counts: dict[str, Any] = dict.fromkeys((*COUNTERS, "running", "waiting"), count)
    shapes: dict[str, Any] = dict.fromkeys(HISTOGRAMS, Histogram((1.0, inf), (count / 2, count), count))
    return PodSample(
        pod=pod, at=at, kv_fraction=share, kv_tokens=int(1000 * count), block_size=16, **counts, **shapes
    )


def whole(samples: tuple[PodSample, ...], several: Sequence[Sequence[str]]) -> tuple[PodSample, ...]:
    return Wholes().of(1010.0, samples, several)


def test_counts_add_up_shares_are_averaged_and_the_oldest_look_counts() -> None:
    parts = said("a", 40.0, 0.9, at=1010.0), said("b", 20.0, 0.3, at=995.0)
    (found,) = whole(parts, [("a", "b")])
    assert found.kv_fraction == pytest.approx(0.6)
    assert found == replace(said("a", 60.0, at=995.0), kv_fraction=found.kv_fraction)


@pytest.mark.parametrize("name", ["kv_fraction", "running", "waiting", "kv_tokens", *COUNTERS, *HISTOGRAMS])
def test_what_one_of_its_pods_does_not_say_nobody_knows_of_it(name: str) -> None:
    a, b = said("a", 40.0), said("b", 20.0)
    (all_said,) = whole((a, b), [("a", "b")])
    silent: dict[str, Any] = {name: None}
    (found,) = whole((a, replace(b, **silent)), [("a", "b")])
    assert found == replace(all_said, **silent)


@pytest.mark.parametrize("silent", ["a", "b"])
def test_one_of_which_a_pod_is_silent_says_nothing(silent: str) -> None:
    """Half of its load is not all of it."""
    samples = tuple(one for one in (said("a", 40.0), said("b", 20.0), said("c", 5.0)) if one.pod != silent)
    assert whole(samples, [("a", "b")]) == (said("c", 5.0),)


def test_samples_of_replicas_with_one_pod_stay_as_they_are() -> None:
    samples = said("a", 40.0), said("b", 20.0)
    assert whole(samples, []) is samples


def test_a_load_is_seen_as_a_whole_however_many_pods_it_comes_to() -> None:
    signals = seen({"a": lambda s: 5.0 * s, "b": lambda s: 5.0 * s})
    assert (signals.arrivals_per_s, signals.sum("running"), signals.sum("waiting")) == (10.0, 80.0, 20.0)
    assert (signals.coverage, signals.silent) == (1.0, 0)


@pytest.mark.parametrize("of_all", [0.1, 0.9], ids=["it counted little", "it counted most"])
def test_what_a_pod_counted_before_its_engine_restarted_alone_is_carried_on(of_all: float) -> None:
    """A count of all that the other one ever did would be a load of thousands a second."""
    before, restarted = 1e6, 200.0
    counted: dict[str, Counted] = {
        "a": lambda s: of_all * before + 5.0 * s if s < restarted else 5.0 * (s - restarted),
        "b": lambda s: (1 - of_all) * before + 5.0 * s,
    }
    assert seen(counted).arrivals_per_s == pytest.approx(10.0, rel=0.1)


@pytest.mark.parametrize("ended", [False, True], ids=["the other ran on", "the other was started anew"])
@pytest.mark.parametrize("of_all", [0.1, 0.5, 0.9])
def test_what_a_pod_counted_whose_place_another_one_takes_is_carried_on(of_all: float, ended: bool) -> None:
    """As where its node was drained: what the first one did before would be a load of thousands a second."""
    total, back = 1e6, 240.0
    before: dict[str, Counted] = {
        "a": lambda s: of_all * total + 5.0 * s,
        "b": lambda s: (1 - of_all) * total + 5.0 * s,
    }
    after: dict[str, Counted] = {
        "a": lambda s: 5.0 * (s - back) if ended else of_all * total + 5.0 * (s - 90.0),
        "c": lambda s: 5.0 * (s - back),
    }
    window, wholes, most = Window(), Wholes(), 0.0
    for at in (*range(0, 150, 15), *range(int(back), 420, 15)):
        counted = after if at >= back else before
        window = window.add(at, wholes.of(at, samples_at(at, counted), [tuple(counted)]))
        most = max(most, signals_of(window, now=at, live=["a"]).arrivals_per_s or 0.0)
    assert most == pytest.approx(10.0, rel=0.1)


Counted = Callable[[float], float]
"""Finished requests after so many seconds."""


def seen(counted: Mapping[str, Counted]) -> Signals:
    window, wholes, now = Window(), Wholes(), 0
    for now in range(0, 300, 15):
        window = window.add(now, wholes.of(now, samples_at(now, counted), [tuple(counted)]))
    return signals_of(window, now=now, live=["a"])


def samples_at(at: float, counted: Mapping[str, Counted]) -> tuple[PodSample, ...]:
    return tuple(
        PodSample(pod=pod, at=at, running=40.0, waiting=10.0, finished=count(at), errors=0.0, refused=0.0)
        for pod, count in counted.items()
    )
