"""When a condition that control has found reaches the status: what comes and goes from tick to tick is told once it has lasted.

Each change of a condition is a write. A Prometheus that starts again, or a load that wavers around the most that can be had,
would else be two writes to every deployment of the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.control.decision import SAYS_NOTHING, Awake, Told
from plimsoll.control.gate import (
    FRESH,
    OF_REPLICAS,
    QUERY_FAILED,
    QUERY_UNANSWERED,
    SILENT,
    lasting,
    lasting_since,
)
from plimsoll.control.law import Law
from plimsoll.control.signals import LATENCY_S
from plimsoll.kube.times import seconds
from plimsoll.status.live import awake_said

MISSING_S: Final = 60.0
"""How long metrics of replicas are missing before it is told: a replica that has just come is scraped a moment later."""
UNANSWERED_S: Final = 300.0
"""How long a wake query finds nothing before it is told: a new one is asked a few looks later, and series come with whoever serves them."""
TICKS: Final = {"PrometheusUnreachable": 4.0}
"""Ticks without an answer before it is told, by reason, where it is more than one."""
_STANDS: Final[Mapping[str, frozenset[str]]] = {
    QUERY_UNANSWERED: frozenset({QUERY_UNANSWERED}),
    QUERY_FAILED: frozenset({QUERY_FAILED, QUERY_UNANSWERED}),
}
"""Reasons that still stand until one of a query without an answer has lasted: whether it finds nothing is not known while Prometheus fails on it."""
LIMITED_S: Final = 600.0
"""How long it is still told that scaling is limited after it no longer was."""
AWAKE_S: Final = 120.0
"""How long another reason has kept it from sleeping before it is told."""
MISSED_S: Final = LATENCY_S
"""How long latencies are beyond their limits, though more replicas would not help, before it is told: as long as they look back, else a minute in
which a few answers were late would be called more than the plan can do."""
MISSES_S: Final = 600.0
"""How long they are within them before it is over, as a p99 that is about at its limit is now above it and now below."""


@dataclass(slots=True)
class Patience:
    """Since when the conditions of one deployment have been so."""

    missing_since: float | None = None
    """Since when this program has found that nobody knows how loaded the replicas are."""
    unanswered_since: float | None = None
    """Since when only a wake query has found nothing. An outage says nothing of it, nor does a Prometheus that fails on it."""
    failed_since: float | None = None
    """Since when Prometheus has failed on a wake query, though it answers other questions."""
    dark_since: float | None = None
    """Since when nobody has known how loaded the replicas are; before this program began, as the status told then."""
    limited_at: float | None = None
    """When scaling was last found to be limited."""
    missed_since: float | None = None
    """Since when latencies have been found, again and again, to be beyond what any number of replicas would keep."""
    missed_at: float | None = None
    """When they were last found to be."""
    awake: Awake = SAYS_NOTHING
    """Why it does not sleep, as last told."""
    other: Awake = SAYS_NOTHING
    other_since: float = 0.0
    """What is found in its place, and since when."""

    @classmethod
    def of(cls, deployment: LLMDeployment) -> Patience:
        """As its status tells it to a program that has just begun."""
        return cls(dark_since=_dark_since(deployment), awake=_awake_of(deployment))

    def asked_anew(self) -> None:
        """Its spec is another one: what limited the old one, and what that promised, says nothing of it."""
        self.limited_at = self.missed_since = self.missed_at = None
        self.awake = SAYS_NOTHING

    def told_awake(self, found: Awake, now: float, told: Iterable[Told] = ()) -> str:
        """Why it does not sleep, as may be told now: another reason once it has lasted. One that names a condition is so for as long as
        that is `told`."""
        failing = {one.type for one in told if one.status == "False"}
        if found.condition and found.condition not in failing:
            found = self.awake
        over = self.awake.condition and self.awake.condition not in failing
        if found != self.other:
            self.other, self.other_since = found, now
        if not found.why or not self.awake.why or over or abs(now - self.other_since) >= AWAKE_S:
            self.awake = found
        return self.awake.why

    def told(
        self, found: Iterable[Told], last: Iterable[Told], *, now: float, law: Law, same_number: bool
    ) -> tuple[Told, ...]:
        """What may be told now, sorted by type. `found` is what this tick has found, and `last` what was told last; `same_number`: this
        tick asks for as many replicas as the one before."""
        told, before = {one.type: one for one in found}, {one.type: one for one in last}
        self._hold_metrics(told, before, now, law)
        self._hold_scaling(told, before, now, same_number=same_number)
        self._hold_latency(told, before, now, same_number=same_number)
        return tuple(told[kind] for kind in sorted(told))

    def _hold_metrics(self, told: dict[str, Told], before: Mapping[str, Told], now: float, law: Law) -> None:
        metrics = told.get(names.METRICS)
        if metrics is None or metrics.status == "True":
            self.missing_since = self.dark_since = self.unanswered_since = self.failed_since = None
            return
        if metrics.reason in SILENT:
            since = self.missing_since = _earlier(self.missing_since, now)
            self.dark_since = _earlier(self.dark_since, now)
        else:
            if metrics.reason == QUERY_FAILED:
                since = self.failed_since = _earlier(self.failed_since, now)
            else:
                since = self.unanswered_since = _earlier(self.unanswered_since, now)
                self.failed_since = None
            self.missing_since = self.dark_since = None
        if now - since < _patience_s(metrics.reason, law):
            del told[names.METRICS]
            last = before.get(names.METRICS)
            if metrics.reason in _STANDS and (last is None or last.reason not in _STANDS[metrics.reason]):
                # An outage before it is over.
                told[names.METRICS] = FRESH
            elif last is not None:
                told[names.METRICS] = last
        elif self.dark_since is not None:
            told[names.METRICS] = lasting(metrics, self.dark_since, now, law)

    def _hold_scaling(
        self, told: dict[str, Told], before: Mapping[str, Told], now: float, *, same_number: bool
    ) -> None:
        if names.SCALING in told:
            self.limited_at = now
            return
        last = before.get(names.SCALING)
        if last is None or self.limited_at is None or not same_number:
            return
        if abs(now - self.limited_at) < LIMITED_S:
            told[names.SCALING] = last

    def _hold_latency(
        self, told: dict[str, Told], before: Mapping[str, Told], now: float, *, same_number: bool
    ) -> None:
        found = told.pop(names.SLO, None)
        over = self.missed_at is not None and abs(now - self.missed_at) >= MISSES_S
        if over or (found is None and not same_number):
            # Of another number of replicas it has to be seen anew.
            self.missed_since = self.missed_at = None
        if found is not None:
            self.missed_since, self.missed_at = _earlier(self.missed_since, now), now
        if self.missed_since is None:
            return
        last = before.get(names.SLO)
        if last is not None and last.status == "False":
            told[names.SLO] = found or last
        elif found is not None and now - self.missed_since >= MISSED_S:
            told[names.SLO] = found


def _patience_s(reason: str, law: Law) -> float:
    if reason in _STANDS:
        return UNANSWERED_S
    # Half a tick: from the second one in a row on.
    return MISSING_S if reason in OF_REPLICAS else TICKS.get(reason, 0.5) * law.tick_s


def _earlier(since: float | None, now: float) -> float:
    """A moment that is still to come was noted before a clock was put back: it counts as now."""
    return now if since is None else min(since, now)


def _awake_of(deployment: LLMDeployment) -> Awake:
    """Why its status says that it does not sleep. While metrics are missing that is why, unless it is something that ends by itself too."""
    conditions = deployment.status.conditions
    metrics = get_condition(conditions, names.METRICS)
    is_missing = metrics is not None and metrics.status == "False"
    return Awake(awake_said(conditions), names.METRICS if is_missing else "")


def _dark_since(deployment: LLMDeployment) -> float | None:
    """Since when the status has said that metrics are missing; None where it does not say so."""
    said = get_condition(deployment.status.conditions, names.METRICS)
    if said is None or said.status != "False" or said.reason not in SILENT:
        return None
    told = lasting_since(said.message)
    return seconds(said.last_transition_time) if told is None else told
