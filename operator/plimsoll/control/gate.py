"""May anything be decided from these signals? Missing is never zero, and never lets a replica go.

An idle deployment whose pods answer is load 0, which is data. Silence is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

from plimsoll import names
from plimsoll.control.decision import Told
from plimsoll.control.law import Law
from plimsoll.control.signals import FRESH_S, Signals
from plimsoll.facts.spans import MINUTE, minute

OUTAGE: Final = "Outage"
QUERY_REFUSED: Final = "QueryRefused"
"""Reason where only the wake query is refused."""
QUERY_UNANSWERED: Final = "QueryUnanswered"
"""Reason where it only finds nothing."""
QUERY_FAILED: Final = "QueryFailed"
"""Reason where Prometheus has no answer to it, though it answers other questions."""
OF_QUERY: Final = frozenset({QUERY_REFUSED, QUERY_UNANSWERED, QUERY_FAILED})
"""Reasons with which it is known all the same how loaded the replicas are."""
_WHERE: Final[Mapping[str, str]] = {
    "PrometheusUnreachable": "the Prometheus of prometheusUrl, where one is set, and at the operator's log",
    "Missing": "the operator's log, whether the pods may be reached (networking.allowFrom), what their engines export and, where prometheusUrl is set, "
    "whether they are scraped (their PodMonitor, the targets of Prometheus) and have the labels of control.prometheusMatchLabels",
    "OutOfDate": "how often the replicas are scraped (every 15 s by their PodMonitor), whether Prometheus is behind, as one that gets its series from "
    "another may be, and the clocks of both",
}
SILENT: Final = frozenset({OUTAGE, *_WHERE})
"""Reasons that say that nobody knows how loaded the replicas are."""
OF_REPLICAS: Final = frozenset({"Missing", "OutOfDate"})
"""Those of them that are about replicas, where whoever knows of them does answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    open: bool
    """Whether numbers may be decided from these signals."""
    missing: int
    """Ready replicas that do not say how many requests they have. They count as idle where more is asked for, and as full where something is
    to be taken away."""
    told: Told

    @property
    def retunes(self) -> bool:
        """Whether so much is known that settings may be judged by it."""
        return self.told.status == "True"


def gate_of(signals: Signals, law: Law) -> Gate:
    missing = signals.silent
    if not signals.reachable:
        return _closed(missing, "PrometheusUnreachable", "the source of metrics does not answer")
    if signals.coverage < law.coverage_least:
        return _silent(signals, law)
    if not missing:
        return _FRESH
    said = f"{missing} of {signals.live} ready replicas do not say how many requests they have; they count as full before anything is taken away"
    if signals.live - missing < law.coverage_least * signals.live:
        said = f"{said}, more are asked for by what else is said, and nothing is retuned"
        return Gate(open=True, missing=missing, told=_told("False", "Missing", said))
    return Gate(open=True, missing=missing, told=_told("True", "Fresh", said))


def lasting(told: Told, since: float, now: float, law: Law) -> Told:
    """The condition for metrics that have been missing since then. Its message changes once more, when that has lasted for long: a message
    with a duration in it would be a write at each look."""
    message = f"since {minute(since)} {told.message}"
    if now - since < law.outage_s:
        return replace(told, message=message)
    return replace(told, reason=OUTAGE, message=f"{message}; look at {_WHERE[told.reason]}")


def lasting_since(message: str) -> float | None:
    """Since when metrics are missing by a message that `lasting` wrote; None where it is no such message.

    The status is the one place that is written in an outage: to keep the time in the record as well would be a second write for each
    deployment of the fleet, at its begin and at its end, and the condition's own time is of when it was told, a minute later.
    """
    said = message.removeprefix("since ").split(" ", 3)
    try:
        return datetime.strptime(" ".join(said[:3]), MINUTE).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _silent(signals: Signals, law: Law) -> Gate:
    spoke, other = len(signals.replicas), signals.late + signals.ahead
    when = _out_of_date(signals)
    # Nobody finds a slow scrape among pods that are not reached, nor the other way round.
    if other and spoke + other >= law.coverage_least * signals.live:
        return _closed(signals.silent, "OutOfDate", f"{when}, and count as none")
    said = f"{spoke} of {signals.live} ready replicas have metrics of the last minute"
    return _closed(signals.silent, "Missing", f"{said}; {when}" if other else said)


def _out_of_date(signals: Signals) -> str:
    """In words without an age, which would be others at each look."""
    seconds = f"more than {FRESH_S:g} s"
    kinds = (
        (signals.late, f"{seconds} old"),
        (signals.ahead, f"{seconds} ahead of the operator's clock"),
    )
    said = [f"of {count} of {signals.live} ready replicas are {how}" for count, how in kinds if count]
    return f"the newest samples {' and those '.join(said)}"


def _closed(missing: int, reason: str, said: str) -> Gate:
    message = f"{said}; the number of replicas is held and nothing is retuned"
    return Gate(open=False, missing=missing, told=_told("False", reason, message))


def _told(status: Literal["True", "False"], reason: str, message: str) -> Told:
    return Told(type=names.METRICS, status=status, reason=reason, message=message)


FRESH: Final = _told("True", "Fresh", "all ready replicas have fresh metrics")
_FRESH: Final = Gate(open=True, missing=0, told=FRESH)
"""Made once, as it is what nearly every deployment gets at nearly every tick."""
