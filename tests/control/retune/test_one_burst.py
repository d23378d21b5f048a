"""What is preempted in one moment is seen for as long as rates look back; only what goes on is a storm that a setting is changed for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.control.retune import Consent, RetuneMemory, advance
from plimsoll.control.samples import Window
from plimsoll.control.signals import signals_of
from plimsoll.facts.pod_sample import PodSample
from tests.control.retune.world import OUTPUTS, PROMPTS, World
from tests.control.situations import NOW

LOOK_S = 15.0
BEGUN_S = 300.0
"""When the preemptions begin."""
PODS = ("old-0", "old-1")


def sample(pod: str, passed_s: float, *, rate: float, preempted: float) -> PodSample:
    asked_s = passed_s + 1e4
    return PodSample(
        pod=pod,
        at=NOW + passed_s,
        running=8,
        waiting=0,
        kv_fraction=0.6,
        kv_tokens=8192,
        block_size=16,
        finished=float(int(rate * asked_s)),
        preemptions=preempted if pod == PODS[0] else 0.0,
        errors=0.0,
        generation_tokens=500 * rate * asked_s,
        prompt_tokens=250 * rate * asked_s,
    )


def begins_after(*, rate: float, burst: float, each_s: float) -> float | None:
    """Seconds from the first preemption to the retune; `each_s` is the time between two such bursts. None: it does not begin."""
    world, window, memory = World(replicas=2, consent=Consent()), Window(), RetuneMemory()
    for look in range(60):
        passed_s = LOOK_S * look
        bursts = 0 if passed_s < BEGUN_S else 1 + int((passed_s - BEGUN_S) / each_s)
        samples = [sample(pod, passed_s, rate=rate, preempted=burst * bursts) for pod in PODS]
        window = window.add(NOW + passed_s, samples)
        signals = signals_of(window, now=NOW + passed_s, live=PODS)
        lengths = replace(signals.latencies, prompt=PROMPTS, output=OUTPUTS)
        world.now = NOW + passed_s
        scene = replace(world.scene(), signals=replace(signals, latencies=lengths), window=window)
        memory = advance(scene, memory).memory
        if memory.step is not None:
            return passed_s - BEGUN_S
    return None


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 6.0), (0.2, 12.0), (1.0, 60.0)])
def test_one_burst_of_preemptions_begins_no_retune(rate: float, burst: float) -> None:
    assert begins_after(rate=rate, burst=burst, each_s=1e9) is None


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 6.0), (1.0, 60.0)])
def test_bursts_that_go_on_do_after_three_minutes(rate: float, burst: float) -> None:
    assert begins_after(rate=rate, burst=burst, each_s=60.0) == 180.0
