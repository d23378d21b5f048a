"""May anything be decided from these signals? Missing is never zero, and never lets a replica go.

An idle deployment whose pods answer is load 0, which is data. Silence is not.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll import names
from plimsoll.control.decision import Told
from plimsoll.control.law import Law
from plimsoll.control.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    open: bool
    """Whether numbers may be decided from these signals."""
    missing: int
    """Ready replicas that do not say how many requests they have: idle when more is asked for, full when something is taken away."""
    told: Told


def gate_of(signals: Signals, law: Law, outage_s: float = 0.0) -> Gate:
    missing = signals.silent
    if not signals.reachable:
        return _closed(
            missing, "PrometheusUnreachable", "the source of metrics does not answer", outage_s, law
        )
    if signals.coverage < law.coverage_least:
        said = f"{len(signals.replicas)} of {signals.live} ready replicas have metrics of the last minute"
        return _closed(missing, "Missing", said, outage_s, law)
    if missing:
        told = _told(
            "True",
            "Fresh",
            f"{missing} of {signals.live} ready replicas do not say how many requests they have; they count as full "
            "before anything is taken away",
        )
    else:
        told = _told("True", "Fresh", "all ready replicas have fresh metrics")
    return Gate(open=True, missing=missing, told=told)


def _closed(missing: int, reason: str, said: str, outage_s: float, law: Law) -> Gate:
    message = f"{said}; the number of replicas is held and nothing is retuned"
    if outage_s >= law.outage_s:
        message += f", for {outage_s / 60:.0f} minutes now: check the scraping of the pods"
    return Gate(open=False, missing=missing, told=_told("False", reason, message))


def _told(status: str, reason: str, message: str) -> Told:
    return Told(
        type=names.METRICS, status="True" if status == "True" else "False", reason=reason, message=message
    )
