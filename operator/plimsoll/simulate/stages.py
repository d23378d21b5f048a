"""A plan and a trace, from which the seed of a world draws its stage. It is handed to other processes, and each draws what it plays."""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.simulate.arrivals import Arrivals, draw_arrivals
from plimsoll.simulate.policies.registry import Stage
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.traces import Trace
from plimsoll.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What all worlds have in common."""

    scenario: Scenario
    trace: Trace
    scale: float = 1.0
    begin_s: float = 0.0
    span_s: float | None = None
    """None: to the trace's end."""
    crashes: float = 0.0
    """Of each replica, a day."""

    def arrivals(self, seed: int) -> Arrivals:
        lengths = self.scenario.lengths
        return draw_arrivals(
            self.trace,
            lengths,
            seed=seed,
            scale=self.scale,
            begin_s=self.begin_s,
            span_s=self.span_s,
            limit=self.scenario.longest,
        )

    def world(self, seed: int) -> World:
        return self.scenario.world(seed, crashes_per_replica_day=self.crashes)

    def stage(self, seed: int, arrivals: Arrivals | None = None) -> Stage:
        """With `arrivals` where they are drawn already."""
        return Stage(
            scenario=self.scenario,
            world=self.world(seed),
            arrivals=self.arrivals(seed) if arrivals is None else arrivals,
        )
