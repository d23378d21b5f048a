"""Replicas on nodes that are to be left, since they are cordoned or taken away: one more comes first, then theirs may go.

What a drain may take is told by the PodDisruptionBudget: all pods that are wanted stay, so that an eviction is let through
once one more serves. Where no further replica may come first, or it does not come to serve, as many may go without it as
may be missing, and further ones once those that came for them serve, or are late: a node must be possible to drain, and
whoever cordons all nodes at once must not end all replicas at once. Nothing is remembered: it ends when no pod is on such
a node any more.

Whether a drain goes on cannot be seen: an eviction that the budget refuses leaves no trace. A node that is only cordoned, for
hours, has no replica kept beside it any longer; one may then go first, should the drain still come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from plimsoll.control.rollout.failing import waited_for_since
from plimsoll.control.rollout.rules import PLACE_SECONDS, Rules
from plimsoll.control.rollout.targets import Rollout, Target
from plimsoll.facts.serving import NOWHERE, PodSeen, Serving, SetSeen, Stage

HELD_SECONDS: Final = 4 * 3600.0
"""How long a cordon is taken for the beginning of a drain. A pool whose nodes are cordoned at once and drained one by one takes hours; but
one more replica for as long as somebody forgets a cordon would cost days of GPUs."""
_ENOUGH: Final = frozenset({Stage.READY, Stage.LEAVING})
_ASIDE: Final = frozenset({"Draining", "Canary"})
"""States of sets beside the plan's. While there is one, something else counts the replicas of each set, and would take one more for one that
it moved."""

_OWN_WORDS: Final = frozenset({"RolledOut", "Moving"})
"""Reasons of a rollout that a leaving pod may take the place of. All others are what a person waits for or must act on."""


def leave(rollout: Rollout, serving: Serving, rules: Rules, now: float) -> Rollout:
    """The rollout with one more replica, where one is on a node that is to be left; or with the number of pods that must stay."""
    going = list(_leaving(rollout, serving, now))
    if not going:
        return rollout
    target, seen, pod = min(going, key=lambda one: _is_left(one[2], now))
    left = _is_left(pod, now)
    late = any(_late(one, rules, now) for one in seen.pods if not one.leaves) or _refused(seen) > 0
    moves = rollout.reason == "RollingOut"
    if moves and not any(_lost(each, rules, now) for each in serving.sets):
        return rollout  # Replicas move anyway, and none to such a node.
    aside = moves or any(one.replicas and one.state in _ASIDE for one in rollout.targets)
    came = any(one.beyond for one in rollout.targets)
    room = seen.replicas > target.replicas or (rules.surge and not late)
    if room and not (came or aside or left):
        came = True
        rollout = _with_one_more(rollout, target)
    rollout = replace(rollout, look_again_seconds=_look_again(rollout, serving, rules, now, pod))
    where = f"{pod.name} leaves {pod.leaves}"
    if came and not late:
        return _told(rollout, f"{where}: one more replica comes before it goes")
    stay = _stay(rollout, serving, rules, now, seen.pods_per_replica)
    why = _why_none_first(rules, left=left, late=late, aside=aside)
    ready = sum(one.stage is Stage.READY for each in serving.sets for one in each.pods)
    may = f"it may go first, since {why}" if stay < ready else "it may go once those serve that start"
    # A cordon that was left alone for hours is no longer told as something under way.
    return _told(replace(rollout, stay=stay), f"{where}: {may}", reason="RolledOut" if left else "Moving")


def _with_one_more(rollout: Rollout, target: Target) -> Rollout:
    targets = tuple(
        replace(one, replicas=one.replicas + 1, beyond=1) if one is target else one for one in rollout.targets
    )
    return replace(rollout, targets=targets)


def _look_again(rollout: Rollout, serving: Serving, rules: Rules, now: float, pod: PodSeen) -> float | None:
    """Seconds until a pod that starts is late, or the leaving one's cordon is taken for a forgotten one."""
    ends = (_end(one, rules) - now for each in serving.sets for one in each.pods if one.stage not in _ENOUGH)
    again = [rollout.look_again_seconds, *(wait for wait in (*ends, _held_for(pod, now)) if wait > 0)]
    return min((one for one in again if one is not None), default=None)


def _why_none_first(rules: Rules, *, left: bool, late: bool, aside: bool) -> str:
    """Why no further replica comes before the leaving one goes, in a clause."""
    if left:
        return f"nobody drained it in the {HELD_SECONDS / 3600:.0f} hours since, for which one more was kept"
    if late:
        return "one more does not come to serve"
    if aside:
        return "no further replica comes while another set is beside"
    return "replicas are replaced" if rules.replaces else "there is no room for one more before"


def _told(rollout: Rollout, message: str, reason: str = "Moving") -> Rollout:
    if rollout.reason not in _OWN_WORDS:
        return rollout
    return replace(rollout, reason=reason, message=message)


def _leaving(rollout: Rollout, serving: Serving, now: float) -> Iterator[tuple[Target, SetSeen, PodSeen]]:
    for target in rollout.targets:
        seen = serving.set_named(target.name)
        if seen is None or not target.replicas or target.state == "Failed":
            continue
        # Pods that do not serve may go at any time.
        going = [pod for pod in seen.pods if pod.leaves and pod.stage is Stage.READY]
        if going:
            yield target, seen, min(going, key=lambda pod: (_is_left(pod, now), pod.name))


def _is_left(pod: PodSeen, now: float) -> bool:
    """Whether its node was cordoned so long ago that nobody seems to be draining it."""
    return pod.leaves_since is not None and _held_for(pod, now) <= 0


def _held_for(pod: PodSeen, now: float) -> float:
    return 0.0 if pod.leaves_since is None else pod.leaves_since + HELD_SECONDS - now


def _stay(rollout: Rollout, serving: Serving, rules: Rules, now: float, each: int) -> int:
    """How many pods evictions must leave: those that are wanted and may still serve, less as many as may be missing at a time; and at least
    those that serve on nodes that stay."""
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
    """How many pods of a set are no longer waited for: they are late, or must not be made."""
    return sum(_late(pod, rules, now) for pod in seen.pods) + _refused(seen)


def _refused(seen: SetSeen) -> int:
    """Pods that the API server lets nobody make: a quota is as full as nodes are."""
    return seen.missing if seen.refused else 0


def _late(pod: PodSeen, rules: Rules, now: float) -> bool:
    return pod.stage not in _ENOUGH and _end(pod, rules) <= now


def _end(pod: PodSeen, rules: Rules) -> float:
    """The moment until which a pod that starts, or that was ready and its engine runs on, is waited for."""
    placed = pod.created + PLACE_SECONDS
    if pod.stage in NOWHERE:
        return placed
    # One that is started again and again is ready in between, so that alone gives it no further time.
    runs_on = pod.stage is Stage.LOADING and waited_for_since(pod) > pod.since
    return max(placed, waited_for_since(pod) if runs_on else 0.0) + rules.deadline_seconds
