"""Several sets of one plan: those that it has from the beginning, and those that it grows onto once its own devices are used up.

The latter stand by until then. They are found by planning, just as the operator's next turn would find them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.situation import Capacity
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import Learned
from plimsoll.planning.pinning import Wish
from plimsoll.planning.placing.budgets import Claim
from plimsoll.planning.placing.placement import same_devices
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.simulate.tuning import Tunable
from plimsoll.simulate.world import Hardware, Site

FURTHER_MOST: Final = 3
"""Sets that stand by one after the other: a fleet has few kinds of hardware that would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One set as it is simulated."""

    gpu: str
    layout: str
    site: Site
    """As the planner believes."""
    capacity: Capacity
    claim: Claim
    """What a replica takes of a budget."""
    tunable: Tunable | None = None
    """What a retune may change."""
    stands_by: bool = False
    """It is not in the plan, but will be beside it once the sets before find no more devices."""

    number: int | None = None
    """Its place, from 1 on, where another one has the same GPU, as on other nodes; else the GPU says which it is."""

    @property
    def name(self) -> str:
        return f"{self.layout} on {self.device}"

    @property
    def device(self) -> str:
        return self.gpu if self.number is None else f"{self.gpu}, set {self.number}"

    @property
    def hardware(self) -> Hardware:
        return self.site.hardware

    @property
    def price_per_gpu_hour(self) -> float | None:
        part, price = self.hardware.devices, self.claim.price
        return None if price is None or not part else float(price) / part


def further(
    deployment: LLMDeployment,
    inventory: Inventory,
    facts: PlanFacts,
    made: Plan,
    *,
    learned: Learned,
    config: OperatorConfig | None,
) -> Iterator[PlanSet]:
    """Sets that a turn of the operator puts beside the plan, each after the ones before it are full."""
    stands = made
    for _ in range(FURTHER_MOST):
        wish = Wish(replicas=max(1, stands.replicas), further=True)
        then = plan(deployment, inventory, facts, learned=learned, config=config, pinned=stands, wish=wish)
        known = [one.hardware for one in stands.sets]
        new = [one for one in then.sets if not any(same_devices(one.hardware, each) for each in known)]
        if not new:
            return
        yield from new
        stands = then


def numbered(sets: Sequence[Played]) -> tuple[Played, ...]:
    """With the numbers of those that have their GPU in common."""
    alike = Counter(one.gpu for one in sets)
    return tuple(
        replace(one, number=place) if alike[one.gpu] > 1 else one for place, one in enumerate(sets, 1)
    )


def on_devices_of_their_own(sets: Sequence[PlanSet]) -> tuple[PlanSet, ...]:
    """Those that share no room with one before them."""
    found: list[PlanSet] = []
    for chosen in sets:
        if not any(same_devices(chosen.hardware, each.hardware) for each in found):
            found.append(chosen)
    return tuple(found)
