"""What a ramp teaches about speed: how far its measurements were from the predictions, load by load.

Only loads for which there is room in the cache and in the steps count: under others requests wait, which says nothing of speed. The
median over the loads is taken, so that one odd load changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.learned_speed import MOST_FACTOR, Speed
from plimsoll.facts.ramp_record import RampPoint, RampRecord
from plimsoll.planning.load import Load
from plimsoll.planning.speed.performance import Replica
from plimsoll.planning.speed.rates import committed_rates

LEAST_TTFT_SPREAD: Final = 1.41
LEAST_TPOT_SPREAD: Final = 1.13
"""The least spreads that are learned: factors within which 90% of measured points lay, when one set of lengths of a model on hardware had
taught the others."""


def speed_of(record: RampRecord, replica: Replica, key: LearnedKey, *, name: str = "") -> Speed | None:
    """What a record teaches; None where every load was more than a replica carries. `replica` predicts what was measured, without anything
    learned."""
    found = list(_factors(record, replica))
    if not found:
        return None
    loads, firsts, others = zip(*found, strict=True)
    ttft, ttft_spread = _middle(firsts, LEAST_TTFT_SPREAD)
    tpot, tpot_spread = _middle(others, LEAST_TPOT_SPREAD)
    return Speed(
        key=key,
        ttft=ttft,
        tpot=tpot,
        ttft_spread=ttft_spread,
        tpot_spread=tpot_spread,
        input_tokens=round(median(load.input_tokens for load in loads)),
        output_tokens=round(median(load.output_tokens for load in loads)),
        points=len(loads),
        at=record.at,
        name=name,
    ).bounded()


def _factors(record: RampRecord, replica: Replica) -> Iterator[tuple[Load, float, float]]:
    """The loads that a replica carries, each with its measured time to first token and per output token over the predicted ones."""
    for point in record.points:
        load = _load(point, record)
        case = replica.case(load)
        if case.starved or case.full_steps:
            continue
        predicted = case.answer(committed_rates(replica.classes))
        yield load, point.ttft_ms / predicted.ttft_ms.mid, point.tpot_ms / predicted.tpot_ms.mid


def _load(point: RampPoint, record: RampRecord) -> Load:
    prompt = max(1, round(point.input_tokens))
    return Load(
        input_tokens=prompt,
        output_tokens=max(1, round(point.output_tokens)),
        concurrency=max(1, round(point.in_flight / record.replicas)),
        shared_prefix_share=min(1.0, record.prefix_tokens / prompt),
    )


def _middle(factors: Sequence[float], least_spread: float) -> tuple[float, float]:
    """The median of the factors, within the bound, and the spread: the factor of it within which all loads lie."""
    middle = max(1 / MOST_FACTOR, min(MOST_FACTOR, median(factors)))
    return middle, max(least_spread, *(max(one / middle, middle / one) for one in factors))
