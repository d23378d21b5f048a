"""What is written to be quick in a fleet of thousands gives what the plain way gives, to the last bit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.control import prompts
from plimsoll.control.latencies import Latencies, Spread
from plimsoll.control.lateness import ALLOWED, PROMISED, Lateness
from plimsoll.control.prompts import StepMemory
from plimsoll.control.samples import Track, Window
from plimsoll.control.signals import LATENCY_S, RATE_S, RECENT_S, ReplicaSignals, Signals, signals_of
from plimsoll.control.situation import Capacity
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import COUNTERS, PodSample

CAPACITY = Capacity(kv_tokens=200_000, max_num_seqs=128, input_tokens=900, output_tokens=250)
FIGURES = st.none() | st.floats(0, 1e9)
ROWS = st.lists(
    st.tuples(st.floats(1, 90), st.fixed_dictionaries(dict.fromkeys((*COUNTERS, "running", "waiting"), FIGURES))),
    min_size=1,
    max_size=24,
)  # fmt: skip


def plain_replica(track: Track) -> ReplicaSignals:
    """Each figure by itself, from its definition."""
    samples, last = track.samples, track.samples[-1]

    def base(span: float) -> PodSample | None:
        older = [sample for sample in samples if sample.at <= last.at - span]
        return None if len(samples) < 2 else older[-1] if older else samples[0]

    def gained(name: str, span: float) -> float | None:
        before = base(span)
        values = getattr(last, name), None if before is None else getattr(before, name)
        return None if None in values else max(0.0, values[0] - values[1])

    def arrived(span: float) -> float | None:
        before, finished = base(span), gained("finished", span)
        if before is None or finished is None:
            return None
        found = finished + (gained("errors", span) or 0.0) + (gained("refused", span) or 0.0)
        ends = [end for end in track.ends if end.at >= before.at]
        starts = [before, *[PodSample(pod="a", at=0, running=0.0, waiting=0.0) for _ in ends]]
        for start, end in zip(starts, [*ends, last], strict=True):
            pairs = [(getattr(end, name), getattr(start, name)) for name in ("running", "waiting")]
            grown = [0.0 if None in pair else pair[0] - pair[1] for pair in pairs]
            found = found + grown[0] + grown[1]
        return found

    def held(span: float) -> list[float]:
        both = [(one.at, one.running, one.waiting) for one in samples if one.at >= last.at - span]
        return [
            running + waiting for _, running, waiting in both if running is not None and waiting is not None
        ]

    def span_of(span: float) -> float:
        before = base(span)
        return 0.0 if before is None else last.at - before.at

    mean = held(RATE_S)
    return ReplicaSignals(
        replica=last.pod,
        kv_fraction=last.kv_fraction,
        running=last.running,
        waiting=last.waiting,
        kv_tokens=last.kv_tokens,
        block_size=last.block_size,
        span_s=span_of(RATE_S),
        **{name: gained(name, RATE_S) for name in COUNTERS},
        arrived=arrived(RATE_S),
        recently=arrived(RECENT_S),
        recent_prompt_tokens=gained("prompt_tokens", RECENT_S),
        recent_span_s=span_of(RECENT_S),
        inflight_mean=sum(mean) / len(mean) if mean else None,
        inflight_most=max(held(LATENCY_S), default=None),
    )  # fmt: skip


@given(ROWS)
def test_a_replica_s_figures_are_those_of_their_definitions(
    rows: list[tuple[float, dict[str, Any]]],
) -> None:
    window, at = Window(), 0.0
    for passed, said in rows:
        at += passed
        window = window.add(at, [PodSample(pod="a", at=at, **said)])
    assert signals_of(window, now=at, live=["a"]).replicas == (plain_replica(window.tracks["a"]),)


def plain_limit(memory: StepMemory, most: float, prompt: Spread, ttft_s: float, live: int) -> float:
    lumps = prompts.LUMPS_FIRST * CAPACITY.input_tokens if memory.lumps is None else memory.lumps
    shares: list[tuple[float, float]] = [(1.0, CAPACITY.input_tokens)]
    if prompt.trusted and prompt.shape is not None:
        shares = prompt.shape.shares()
    unit = max(1.0, lumps) / most / 2

    def late(full: float) -> float:
        found = 0.0
        for share, tokens in shares:
            left = max(prompts.WAIT_SHARE_LEAST * ttft_s, ttft_s - tokens / most) / unit
            found += share * math.exp((full - 1) * left)
        return full * found

    eased = (ALLOWED / max(memory.late_steady.share, 1e-9)) ** prompts.EASE_POWER
    aim = PROMISED * min(prompts.EASE_MOST, max(1.0, eased))
    full, step = prompts.FULL_LEAST, prompts.FULL_MOST - prompts.FULL_LEAST
    for _ in range(prompts.HALVINGS):
        step /= 2
        if late(full + step) <= aim:
            full += step
    return full if live == 1 else full / memory.skew


@example(counts=[40, 30, 20, 10], lumps=3000.0, late=0.005, most=8000.0, ttft_s=2.0, live=2)
@given(
    counts=st.lists(st.integers(0, 300), min_size=2, max_size=12).filter(any),
    lumps=st.none() | st.floats(1, 1e5),
    late=st.floats(0, 0.1),
    most=st.floats(100, 1e5),
    ttft_s=st.floats(0.1, 20),
    live=st.integers(1, 3),
)
def test_how_full_steps_may_be_is_the_same_however_often_it_is_asked(
    *, counts: list[int], lumps: float | None, late: float, most: float, ttft_s: float, live: int
) -> None:
    bounds = (*(100.0 * 2**place for place in range(len(counts) - 1)), math.inf)
    summed = tuple(float(sum(counts[: place + 1])) for place in range(len(counts)))
    prompt = Spread.of(Histogram(bounds, summed, 1000.0))
    if prompt is None:
        return
    memory = StepMemory(lumps=lumps, late_steady=Lateness(share=late, limit_s=ttft_s))
    said = Signals(at=0.0, live=live, replicas=(), latencies=Latencies(prompt=prompt))
    plain = plain_limit(memory, most, prompt, ttft_s, live)
    for signals in (said, said, replace(said, latencies=Latencies(prompt=replace(prompt)))):
        assert prompts.within_limit(memory, most, CAPACITY, signals, ttft_s) == plain
