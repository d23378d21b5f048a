"""Levels of the alerts that hold a latency against what the resource promises of it.

With few requests a 99th percentile is the slowest of them. Then half of all must be too slow: of five that keep a promise of 99 in 100,
three are so in one case of a hundred thousand.
"""

from __future__ import annotations

from plimsoll.alerts.base import SWINGS, Level
from plimsoll.alerts.records import SAME, SLO, TTFT_SAMPLES, Record
from plimsoll.alerts.thresholds import FEW_SAMPLES, SAMPLES, SLO_ACT


def promise(latency: str) -> str:
    """What the resource promises of it, in the words of a template: what was measured says little without."""
    labels = "cluster='%s',namespace='%s',llm='%s'"
    asked = f"printf \"{SLO}{{{labels},latency='{latency}'}}\" $labels.cluster $labels.namespace $labels.llm | query"
    return f"{{{{ with {asked} }}}}{{{{ . | first | value | humanizeDuration }}}}{{{{ end }}}}"


def over_promise(seen: Record, median: Record, latency: str) -> tuple[Level, ...]:
    limit = f'{SLO}{{latency="{latency}"}}'
    return (
        Level("warning", _over(seen, median, limit), "5m", "above the promise", keeps=SWINGS),
        Level(
            "critical",
            _over(seen, median, f"({SLO_ACT} * {limit})"),
            "5m",
            f"above {SLO_ACT} times the promise",
            keeps=SWINGS,
        ),
    )


def _over(seen: Record, median: Record, limit: str) -> str:
    grossly = f"{TTFT_SAMPLES} >= {FEW_SAMPLES} and {SAME} {median} > {SAME} {limit}"
    return f"{seen} > {SAME} {limit} and {SAME} ({TTFT_SAMPLES} >= {SAMPLES} or ({grossly}))"
