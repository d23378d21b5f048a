"""A planner of two loops (`dynamo`): a floor from the last interval's load and a profile, and single steps from latency.

The floor: what arrived in the last three minutes, taken to go on, over what a replica was profiled to carry of prompts and
answers as long as theirs. The steps: one more when every replica is over its target; one less when every replica would be well
under it with its part of the load of the one that goes; none while one is on its way. Until the first floor is known, what runs
is the floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf
from typing import Final, NamedTuple

from plimsoll.control.situation import Slo
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample
from plimsoll.simulate.policies.base import View, Wish
from plimsoll.simulate.steps import Limits, StepTimes

FLOOR_EVERY_S: Final = 180.0
SENSITIVITY: Final = 0.8
LEAST_SEEN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a replica was measured to do before it serves: here, what is believed of it."""

    times: StepTimes
    limits: Limits
    slo: Slo

    def carries(self, given: float, asked: float, cached: float = 0.0) -> float:
        """Requests a second of such a mean prompt, of which so much is cached, and answer, at the largest batch that is in time."""
        live, new = given + asked / 2, given * (1 - cached)
        limits, prompt = self.limits, self.times.prompt(ceil(new))
        budget = limits.max_num_batched_tokens
        most = min(
            limits.blocks // limits.blocks_for(ceil(live)),
            limits.max_num_seqs,
            int(budget * asked / (given + asked)),
        )
        found = 0.0
        for batch in range(1, max(1, most) + 1):
            joining = batch / asked  # prompts in each step
            alone = self.times.decode[batch] + self.times.kv_token * batch * live
            step = alone + joining * prompt
            first = ceil((1 + joining) * new / budget) * alone + (1 + joining) * prompt
            if found and (step > (self.slo.itl_p99_s or inf) or first > (self.slo.ttft_p99_s or inf)):
                break
            found = batch / (asked * step)
        return found


class Counts(NamedTuple):
    """What a replica has counted, or all of them since a floor was set."""

    came: float = 0.0
    ended: float = 0.0
    given: float = 0.0
    asked: float = 0.0
    looked_up: float = 0.0
    cached: float = 0.0

    def plus(self, new: Counts, old: Counts) -> Counts:
        """With what a replica has counted from `old` to `new`; all of the new where it began anew meanwhile."""
        begun = old if new.ended >= old.ended else NONE
        return Counts(*(sum_ + now - then for sum_, now, then in zip(self, new, begun, strict=True)))


NONE: Final = Counts()


class Dynamo:
    name = "dynamo"
    histograms = True

    def __init__(self, profile: Profile, share: float = 1.0, floor_every_s: float = FLOOR_EVERY_S) -> None:
        """`share` of the profiled rate is what a replica is counted with."""
        self.profile = profile
        self.share = share
        self.floor_every_s = floor_every_s
        self.settings: Mapping[str, float] = {
            "capacity_share": share,
            "floor_every_s": floor_every_s,
            "sensitivity": SENSITIVITY,
        }
        self._before: dict[str, PodSample] = {}
        self._last: dict[str, PodSample] = {}
        self._counts = NONE
        self._prompt = 0.0
        """The mean one, as the last floor has it."""
        self._floor: int | None = None
        self._floor_at = 0.0

    def decide(self, view: View) -> Wish | None:
        for sample in view.arrived:
            known = self._last.get(sample.pod)
            if known is None or sample.at > known.at:
                if known is not None:
                    self._before[sample.pod] = known
                self._counts = self._counts.plus(_counted(sample), _counted(known) if known else NONE)
                self._last[sample.pod] = sample
        if view.now >= self._floor_at + self.floor_every_s:
            self._set_floor(view.now)
        floor = max(view.least, min(view.told if self._floor is None else self._floor, view.most))
        if view.told < floor:
            return Wish(floor, "Floor", f"what came in the last {self.floor_every_s:.0f} s needs {floor}")
        if view.pending:
            return None
        ready = len(view.ready)
        strains = self._strains(view)
        if not strains:
            return None
        if len(strains) == ready and min(strains) > 1:
            return Wish(
                min(view.told + 1, view.most),
                "Late",
                f"every replica is at {min(strains):.1f}x a target or more",
            )
        if ready > 1 and view.told > floor:
            worst = max(self._strains(view, 1 / (ready - 1)))
            if worst < SENSITIVITY:
                return Wish(view.told - 1, "Early", f"the others would be at {worst:.0%} of a target at most")
        return None

    def _strains(self, view: View, more: float = 0.0) -> list[float]:
        found = (self._strain(one.id, more) for one in view.ready)
        return [strain for strain in found if strain is not None]

    def _set_floor(self, now: float) -> None:
        seen, span = self._counts, now - self._floor_at
        self._counts, self._floor_at = NONE, now
        if seen.ended:
            self._prompt = seen.given / seen.ended
            cached = seen.cached / seen.looked_up if seen.looked_up else 0.0
            each = self.profile.carries(self._prompt, seen.asked / seen.ended, cached) * self.share
            self._floor = max(1, ceil(seen.came / span / each))
        elif not seen.came:
            self._floor = 1

    def _strain(self, pod: str, more: float = 0.0) -> float | None:
        """The worse of the last interval's mean latencies over its target, were there so much more load; None where too little was seen. Of
        a latency the part that a request alone would not have is taken to grow as the load does."""
        new, old = self._last.get(pod), self._before.get(pod)
        if new is None or old is None:
            return None
        times, slo = self.profile.times, self.profile.slo
        step = times.decode[1]
        seen = (
            (_mean(new.ttft, old.ttft), step + times.prompt(ceil(self._prompt)), slo.ttft_p99_s),
            (_mean(new.itl, old.itl), step, slo.itl_p99_s),
        )
        return max(
            (
                (mean + more * max(0.0, mean - alone)) / most
                for mean, alone, most in seen
                if mean is not None and most is not None
            ),
            default=None,
        )


def _counted(sample: PodSample) -> Counts:
    given, asked = sample.prompt_lengths, sample.output_lengths
    return Counts(
        came=(sample.finished or 0.0) + (sample.running or 0.0) + (sample.waiting or 0.0),
        ended=given.count if given else 0.0,
        given=given.sum if given else 0.0,
        asked=asked.sum if asked else 0.0,
        looked_up=sample.prefix_queries or 0.0,
        cached=sample.prefix_hits or 0.0,
    )


def _mean(new: Histogram | None, old: Histogram | None) -> float | None:
    if new is None or old is None or new.count - old.count < LEAST_SEEN:
        return None
    return (new.sum - old.sum) / (new.count - old.count)
