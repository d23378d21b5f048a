"""Warnings of engines that serve although something is not as the plan counts on. They are told in the set's status, and once as an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.status import SetStatus
from plimsoll.facts.report import Report
from plimsoll.facts.serving import PodSeen, SetSeen, Stage


def warning_of(seen: SetSeen | None, reports: Mapping[str, Report], before: str | None) -> str | None:
    """The warning of the set's first pod that warns, with how many others do. While a pod that serves has not been asked yet, as when the
    operator has just started, the warning stays as it was."""
    there = () if seen is None else sorted(seen.pods, key=lambda pod: pod.name)
    warned = [(pod.name, one) for pod in there if pod.uid in reports for one in reports[pod.uid].warnings]
    if warned:
        name, first = warned[0]
        others = len({other for other, _ in warned}) - 1
        return f"{name}{f' and {others} more' if others else ''}: {first}"
    unheard = any(pod.uid not in reports and _will_tell(pod) for pod in there)
    return before if unheard else None


def _will_tell(pod: PodSeen) -> bool:
    return pod.rank == 0 and pod.stage is Stage.READY and pod.runtime_port is not None


def newly_warned(before: Sequence[SetStatus], after: Sequence[SetStatus]) -> tuple[str, ...]:
    """Warnings of sets that had none. Where a set had one already, a change of its text is no news."""
    known = {one.name for one in before if one.warning}
    return tuple(one.warning for one in after if one.warning and one.name not in known)


def are_told(reports: Mapping[str, Report], sets: Sequence[SetStatus]) -> bool:
    """Whether the status shows warnings exactly where engines have some."""
    return any(one.warnings for one in reports.values()) == any(one.warning for one in sets)
