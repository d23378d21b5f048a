"""Replicas on nodes that are to be left, since they are cordoned or taken away: one more comes first, then theirs may go.

What a drain may take is told by the PodDisruptionBudget: all pods that are wanted stay, so that an eviction is let through
once one more serves. Where no further replica may come first, or it does not come to serve, as many may go without it as
may be missing, and further ones once those that came for them serve, or are late: a node must be possible to drain, and
whoever cordons all nodes at once must not end all replicas at once. Nothing is remembered: it ends when no pod is on such
a node any more.
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
_ASIDE: Final = frozenset({"Draining", "Canary"})
"""While there are such sets another counts each set's replicas, and one more would be taken for one that moved."""

_OWN_WORDS: Final = frozenset({"RolledOut", "Moving"})
"""What else is told of a rollout is what a person waits for, or must act on; that a pod leaves hides none of it."""


def leave(rollout: Rollout, serving: Serving, rules: Rules, now: float) -> Rollout:
    """The rollout with one replica more, where one is to leave; or with the number of pods that must stay at least."""
    found = next(_leaving(rollout, serving), None)
    if found is None:
        return rollout
    target, seen, pod = found
    late = any(_late(one, rules, now) for one in seen.pods if not one.leaves) or _refused(seen) > 0
    moves = rollout.reason == "RollingOut"
    if moves and not any(_lost(each, rules, now) for each in serving.sets):
        return rollout  # Replicas move anyway, and none to such a node.
    aside = moves or any(one.replicas and one.state in _ASIDE for one in rollout.targets)
    came = any(one.beyond for one in rollout.targets)
    if not (came or aside) and (seen.replicas > target.replicas or (rules.surge and not late)):
        came = True
        targets = tuple(
            replace(one, replicas=one.replicas + 1, beyond=1) if one is target else one
            for one in rollout.targets
        )
        rollout = replace(rollout, targets=targets)
    ends = (_end(one, rules) - now for each in serving.sets for one in each.pods if one.stage not in _ENOUGH)
    again = [rollout.look_again_seconds, *(left for left in ends if left > 0)]
    rollout = replace(
        rollout, look_again_seconds=min((one for one in again if one is not None), default=None)
    )
    where = f"{pod.name} leaves {pod.leaves}"
    if came and not late:
        return _told(rollout, f"{where}: one more replica comes before it goes")
    stay = _stay(rollout, serving, rules, now, seen.pods_per_replica)
    if late:
        why = "one more does not come to serve"
    elif aside:
        why = "no further replica comes while another set is beside"
    else:
        why = "replicas are replaced" if rules.replaces else "there is no room for one more before"
    ready = sum(one.stage is Stage.READY for each in serving.sets for one in each.pods)
    may = f"it may go first, since {why}" if stay < ready else "it may go once those serve that start"
    return _told(replace(rollout, stay=stay), f"{where}: {may}")


def _told(rollout: Rollout, message: str) -> Rollout:
    if rollout.reason not in _OWN_WORDS:
        return rollout
    return replace(rollout, reason="Moving", message=message)


def _leaving(rollout: Rollout, serving: Serving) -> Iterator[tuple[Target, SetSeen, PodSeen]]:
    for target in rollout.targets:
        seen = serving.set_named(target.name)
        if seen is None or not target.replicas or target.state == "Failed":
            continue
        # Whoever does not serve may go at any time.
        going = [pod for pod in seen.pods if pod.leaves and pod.stage is Stage.READY]
        if going:
            yield target, seen, min(going, key=lambda pod: pod.name)


def _stay(rollout: Rollout, serving: Serving, rules: Rules, now: float, each: int) -> int:
    """Pods that are wanted and may still serve, but for those that may be missing; and none that stays where it is goes."""
    whole = 0
    for target in rollout.targets:
        seen = serving.set_named(target.name)
        if target.state == "Failed":
            continue
        wanted, come = target.replicas - target.beyond, target.replicas
        if seen is None:
            whole += wanted * each
        else:
            pods = seen.pods_per_replica
            whole += max(0, min(wanted * pods, come * pods - _lost(seen, rules, now)))
    elsewhere = sum(one.stage is Stage.READY and not one.leaves for seen in serving.sets for one in seen.pods)
    return max(elsewhere, whole - rules.step * each)


def _lost(seen: SetSeen, rules: Rules, now: float) -> int:
    """Pods that nobody waits for any more."""
    return sum(_late(pod, rules, now) for pod in seen.pods) + _refused(seen)


def _refused(seen: SetSeen) -> int:
    """Pods that the API server lets nobody make: a quota is as full as nodes are."""
    return seen.missing if seen.refused else 0


def _late(pod: PodSeen, rules: Rules, now: float) -> bool:
    return pod.stage not in _ENOUGH and _end(pod, rules) <= now


def _end(pod: PodSeen, rules: Rules) -> float:
    """Until when it is waited for."""
    return pod.created + (PLACE_SECONDS if pod.stage in _NOWHERE else PLACE_SECONDS + rules.deadline_seconds)
