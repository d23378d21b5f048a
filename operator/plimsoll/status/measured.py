"""What engines report of themselves, in the fields of the status: how right the predicted cache was, and how far a start is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.api.v1alpha1.status import Accuracy, Progress
from plimsoll.facts.report import Report
from plimsoll.facts.serving import Serving, SetSeen, Stage
from plimsoll.planning.plan import PlanSet

LONGEST_LEFT: Final = 7 * 24 * 3600
ROUNDED_AWAY: Final = 0.05
"""Errors below this are zero with one digit."""


def accuracy_of(chosen: PlanSet, seen: SetSeen | None, reports: Mapping[str, Report]) -> Accuracy | None:
    """The accuracy for the replica with the smallest cache, as that one runs out first. None where no engine has reported its cache."""
    capacity = chosen.ledger.capacity
    if seen is None or capacity is None:
        return None
    predicted = int(capacity.tokens.mid)
    told = [
        tokens
        for pod in seen.pods
        if (report := reports.get(pod.uid)) is not None and report.serves
        if (tokens := _tokens(report, predicted, capacity.blocks.mid * capacity.block_size)) is not None
    ]
    if not told or predicted <= 0:
        return None
    measured = min(told)
    error = 100 * (predicted - measured) / measured
    return Accuracy(
        kv_tokens_predicted=predicted, kv_tokens_measured=measured, error_percent=f"{_no_minus(error):.1f}"
    )


def _tokens(report: Report, predicted: int, in_blocks: float) -> int | None:
    """Tokens that a cache holds: as the engine reports them, else from its blocks in proportion to the predicted blocks."""
    if report.kv_tokens is not None:
        return report.kv_tokens
    if report.blocks is None or report.block_size is None or in_blocks <= 0:
        return None
    return round(predicted * report.blocks * report.block_size / in_blocks)


def _no_minus(error: float) -> float:
    """The error in percent, which is not told as -0.0 where it is rounded to nothing."""
    return 0.0 if abs(error) < ROUNDED_AWAY else error


def progress_of(serving: Serving, reports: Mapping[str, Report]) -> Progress | None:
    """The progress of the start that is furthest from its end; one that fetches has further to go than one that loads. None where no
    replica starts."""
    starting = [
        report
        for seen in serving.sets
        for pod in seen.pods
        if pod.stage is Stage.LOADING and (report := reports.get(pod.uid)) is not None and not report.serves
    ]
    if not starting:
        return None
    slowest = min(starting, key=_way)
    fetching = slowest.fetching
    return Progress(
        step=slowest.phase or slowest.state,
        bytes_done=None if fetching is None else fetching.done,
        bytes_total=None if fetching is None else fetching.total,
        bytes_per_second=None if fetching is None else fetching.rate,
        seconds_left=_left(slowest),
    )


_STATES: Final = ("preflight", "fetching", "starting")


def _way(report: Report) -> tuple[int, float, str]:
    """Sorts reports by how far their start has come."""
    place = _STATES.index(report.state) if report.state in _STATES else len(_STATES)
    fetching = report.fetching
    share = 0.0 if fetching is None or fetching.total is None else fetching.done / fetching.total
    return place, share, report.phase


def _left(report: Report) -> int | None:
    fetching = report.fetching
    if fetching is None or fetching.total is None or fetching.rate is None:
        return None
    return min(LONGEST_LEFT, max(0, fetching.total - fetching.done) // fetching.rate)
