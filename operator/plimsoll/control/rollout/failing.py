"""When a set is given up: its engines die again and again, or none is ready in the time a start may take.

Waiting for a node, a quota or an image is no failure of the set: another set would wait for the same, and what is given up does not come
back by itself. It is one to wait for a volume that is not there, or for a scheduler that nobody runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from plimsoll.facts.serving import NODE_LOST, NOWHERE, PodSeen, Serving, SetSeen, Stage
from plimsoll.facts.unplaced import OWN, Lack, lack_of

RESTARTS: Final = 3
"""Restarts at which a set is given up: the first two ends of an engine may be bad luck, and the third comes a minute later, by the kubelet's
back-off."""
STEADY_SECONDS: Final = 10.0
"""How long an engine that has died before must have been ready to count again."""
NOT_THE_ENGINES: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "RegistryUnavailable",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "SignatureValidationFailed",
        NODE_LOST,
    }
)


def failure(seen: SetSeen, now: float, deadline_seconds: int) -> str | None:
    """Why this set will not serve, in a sentence; None while it serves or may still."""
    if seen.failed:
        return seen.failed
    if seen.ready:
        return None
    for pod in seen.pods:
        # One that has started once more may yet serve; when it ends again its end says why.
        engines = pod.stage is Stage.FAILED and pod.beside is None and pod.reason not in NOT_THE_ENGINES
        # Nor does a leader that the kubelet ended while it waited for its workers say anything of its engine.
        if pod.restarts >= RESTARTS and engines and not (pod.late_s and _waits_for_others(seen, pod)):
            return f"{pod.name} ended {pod.restarts} times{_how(pod)}"
    for pod in seen.pods:
        late = _awaited(pod) and now - _all_there_since(seen, pod) > deadline_seconds
        if late and not _waits_for_others(seen, pod):
            return _late(pod, deadline_seconds)
    return None


def _waits_for_others(seen: SetSeen, pod: PodSeen) -> bool:
    """Whether the engine of a pod of a group cannot go on before another pod of it is there, which waits for what is no failure of the set."""
    if seen.pods_per_replica == 1 or pod.stage not in (Stage.LOADING, Stage.FAILED):
        return False
    members = [one for one in seen.pods if one.group == pod.group and one.stage is not Stage.LEAVING]
    return len(members) < seen.pods_per_replica or any(
        one.stage in NOWHERE | {Stage.PULLING}
        or (one.stage is Stage.FAILED and one.reason in NOT_THE_ENGINES)
        for one in members
    )


def waited_for_since(pod: PodSeen) -> float:
    """Since when a pod that loads, or has no node, has been waited for. One that has served, and only misses its probes, has not been since
    its engine started, which may be days ago."""
    return max(pod.since, pod.unready or 0.0)


def _all_there_since(seen: SetSeen, pod: PodSeen) -> float:
    """Since when a pod has been waited for; of the engines of a group since the last of them began, as none serves before."""
    if seen.pods_per_replica == 1 or pod.stage is not Stage.LOADING:
        return waited_for_since(pod)
    engines = (one for one in seen.pods if one.group == pod.group and one.stage is Stage.LOADING)
    return max(map(waited_for_since, engines))


def _awaited(pod: PodSeen) -> bool:
    """Whether the deadline runs for the pod: it loads, or lacks what is no matter of the fleet."""
    return pod.stage is Stage.LOADING or lack_of(pod) in OWN


def _late(pod: PodSeen, deadline_seconds: int) -> str:
    lack = lack_of(pod)
    if lack is None:
        return f"{pod.name} was not ready within {deadline_seconds} s{_beside(pod)}"
    if lack is Lack.SCHEDULER:
        return f"no scheduler looked at {pod.name} within {deadline_seconds} s: see spec.scheduling.schedulerName"
    return f"{pod.name} had no node within {deadline_seconds} s: {pod.message}"


def steady(serving: Serving, now: float) -> tuple[Serving, float | None]:
    """As `proven`, of engines that have just come back: one that dies again and again is ready in between."""
    return proven(serving, lambda _, pod: pod.restarts > 0, STEADY_SECONDS, now)


def proven(
    serving: Serving, which: Callable[[SetSeen, PodSeen], bool], seconds: float, now: float
) -> tuple[Serving, float | None]:
    """What is seen, with those of these pods that have not been ready for so many seconds taken as loading. And in how many seconds the first
    of them counts as ready; None where there is none."""

    def wait_s(seen: SetSeen, pod: PodSeen) -> float:
        return pod.since + seconds - now if pod.stage is Stage.READY and which(seen, pod) else 0.0

    def shown(seen: SetSeen, pod: PodSeen) -> PodSeen:
        return replace(pod, stage=Stage.LOADING) if wait_s(seen, pod) > 0 else pod

    waits = [left for seen in serving.sets for pod in seen.pods if (left := wait_s(seen, pod)) > 0]
    if not waits:
        return serving, None
    sets = (replace(seen, pods=tuple(shown(seen, pod) for pod in seen.pods)) for seen in serving.sets)
    return replace(serving, sets=tuple(sets)), min(waits)


def look_again(seen: SetSeen, now: float, deadline_seconds: int) -> float | None:
    """Seconds until a pod that is waited for would be late; None where none is, or all are late already."""
    left = [_all_there_since(seen, pod) + deadline_seconds - now for pod in seen.pods if _awaited(pod)]
    coming = [one for one in left if one >= 0]
    return max(1.0, min(coming)) if coming and not seen.ready else None


def _beside(pod: PodSeen) -> str:
    return f", though its engine was: {pod.message or pod.reason}" if pod.held_back else ""


def _how(pod: PodSeen) -> str:
    code = f" with exit code {pod.exit_code}" if pod.exit_code is not None else ""
    if pod.failure is not None:
        return f"{code}, {pod.failure.word}: {pod.failure.message}"
    reason = f", {pod.reason}" if pod.reason else ""
    said = f": {pod.message}" if pod.message else ""
    return f"{code}{reason}{said}"
