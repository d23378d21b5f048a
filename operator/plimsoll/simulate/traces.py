"""Traffic from files, whole and in columns: requests one by one, or a rate every so often.

How a file is read is `load.traces`; here it is kept in memory, for many runs over it. Arrivals are drawn by `arrivals`.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from pathlib import Path

from plimsoll.load.problems import LoadError
from plimsoll.load.traces import Arrived, Rate, Rates, open_trace


class BadTrace(ValueError):
    """A file that cannot be used: where, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    name: str
    at: array[float]
    inputs: array[int]
    outputs: array[int]
    prefixes: tuple[tuple[int, ...], ...] | None
    """None where no request names any."""

    @property
    def span_s(self) -> float:
        """To the last arrival, and a mean gap beyond."""
        return self.at[-1] * (1 + 1 / max(1, len(self.at) - 1)) if self.at[-1] > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTrace:
    name: str
    at: tuple[float, ...]
    rates: tuple[float, ...]
    cvs: tuple[float, ...]

    @property
    def span_s(self) -> float:
        last = self.at[-1] - self.at[-2] if len(self.at) > 1 else 600.0
        return self.at[-1] + last


Trace = RequestTrace | RateTrace


def load_trace(path: Path) -> Trace:
    """The whole of a file; raises BadTrace."""
    try:
        with open_trace(path) as read:
            if isinstance(read, Rates):
                return _rates(path.name, list(read.lines))
            return _requests(path.name, list(read.lines))
    except LoadError as error:
        raise BadTrace(str(error)) from None


def _requests(name: str, lines: list[Arrived]) -> RequestTrace:
    if not lines:
        raise BadTrace(f"{name}: holds no request")
    return RequestTrace(
        name=name,
        at=array("d", (line.at for line in lines)),
        inputs=array("q", (line.input_tokens for line in lines)),
        outputs=array("q", (line.output_tokens for line in lines)),
        prefixes=tuple(line.blocks for line in lines) if any(line.blocks for line in lines) else None,
    )


def _rates(name: str, lines: list[Rate]) -> RateTrace:
    if not any(line.per_second for line in lines):
        raise BadTrace(f"{name}: rate_rps is never above 0, so that nothing arrives")
    return RateTrace(
        name=name,
        at=tuple(line.at for line in lines),
        rates=tuple(line.per_second for line in lines),
        cvs=tuple(line.cv for line in lines),
    )
