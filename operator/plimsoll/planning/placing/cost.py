"""What sets cost: device-hours always, money where every price is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from plimsoll.api.quantity import format_decimal
from plimsoll.planning.load import Performance
from plimsoll.planning.placing.placement import device_part
from plimsoll.planning.plan import Cost, Hardware, Placement, PlanSet, used

HOUR_S: Final = 3600


def cost_of(
    hardware: Hardware, devices: int, replicas: int, performance: Performance | None, *, generates: bool
) -> Cost:
    """The cost of so many replicas with so many devices each."""
    price = None if hardware.price_per_hour is None else Fraction(hardware.price_per_hour) * devices
    each_million = None
    if price is not None and performance is not None:
        rate = performance.output_tokens_per_second if generates else performance.requests_per_second
        hourly = Fraction(int(rate * 1000), 1000) * HOUR_S
        each_million = _text(price / hourly * 1_000_000) if hourly else None
    return Cost(
        gpu_hours_per_hour=float(device_part(hardware) * devices * replicas),
        per_hour=None if price is None else _text(price * replicas),
        per_million_output_tokens=each_million if generates else None,
        per_million_requests=None if generates else each_million,
    )


def rescaled(chosen: PlanSet, replicas: int, further: Sequence[Placement] = ()) -> PlanSet:
    """The set with another number of replicas. `further` says where those go that it has not had before."""
    left, places = replicas, dict[str, int]()
    for placement in chosen.placements:
        places[placement.pool] = min(left, placement.replicas)
        left -= places[placement.pool]
    for placement in further:
        places[placement.pool] = places.get(placement.pool, 0) + placement.replicas
    return replace(
        chosen,
        replicas=replicas,
        placements=tuple(Placement(pool=pool, replicas=count) for pool, count in places.items() if count),
        cost=cost_of(
            chosen.hardware,
            chosen.devices_per_replica,
            replicas,
            chosen.performance,
            generates=chosen.load.generates,
        ),
    )


def total_cost(sets: Sequence[PlanSet]) -> Cost | None:
    if not sets:
        return None
    prices = [chosen.cost.per_hour for chosen in used(sets)]
    known = [Decimal(price) for price in prices if price is not None]
    return Cost(
        gpu_hours_per_hour=sum(chosen.cost.gpu_hours_per_hour for chosen in sets),
        per_hour=format_decimal(sum(known, Decimal(0)), places=4) if len(known) == len(prices) else None,
    )


def _text(value: Fraction) -> str:
    return format_decimal(Decimal(value.numerator) / Decimal(value.denominator), places=4)
