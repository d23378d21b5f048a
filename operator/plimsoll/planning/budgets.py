"""What an admin lets a namespace take, and what others have left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Final

from plimsoll.api.config import Budget, OperatorConfig
from plimsoll.api.quantity import parse_decimal
from plimsoll.facts.gpus import UnknownGpu, gpu_named
from plimsoll.planning.plan import PlanSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """None and absent products are without limit. Devices count in parts where they are shared."""

    devices: Fraction | None = None
    by_product: Mapping[str, Fraction] = field(default_factory=dict)
    per_hour: Fraction | None = None
    replicas: int | None = None

    def after(self, sets: tuple[PlanSet, ...]) -> Limits:
        """What is left for the next deployment of the same namespace."""
        left = dict(self.by_product)
        devices, money = self.devices, self.per_hour
        for chosen in sets:
            used = Fraction(chosen.cost.gpu_hours_per_hour).limit_denominator(1000)
            if chosen.hardware.gpu in left:
                left[chosen.hardware.gpu] = max(Fraction(0), left[chosen.hardware.gpu] - used)
            if devices is not None:
                devices = max(Fraction(0), devices - used)
            if money is not None and chosen.cost.per_hour is not None:
                money = max(Fraction(0), money - Fraction(chosen.cost.per_hour))
        return replace(self, devices=devices, by_product=left, per_hour=money)


UNLIMITED: Final = Limits()


def budget_of(namespace: str, config: OperatorConfig) -> Budget | None:
    """The entry whose pattern fits best: the exact name, else the longest pattern."""
    fitting = [entry for entry in config.budgets if fnmatchcase(namespace, entry.namespace)]
    return min(
        fitting,
        key=lambda entry: (
            entry.namespace != namespace,
            -len(entry.namespace.replace("*", "")),
            entry.namespace,
        ),
        default=None,
    )


def limits_of(namespace: str, config: OperatorConfig) -> Limits:
    entry = budget_of(namespace, config)
    if entry is None:
        return UNLIMITED
    return Limits(
        devices=None if entry.gpus is None else Fraction(entry.gpus),
        by_product={_name(limit.product): Fraction(limit.gpus) for limit in entry.gpus_by_product},
        per_hour=None if entry.cost_per_hour is None else Fraction(parse_decimal(entry.cost_per_hour)),
        replicas=entry.max_replicas,
    )


def priority_of(namespace: str, config: OperatorConfig) -> int:
    entry = budget_of(namespace, config)
    return entry.priority if entry is not None and entry.priority is not None else 0


def _name(product: str) -> str:
    """The catalogue's name of a product; a name it does not know limits a label value nobody has, which is harmless."""
    try:
        return gpu_named(product).name
    except UnknownGpu:
        return product
