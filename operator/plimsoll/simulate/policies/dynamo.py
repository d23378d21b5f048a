"""A planner of two loops (`dynamo`): a floor from the last interval's load and a profile, and single steps from latency.

The floor: what arrived in the last three minutes, taken to go on, over what a replica was profiled to carry. The steps: one
more when every replica is over its target, one less when every replica is well under it, none while one is on its way. Until
the first floor is known, what runs is the floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.simulate.policies.base import View, Wish

FLOOR_EVERY_S: Final = 180.0
SENSITIVITY: Final = 0.8
LEAST_SEEN: Final = 5


class Dynamo:
    name = "dynamo"
    histograms = True

    def __init__(
        self,
        slo: Slo,
        requests_per_second: float,
        share: float = 1.0,
        floor_every_s: float = FLOOR_EVERY_S,
    ) -> None:
        """`share` of the profiled rate is what a replica is counted with."""
        self.slo = slo
        self.each = requests_per_second * share
        self.floor_every_s = floor_every_s
        self.settings: Mapping[str, float] = {
            "capacity_share": share,
            "capacity_rps": self.each,
            "floor_every_s": floor_every_s,
            "sensitivity": SENSITIVITY,
        }
        self._before: dict[str, PodSample] = {}
        self._last: dict[str, PodSample] = {}
        self._floor: int | None = None
        self._floor_at = 0.0
        self._at_floor: dict[str, PodSample] = {}

    def decide(self, view: View) -> Wish | None:
        for sample in view.arrived:
            known = self._last.get(sample.pod)
            if known is None or sample.at > known.at:
                if known is not None:
                    self._before[sample.pod] = known
                self._last[sample.pod] = sample
        if view.now >= self._floor_at + self.floor_every_s:
            self._set_floor(view)
        floor = max(view.least, min(view.told if self._floor is None else self._floor, view.most))
        if view.told < floor:
            return Wish(
                floor,
                "Floor",
                f"the last {self.floor_every_s:.0f} s need {floor} at {self.each:.2f} requests/s each",
            )
        if view.pending:
            return None
        strains = [strain for one in view.ready if (strain := self._strain(one.id)) is not None]
        if not strains:
            return None
        if len(strains) == len(view.ready) and min(strains) > 1:
            return Wish(
                min(view.told + 1, view.most),
                "Late",
                f"every replica is at {min(strains):.1f}x a target or more",
            )
        if max(strains) < SENSITIVITY and view.told > floor:
            return Wish(view.told - 1, "Early", f"every replica is under {SENSITIVITY:.0%} of its targets")
        return None

    def _set_floor(self, view: View) -> None:
        span = view.now - self._floor_at
        live = {one.id for one in view.ready}
        samples = {pod: sample for pod, sample in self._last.items() if pod in live}
        if samples:
            arrived = sum(
                _counted(sample) - _counted(self._at_floor.get(pod)) for pod, sample in samples.items()
            )
            self._floor = max(1, ceil(max(0.0, arrived) / span / self.each))
        self._floor_at, self._at_floor = view.now, samples

    def _strain(self, pod: str) -> float | None:
        """The worse of the last interval's mean latencies over its target; None where too little was seen."""
        new, old = self._last.get(pod), self._before.get(pod)
        if new is None or old is None:
            return None
        ratios = [
            ratio
            for name, most in (("ttft", self.slo.ttft_p99_s), ("itl", self.slo.itl_p99_s))
            if most is not None
            and (ratio := _ratio(getattr(new, name), getattr(old, name), most)) is not None
        ]
        return max(ratios, default=None)


def _counted(sample: PodSample | None) -> float:
    """Requests that have come in: those finished, and those under way."""
    if sample is None:
        return 0.0
    return (sample.finished or 0.0) + (sample.running or 0.0) + (sample.waiting or 0.0)


def _ratio(new: Histogram | None, old: Histogram | None, most: float) -> float | None:
    if new is None or old is None or new.count - old.count < LEAST_SEEN:
        return None
    return (new.sum - old.sum) / (new.count - old.count) / most
