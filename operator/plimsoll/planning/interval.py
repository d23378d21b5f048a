"""A figure with the range that holds 90% of real cases: users are told it, and verdicts are made from its ends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    mid: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"an interval must be ordered, not {self.low} <= {self.mid} <= {self.high}")

    @classmethod
    def exact(cls, value: float) -> Interval:
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float, half_width: float) -> Interval:
        return cls(value - half_width, value, value + half_width)

    def scaled(self, factor: float) -> Interval:
        return Interval(self.low * factor, self.mid * factor, self.high * factor)

    def clamped(self, floor: float) -> Interval:
        return Interval(max(floor, self.low), max(floor, self.mid), max(floor, self.high))
