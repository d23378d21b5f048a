"""The memory ledger of one GPU: every term with its formula, inputs and source, and what is left for the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from plimsoll.facts.model import Certainty
from plimsoll.planning.interval import Interval


class Verdict(StrEnum):
    FITS = "fits"
    """It starts even at the unfavourable end of the interval."""
    TIGHT = "tight"
    """The expectation starts, the interval also holds outcomes that do not (or the other way round)."""
    DOES_NOT_FIT = "does not fit"


class OomRisk(StrEnum):
    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"
    CERTAIN = "certain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    name: str
    """weights, activation, graphs, context, lora, draft, encoder, kv, headroom."""
    bytes: Interval
    formula: str
    inputs: Mapping[str, str]
    certainty: Certainty


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the engine will print about its cache, for the rank that binds."""

    blocks: Interval
    block_size: int
    tokens: Interval
    """As this engine version's log line counts them."""
    concurrency_at_max_len: Interval
    concurrency_at_workload: Interval
    bytes_per_token: float
    """Marginal: what one more live token costs on this rank, all layers together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    budget_bytes: int
    """What the engine may take of one device."""
    device_bytes: int
    terms: tuple[Term, ...]
    """In the order a bar is drawn: what is resident first, then the pool, then what stays free."""
    capacity: Capacity | None
    """None where nothing is left for a cache."""
    verdict: Verdict
    risk: OomRisk
    reason: str
    """One sentence: why this verdict, with the figures that decided and what would change it."""

    def term(self, name: str) -> Term:
        for term in self.terms:
            if term.name == name:
                return term
        raise KeyError(name)
