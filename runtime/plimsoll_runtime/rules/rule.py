"""One row of the table: lines that it fits, and what they mean."""

from __future__ import annotations

import re
from typing import NamedTuple

from plimsoll_runtime.startup import PHASES, PROFILE, WARMUP, WEIGHTS

START = frozenset(PHASES)
"""What is wrong with a model shows here; while an engine serves, such words are of an adapter, or of what a request names."""
BEFORE_WEIGHTS = frozenset(PHASES[: PHASES.index(WEIGHTS)])
LOADING = frozenset(PHASES[: PHASES.index("prepare")])
PROFILING = frozenset(PHASES[PHASES.index("prepare") : PHASES.index(PROFILE) + 1])
GRAPHS = frozenset(PHASES[PHASES.index(WARMUP) :])
SERVING = "serving"


class Rule(NamedTuple):
    word: str
    pattern: re.Pattern[str]
    message: str
    """Groups of the pattern by name."""
    remedy: str
    phases: frozenset[str] | None = None
    """Only while the engine is in one of them."""


def rule(word: str, pattern: str, message: str, remedy: str, phases: frozenset[str] | None = None) -> Rule:
    return Rule(word, re.compile(pattern, re.IGNORECASE), message, remedy, phases)
