"""What the benchmark of control plays is a fleet that answers every question and is decided upon."""

import json

import control_scale
from plimsoll.facts.histograms import Histogram
from plimsoll.prometheus.answers import reading
from plimsoll.prometheus.queries import LARGEST, queries


def test_the_played_fleet_is_read_whole_and_decided_on():
    estate = control_scale.Estate.of(4)
    kinds: dict[tuple[str, str], dict[str, Histogram]] = {}
    for tick in range(10):
        asked = queries(control_scale.WORDS, tick)
        assert len(asked) <= LARGEST
        answers = {
            about: json.loads(control_scale._answer(about, 4, tick))["data"]["result"] for about in asked
        }
        now = control_scale.NOW + control_scale.TICK_S * tick
        seen = reading(answers, control_scale.WORDS)
        for key, each in seen.histograms.items():
            kinds.setdefault(key, {}).update(each)
        estate.read(now, seen.samples, kinds, True)
        estate.decide(now)
    assert all(each.coverage == 1.0 for each in estate.signals.values())
    assert all(each.latencies.ttft is not None for each in estate.signals.values())
    assert all(each.of("serve").seen is not None for each in estate.memories.values())
