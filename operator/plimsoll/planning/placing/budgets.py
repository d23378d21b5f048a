"""How much an admin lets a namespace take, and how much of it is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from plimsoll.api.config import Budget, OperatorConfig, matching
from plimsoll.api.quantity import parse_decimal
from plimsoll.facts.gpus import UnknownGpu, Vendor, gpu_named
from plimsoll.planning.placing.placement import device_part
from plimsoll.planning.plan import Hardware, PlanSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one replica takes of a budget."""

    product: str
    """The GPU product; where the devices are partitions, that of their card."""
    gpus: Fraction
    """GPUs, where shared devices count as their part; 0 for CPUs."""
    price: Fraction | None
    """Price of a replica for an hour; None is unknown."""

    @classmethod
    def on(cls, hardware: Hardware, devices: int) -> Claim:
        price = hardware.price_per_hour
        return cls(
            product=hardware.card or hardware.gpu,
            gpus=Fraction(0) if hardware.vendor == Vendor.CPU else device_part(hardware) * devices,
            price=None if price is None else Fraction(price) * devices,
        )


def claim_of(chosen: PlanSet) -> Claim:
    return Claim.on(chosen.hardware, chosen.devices_per_replica)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much more may be taken. None, and a product that is not named, are without limit. Shared devices count as their part."""

    devices: Fraction | None = None
    by_product: Mapping[str, Fraction] = field(default_factory=dict)
    per_hour: Fraction | None = None
    replicas: int | None = None
    """Replicas of one deployment."""
    largest: int | None = None
    """GPUs of the whole budget, no matter what others took of it: no replica may be larger."""

    def allows(self, claim: Claim) -> int | None:
        """How many replicas of this kind they allow; None is any number. Where a price is unknown, the limit of money does not count."""
        bounds = [self.replicas] if self.replicas is not None else []
        for limit, each in (
            (self.devices, claim.gpus),
            (self.by_product.get(claim.product), claim.gpus),
            (self.per_hour, claim.price),
        ):
            if limit is not None and each:
                bounds.append(max(0, int(limit / each)))
        return min(bounds, default=None)

    def less(self, claim: Claim, replicas: int) -> Limits:
        """What so many replicas leave to the deployment that they are of."""
        gpus, left = claim.gpus * replicas, dict(self.by_product)
        if claim.product in left:
            left[claim.product] = max(Fraction(0), left[claim.product] - gpus)
        return Limits(
            devices=None if self.devices is None else max(Fraction(0), self.devices - gpus),
            by_product=left,
            per_hour=None
            if self.per_hour is None
            else max(Fraction(0), self.per_hour - (claim.price or Fraction(0)) * replicas),
            replicas=None if self.replicas is None else max(0, self.replicas - replicas),
            largest=self.largest,
        )

    def after(self, sets: Iterable[PlanSet]) -> Limits:
        """What a deployment with these sets leaves to the next one of its namespace."""
        left = self
        for chosen in sets:
            left = left.less(claim_of(chosen), chosen.replicas)
        return replace(left, replicas=self.replicas)


UNLIMITED: Final = Limits()


def budget_of(namespace: str, config: OperatorConfig) -> Budget | None:
    """The entry of the admin's budgets that fits a namespace best: the one with its exact name, else with the longest pattern."""
    return next(iter(matching(namespace, config.budgets)), None)


def limits_of(namespace: str, config: OperatorConfig) -> Limits:
    entry = budget_of(namespace, config)
    if entry is None:
        return UNLIMITED
    return Limits(
        devices=None if entry.gpus is None else Fraction(entry.gpus),
        by_product={_name(limit.product): Fraction(limit.gpus) for limit in entry.gpus_by_product},
        per_hour=None if entry.cost_per_hour is None else Fraction(parse_decimal(entry.cost_per_hour)),
        replicas=entry.max_replicas,
        largest=entry.gpus,
    )


def priority_of(namespace: str, config: OperatorConfig) -> int:
    entry = budget_of(namespace, config)
    return entry.priority if entry is not None and entry.priority is not None else 0


def _name(product: str) -> str:
    """The catalogue's name of a product. A name that it lacks is kept as it is; no device has it, so its limit does no harm."""
    try:
        return gpu_named(product).name
    except UnknownGpu:
        return product
