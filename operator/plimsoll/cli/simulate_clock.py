"""How a simulation tells times: by the clock of its trace where that has dates, else since the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from plimsoll.facts.spans import DAY_S

TICKS_S: Final = (1, 5, 15, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY_S)


@dataclass(frozen=True, slots=True)
class Clock:
    began: datetime | None = None
    """When the part that is replayed began, in the zone of its trace, or in none where its dates name none; None where that has no date."""

    def tell(self, seconds: float) -> str:
        """The time so many seconds after the beginning."""
        if self.began is not None:
            return f"{self.began + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"
        days, rest = divmod(int(seconds), DAY_S)
        return f"{days}d {rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"

    def over(self, span_s: float) -> str | None:
        """From when to when so many seconds from the beginning are, and by whose clock; None without dates."""
        if self.began is None:
            return None
        return f"{self.tell(0)} to {self.tell(span_s)} {self.began:%Z}".rstrip()

    def ticks(self, span_s: float) -> Sequence[tuple[float, str]]:
        """Marks of an axis of so many seconds, with what stands at them: whole minutes, hours or days, at most ten, none so near the end that
        its text would stick out."""
        step = step_of(span_s)
        if self.began is None:
            return [(float(at), self.tell(at)) for at in ticks(span_s)]
        midnight = self.began.replace(hour=0, minute=0, second=0, microsecond=0)
        first = -(self.began - midnight).total_seconds() % min(step, DAY_S)
        marks = [first + place * step for place in range(ceil(span_s / step) + 1)]
        form = "%d %b %H:%M" if step >= 60 else "%d %b %H:%M:%S"
        kept = [at for at in marks if at < span_s - step / 3] or [0.0]
        return [(at, f"{self.began + timedelta(seconds=at):{form}}") for at in kept]


def step_of(span_s: float) -> int:
    """Seconds between two marks."""
    return next((one for one in TICKS_S if span_s / one <= 9), DAY_S * ceil(span_s / 9 / DAY_S))


def ticks(span_s: float) -> Sequence[int]:
    """Whole minutes, hours or days since the beginning."""
    step = step_of(span_s)
    return range(0, max(1, int(span_s - step / 3)), step)
