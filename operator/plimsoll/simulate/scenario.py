"""What is simulated: sets of replicas, the traffic that a resource declares, and the hardware its fleet has. It is made `from_plan`."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.control.situation import Capacity, Slo
from plimsoll.planning.placing.budgets import UNLIMITED
from plimsoll.planning.placing.budgets import Limits as Budgeted
from plimsoll.simulate.arrivals import Lengths
from plimsoll.simulate.gateway import Wake
from plimsoll.simulate.several import Played
from plimsoll.simulate.steps import Limits, StepTimes
from plimsoll.simulate.tuning import Tunable
from plimsoll.simulate.world import SCRAPE_S, Clients, Hardware, World, draw_world


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is simulated. Fields that name no set are about the plan's first one."""

    name: str
    model: str
    gpu: str
    layout: str
    devices: float
    """Of one replica."""
    times: StepTimes
    """As the planner believes."""
    limits: Limits
    capacity: Capacity
    requests_per_second: float
    """What one replica is planned for, were all requests typical: at the load that is declared, or a modest one."""
    steady_per_second: float | None = None
    """What it is planned for as users send them, where a rate is declared."""
    most_per_second: float | None = None
    """What one replica is predicted to carry within `slo`, or without one within its cache and sequences; None where that is not known."""
    slo: Slo
    lengths: Lengths
    lengths_declared: bool
    ceiling: int
    """Tokens that the model is made for, of a prompt and its answer together."""
    least: int
    most: int
    """How many replicas the resource allows and the fleet has room for. Of several sets together a budget may leave fewer, see `reachable`."""
    bounded: bool
    """Whether the resource says how many there may be, or its namespace's budget."""
    fixed: bool = False
    """spec.replicas says how many there are, whatever comes."""
    budget_binds: bool = False
    """It is the namespace's budget that bounds them, and not the resource."""
    hardware: Hardware
    up_window_s: float
    down_window_s: float | None
    interval_s: float = SCRAPE_S
    """Between two decisions of our law."""
    closes: bool = False
    """Whether engines close connections after each answer, so that a Service chooses for each request."""
    zero: Wake | None = None
    """Set where it may sleep; `least` is then what policies keep that cannot send it to sleep."""
    price_per_gpu_hour: float | None = None
    """In the admin's currency; None where a price is unknown."""
    sets: tuple[Played, ...] = ()
    """All of them, the first included, where there are several."""
    limits_together: Budgeted = UNLIMITED
    """What the budget leaves them, where there are several."""
    tunable: Tunable | None = None
    """What a retune may change, where there is one set; where there are several, each has its own."""
    attainable: bool = True
    """Whether the plan found a layout that keeps slo at least for a single request."""
    left_out: tuple[str, ...] = ()
    """What of the resource or the fleet is not simulated, a sentence each."""
    warned: tuple[str, ...] = ()
    """What the plan warns of, a sentence each: what holds of the plan holds of its replay."""

    @property
    def longest(self) -> int:
        """Tokens of a prompt and its answer together that some replica takes."""
        return max((one.site.limits.max_model_len for one in self.sets), default=self.limits.max_model_len)

    @property
    def room(self) -> int:
        """Replicas that find devices; of several sets those that the budget leaves too."""
        return sum(one.site.room for one in self.sets) if self.sets else self.hardware.most

    @property
    def devices_hold(self) -> int:
        """Replicas that find devices, whatever the budget."""
        return sum(one.hardware.most for one in self.sets) if self.sets else self.hardware.most

    @property
    def reachable(self) -> int:
        """The largest number that can be there, the first set's first."""
        return min(self.most, self.room)

    def world(self, seed: int, *, crashes_per_replica_day: float = 0.0) -> World:
        return draw_world(
            seed=seed,
            times=self.times,
            limits=self.limits,
            slo=self.slo,
            hardware=self.hardware,
            crashes_per_replica_day=crashes_per_replica_day,
            clients=Clients(closed=self.closes),
            allowed=self.sets[0].site.allowed if self.sets else None,
            beside=tuple(one.site for one in self.sets[1:]),
        )
