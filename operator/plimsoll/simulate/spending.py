"""Where a law's GPU-hours went: to replicas that the load asked for, and to those that were there for another reason."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final

from plimsoll.control.situation import ReplicaState
from plimsoll.simulate.estate import Estate
from plimsoll.simulate.policies.base import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """GPU-hours by why they were spent; together they are all of them."""

    load_h: float
    """By replicas that serve, as many as the law said at that time that the load asks for, the load one start-up ahead included."""
    least_h: float
    """By those beyond them that `scaling.min` or `spec.replicas` asks for."""
    waits_h: float
    """By those beyond both that were still there because a wait before replicas go was not over, or as they go step by step."""
    caution_h: float
    """By those that were still there because those left would have been too full, too busy or too slow, or something was wrong."""
    starting_h: float
    """By replicas that had a GPU and did not serve yet."""
    draining_h: float
    """By replicas that were let go and answered what they had."""
    unknown_h: float
    """By replicas that serve, beyond the least, while nothing said what the load asks for."""


_NAMES: Final = tuple(one.name for one in fields(Spent))


@dataclass(slots=True)
class Spending:
    """Counts at each look, from what the law last said."""

    least: int = 0
    asked: Asked | None = None
    """None: the policy tells nothing of it, and nothing is told."""
    _seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_NAMES, 0.0))
    """Of replicas with a GPU."""

    def look(self, estate: Estate, passed: float) -> None:
        """What is so now, and until the next look `passed` seconds later."""
        for one in estate.instances:
            if one.scheduled is None:
                continue
            if one.state is ReplicaState.LEAVING:
                self._seconds["draining_h"] += passed
            elif one.state is not ReplicaState.READY:
                self._seconds["starting_h"] += passed
        for name, count in self._shared(len(estate.ready)):
            self._seconds[name] += count * passed

    def _shared(self, ready: int) -> tuple[tuple[str, int], ...]:
        asked = self.asked
        if asked is None or asked.wanted is None:
            least = min(ready, self.least)
            return ("least_h", least), ("unknown_h", ready - least)
        load = min(ready, asked.wanted)
        least = min(ready, max(load, self.least)) - load
        return (
            ("load_h", load),
            ("least_h", least),
            ("waits_h" if asked.waits else "caution_h", ready - load - least),
        )

    def spent(self, gpu_hours: float) -> Spent | None:
        """Looks come every few seconds and GPUs are charged to the moment, so what was seen is scaled to what was charged."""
        seen = sum(self._seconds.values())
        if self.asked is None or not seen:
            return None
        return Spent(**{name: gpu_hours * each / seen for name, each in self._seconds.items()})
