"""What users are promised, in milliseconds, and whether it was kept.

As in the resource a promise is for 99 of 100: of requests for the first token, TPOT and the whole answer, and of gaps for ITL. A request
without a first token counts as late, as a server that answers few requests would otherwise look fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import floor
from typing import Final

from plimsoll.load.problems import LoadError

KEPT: Final = 0.99
_VALUE: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Targets in milliseconds; None where nothing is promised."""

    ttft: float | None = None
    itl: float | None = None
    tpot: float | None = None
    e2e: float | None = None

    def targets(self) -> Iterator[tuple[str, float]]:
        for item in fields(self):
            target = getattr(self, item.name)
            if target is not None:
                yield item.name, target


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A target, and how far it was kept."""

    name: str
    target_ms: float
    within: float | None
    """Share of requests, or of gaps, within the target; None where nothing was seen."""

    @property
    def kept(self) -> bool | None:
        return None if self.within is None else self.within >= KEPT


def percent(of_100: float) -> str:
    """A share, of a hundred, as it is told, cut off and not rounded: with requests that were not served it isn't 100.00, and below the goal not 99.00."""
    return f"{floor(100 * of_100 + 1e-6) / 100:.2f}"


def parse_slo(text: str) -> Slo:
    """Reads targets such as ttft=1000,itl=50, with = or : between name and milliseconds."""
    known = [item.name for item in fields(Slo)]
    said: dict[str, float] = {}
    for part in re.split(r"[,\s]+", text.strip()):
        name, _, value = part.replace(":", "=").partition("=")
        if name not in known:
            raise LoadError(
                f"--slo: {part!r} names none of {', '.join(known)}; write ttft=1000,itl=50 (milliseconds)"
            )
        if not _VALUE.fullmatch(value) or float(value) <= 0:
            raise LoadError(f"--slo: {part!r} has no milliseconds; write {name}=1000")
        said[name] = float(value)
    return Slo(**said)
