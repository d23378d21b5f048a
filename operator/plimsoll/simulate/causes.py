"""What may explain a minute in which too few requests were in time: its replicas, the policy, and the prompts that came in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.alerts.thresholds import QUEUE_LEAST, QUEUE_UNEVEN
from plimsoll.control.situation import ReplicaState
from plimsoll.simulate.estate import Estate


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A minute in which fewer than 99 of 100 were within the limits, with what was so at its end."""

    at: float
    told: int
    """Replicas that were asked for."""
    starting: int
    """Replicas on their way because more were asked for."""
    crashed: bool = False
    """Fewer served than were asked for, as one was coming back from a crash."""
    retuned: bool = False
    """Fewer served than were asked for, as one was starting with other settings."""
    rising: bool = False
    """The load asked for more replicas, and scaling.upWindowSeconds was not over yet."""
    uneven: bool = False
    """At more than half of its looks one replica had a queue while another had none, as the alert UnevenLoad has it; none of them tries a setting."""
    refused: bool = False
    """Only prompts that are too long for any replica made it late."""
    alone: bool = False
    """Only such prompts did, and those whose first token is late even on a replica of their own."""


class Causes:
    """What was so in each minute of a run, by the minute's number."""

    def __init__(self, minutes: int) -> None:
        self.rising = False
        """Whether the last decision waited for scaling.upWindowSeconds."""
        self._told, self._starting, self._rising = [0] * minutes, [0] * minutes, [False] * minutes
        """As of each minute's end."""
        self._crashed: set[int] = set()
        self._retuned: set[int] = set()
        self._looks: Counter[int] = Counter()
        self._uneven: Counter[int] = Counter()
        """Looks at which it was so: under a load that is too large queues are uneven now and then too."""
        self._refused: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()

    def arrivals(
        self, at: Sequence[float], inputs: Sequence[int], *, refused_from: int, late_from: int
    ) -> None:
        """Prompts of `refused_from` tokens and more are refused by all replicas, and those of `late_from` are late at best."""
        for moment, tokens in zip(at, inputs, strict=True):
            if tokens >= late_from:
                self._lost[int(moment // 60)] += 1
            if tokens >= refused_from:
                self._refused[int(moment // 60)] += 1

    def look(self, estate: Estate, minute: int) -> None:
        starting = [one for one in estate.present if one.state is not ReplicaState.READY]
        again = [one for one in starting if one.restarts]
        changed = [one for one in starting if one.for_change and not one.restarts]
        self._told[minute], self._rising[minute] = estate.told, self.rising
        self._starting[minute] = len(starting) - len(again) - len(changed)
        self._looks[minute] += 1
        queues = [one.engine.queued for one in estate.ready if not one.tried]
        if queues and max(queues) > QUEUE_LEAST.value and min(queues) < QUEUE_UNEVEN.value * max(queues):
            self._uneven[minute] += 1
        if len(estate.ready) < estate.told:
            if again:
                self._crashed.add(minute)
            if changed:
                self._retuned.add(minute)

    def late(self, minute: int, *, good: int, arrived: int, smooth: bool) -> Late:
        """`good` of those who arrived had their first token in time; `smooth`: 99 of 100 gaps were within their limit."""
        refused, lost = self._refused[minute], self._lost[minute]
        return Late(
            at=60.0 * minute,
            told=self._told[minute],
            starting=self._starting[minute],
            crashed=minute in self._crashed,
            retuned=minute in self._retuned,
            rising=self._rising[minute],
            uneven=2 * self._uneven[minute] > self._looks[minute],
            refused=smooth and refused > 0 and good >= 0.99 * (arrived - refused),
            alone=smooth and lost > 0 and good >= 0.99 * (arrived - lost),
        )
