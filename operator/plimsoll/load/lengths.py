"""How long prompts and answers are: a fixed number of tokens, a range, or a log-normal distribution given by two percentiles.

Measured traffic is about log-normal, and two percentiles are what people know of their own. Requests of a trace have their own lengths
(`traces`).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from plimsoll.load.problems import LoadError

LONGEST: Final = 16_777_216
"""The most tokens, as for contextTokens of the resource."""
FORMS: Final = "write 512, 100..400, or two percentiles as p50=512,p95=2048"
_PERCENTILES: Final[Mapping[str, float]] = {"p90": 0.90, "p95": 0.95, "p99": 0.99}
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Fixed:
    tokens: int

    def draw(self, _chance: random.Random) -> int:
        return self.tokens

    def share_within(self, tokens: int) -> float:
        """Which share of the lengths is at most this many tokens."""
        return float(self.tokens <= tokens)

    def __str__(self) -> str:
        return str(self.tokens)


@dataclass(frozen=True, slots=True)
class Uniform:
    low: int
    high: int

    def draw(self, chance: random.Random) -> int:
        return chance.randint(self.low, self.high)

    def share_within(self, tokens: int) -> float:
        """Which share of the lengths is at most this many tokens."""
        return max(0, min(tokens, self.high) - self.low + 1) / (self.high - self.low + 1)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Half of the lengths are at most `median`; `share` of them are at most `upper`."""

    median: int
    upper: int
    share: float

    def draw(self, chance: random.Random) -> int:
        return max(1, min(LONGEST, round(chance.lognormvariate(math.log(self.median), self.sigma))))

    def share_within(self, tokens: int) -> float:
        """Which share of the lengths is at most this many tokens."""
        if self.sigma == 0 or tokens < 1:
            return float(self.median <= tokens)
        return NormalDist(math.log(self.median), self.sigma).cdf(math.log(tokens + 0.5))

    @property
    def sigma(self) -> float:
        return math.log(self.upper / self.median) / NormalDist().inv_cdf(self.share)

    def __str__(self) -> str:
        return f"p50={self.median},p{round(self.share * 100)}={self.upper}"


Lengths = Fixed | Uniform | LogNormal


def parse_lengths(text: str, what: str) -> Lengths:
    """Reads lengths as a person writes them. `what` is the option's name, for the message of an error."""
    low, dots, high = text.partition("..")
    if dots:
        bounds = _tokens(low, text, what), _tokens(high, text, what)
        if bounds[0] > bounds[1]:
            raise LoadError(f"{what}: {text!r} ends before it begins; {FORMS}")
        return Uniform(*bounds)
    if "=" not in text:
        return Fixed(_tokens(text, text, what))
    return _log_normal(text, what)


def _log_normal(text: str, what: str) -> LogNormal:
    said: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        said[name.strip()] = _tokens(value, text, what)
    upper = [name for name in said if name in _PERCENTILES]
    if len(said) != 2 or "p50" not in said or len(upper) != 1:
        raise LoadError(f"{what}: {text!r} is not p50 with one of {', '.join(_PERCENTILES)}; {FORMS}")
    if said[upper[0]] < said["p50"]:
        raise LoadError(f"{what}: {text!r}: {upper[0]} must not be below p50")
    return LogNormal(said["p50"], said[upper[0]], _PERCENTILES[upper[0]])


def _tokens(number: str, text: str, what: str) -> int:
    stripped = number.strip()
    if not _NUMBER.fullmatch(stripped) or not 1 <= int(stripped) <= LONGEST:
        raise LoadError(f"{what}: {text!r} is no length in tokens, from 1 to {LONGEST:,}; {FORMS}")
    return int(stripped)
