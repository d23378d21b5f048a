"""Replicas on nodes that are to be left, since they are cordoned or taken away: one more comes first, then theirs may go.

What a drain may take is told by the PodDisruptionBudget: all pods that are wanted stay, so that an eviction is let through
once one more serves. Where no further replica finds devices, or it does not come to serve, the pods on such nodes may go
without it, as a node must be possible to drain. Nothing is remembered: it ends when no pod is on such a node any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from plimsoll.control.rollout.rules import Rules
from plimsoll.control.rollout.targets import Rollout, Target
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage

PLACE_SECONDS: Final = 300.0
"""A cluster autoscaler makes a node in one to three minutes; for longer a drain is not held up by a pod without one."""
_NOWHERE: Final = frozenset({Stage.UNSCHEDULED, Stage.GATED})
_ENOUGH: Final = frozenset({Stage.READY, Stage.LEAVING})


def leave(rollout: Rollout, serving: Serving, rules: Rules, now: float) -> Rollout:
    """The rollout with one replica more, where one is to leave; or with the number of pods that must stay at least."""
    if rollout.reason == "RollingOut":
        return rollout  # Replicas move anyway, and none to such a node.
    found = next(_leaving(rollout, serving), None)
    if found is None:
        return rollout
    target, seen, pod = found
    under_way = seen.replicas > target.replicas
    ends = [_end(one, rules) - now for one in seen.pods if one.stage not in _ENOUGH and not one.leaves]
    late = any(left <= 0 for left in ends)
    where = f"{pod.name} leaves {pod.leaves}"
    again = [rollout.look_again_seconds, *(left for left in ends if left > 0)]
    moved = replace(
        rollout,
        reason="Moving",
        look_again_seconds=min((one for one in again if one is not None), default=None),
    )
    if under_way or (rules.surge and not late):
        targets = tuple(
            replace(one, replicas=one.replicas + 1, beyond=1) if one is target else one
            for one in rollout.targets
        )
        moved = replace(moved, targets=targets)
        if not late:
            return replace(moved, message=f"{where}: one more replica comes before it goes")
    stay = sum(one.stage is Stage.READY and not one.leaves for seen in serving.sets for one in seen.pods)
    why = "one more does not come to serve" if late else "there is no room for one more before"
    return replace(moved, stay=stay, message=f"{where}: it may go at once, since {why}")


def _leaving(rollout: Rollout, serving: Serving) -> Iterator[tuple[Target, SetSeen, PodSeen]]:
    for target in rollout.targets:
        seen = serving.set_named(target.name)
        if seen is None or not target.replicas or target.state in ("Draining", "Failed"):
            continue
        # Whoever does not serve may go at any time.
        going = [pod for pod in seen.pods if pod.leaves and pod.stage is Stage.READY]
        if going:
            yield target, seen, min(going, key=lambda pod: pod.name)


def _end(pod: PodSeen, rules: Rules) -> float:
    """Until when it is waited for."""
    return pod.created + (PLACE_SECONDS if pod.stage in _NOWHERE else PLACE_SECONDS + rules.deadline_seconds)
