"""What engines find to be other than the plan counts on and serve with all the same: told beside the set, and as an event once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.api.v1alpha1.status import SetStatus
from plimsoll.facts.report import Report
from plimsoll.facts.serving import PodSeen, SetSeen, Stage


def warning_of(seen: SetSeen | None, reports: Mapping[str, Report], before: str | None) -> str | None:
    """Of the set's first pod that warns, with how many others do. While one that serves has not been heard, as when an operator
    has just started, what was told before stays so."""
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
    """Of sets of which nothing was told yet; that another pod is the first one now is no news."""
    known = {one.name for one in before if one.warning}
    return tuple(one.warning for one in after if one.warning and one.name not in known)


def are_told(reports: Mapping[str, Report], sets: Sequence[SetStatus]) -> bool:
    """Whether what engines warn of stands in the status."""
    return any(one.warnings for one in reports.values()) == any(one.warning for one in sets)
