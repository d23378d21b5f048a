"""One row of the table: lines that it fits, and what they mean."""

from __future__ import annotations

import re
from typing import NamedTuple

from plimsoll_runtime.startup import PHASES, PROFILE, WARMUP, WEIGHTS

START = frozenset(PHASES)
"""The phases of a start, in which it shows what is wrong with a model. While an engine serves, the same words are about an adapter, or about what a request names."""
BEFORE_WEIGHTS = frozenset(PHASES[: PHASES.index(WEIGHTS)])
LOADING = frozenset(PHASES[: PHASES.index("prepare")])
PROFILING = frozenset(PHASES[PHASES.index("prepare") : PHASES.index(PROFILE) + 1])
GRAPHS = frozenset(PHASES[PHASES.index(WARMUP) :])
SERVING = "serving"


class Rule(NamedTuple):
    word: str
    pattern: re.Pattern[str]
    message: str
    """What is told; names in braces are groups of the pattern."""
    remedy: str
    phases: frozenset[str] | None = None
    """The phases in which the rule holds; None for all of them."""


def rule(word: str, pattern: str, message: str, remedy: str, phases: frozenset[str] | None = None) -> Rule:
    return Rule(word, re.compile(pattern, re.IGNORECASE), message, remedy, phases)
