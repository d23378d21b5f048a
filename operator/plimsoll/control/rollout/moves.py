"""The next numbers of replicas of each set, from those that are seen. Called again after each change, it ends at the plan.

Nothing is remembered between calls: how far a rollout is stands in the sets themselves, since when in their pods. So a
crash between two writes, or a change of mind on the way, only gives this function another start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from plimsoll.control.rollout.failing import failure, look_again, proven
from plimsoll.control.rollout.groups import keeping, leaders, let_go, numbers, still_serving
from plimsoll.control.rollout.leaving import leave
from plimsoll.control.rollout.rules import PLACE_SECONDS, Rules
from plimsoll.control.rollout.targets import First, Rollout, State, Target, Wanted
from plimsoll.facts.serving import NOWHERE, Serving, SetSeen, Stage
from plimsoll.facts.unplaced import Lack, lack_of

ASKED: Final = First(
    why="spec.rollout.strategy is surge, so no replica that serves goes for it",
    unless="spec.rollout.strategy: replace",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What every move looks at."""

    wanted: Sequence[Wanted]
    serving: Serving
    old: Sequence[SetSeen]
    """Sets that are not in the plan, but not gone either."""
    failures: Mapping[str, str]
    """Why sets of the plan will not serve."""
    rules: Rules
    now: float

    @property
    def total(self) -> int:
        return sum(one.replicas for one in self.wanted)

    @property
    def new(self) -> tuple[SetSeen, ...]:
        """Sets of the plan that exist."""
        found = (self.serving.set_named(one.name) for one in self.wanted)
        return tuple(seen for seen in found if seen is not None)

    @property
    def ready(self) -> int:
        """Replicas that serve the plan, up to the number that it wants of each set."""
        return sum(min(one.replicas, _ready(self.serving, one.name)) for one in self.wanted)

    @property
    def first_failure(self) -> str:
        return next(f"{name}: {why}" for name, why in self.failures.items())


def move(wanted: Sequence[Wanted], serving: Serving, rules: Rules, now: float) -> Rollout:
    moved = leave(_moved(wanted, serving, rules, now), serving, rules, now)
    return _with_groups(_with_those_before(moved, wanted, serving, rules, now), serving, now)


def _moved(wanted: Sequence[Wanted], serving: Serving, rules: Rules, now: float) -> Rollout:
    ours = {one.name for one in wanted}
    others = [seen for seen in serving.sets if seen.name not in ours]
    old = [seen for seen in others if seen.lives]
    # Old sets without replicas are kept until the plan has served, as there is nothing else to go back to. Those that never served are
    # nothing to go back to: one more of them for each edit of what nobody can start would be kept.
    served = [seen for seen in others if not (seen.failed or seen.never_served)]
    spent = [seen for seen in served if seen not in old]
    unproven = None
    if old or spent:
        serving, unproven = proven(serving, lambda seen, _: seen.name in ours, rules.proven_seconds, now)
    failures = {
        one.name: why
        for one in wanted
        if (seen := serving.set_named(one.name)) is not None
        and (why := failure(seen, now, rules.deadline_seconds)) is not None
    }
    scene = _Scene(
        wanted=wanted,
        serving=serving,
        old=old,
        failures=failures,
        rules=rules,
        now=now,
    )
    # Where the plan's set was given up, a deployment without replicas wakes with the set that served before.
    if scene.ready or not (scene.total or failures) or not rules.automatic:
        spent = []
    refuge = [seen for seen in served if seen in old] or spent
    if failures and refuge and rules.automatic:
        return _back(scene, refuge)
    rollout = _moving(scene) if scene.old else _settling(scene)
    if spent and rollout.reason == "RolledOut":
        told = f"0 of {scene.total} replicas are on the new set, 0 on the old"
        rollout = replace(rollout, reason="RollingOut", message=told)
    return replace(
        rollout,
        targets=(*rollout.targets, *(Target(name=one.name, replicas=0, state="Draining") for one in spent)),
        look_again_seconds=_soonest(rollout.look_again_seconds, unproven),
    )


def _settling(scene: _Scene) -> Rollout:
    """Only the sets of the plan are left: they get their numbers at once."""
    targets = tuple(
        _target(one.name, one.replicas, scene.serving, scene.failures.get(one.name), planned=True)
        for one in scene.wanted
    )
    serve = f"{scene.ready} of {scene.total} replicas serve the plan"
    return Rollout(
        targets=targets,
        reason="DeadlineExceeded" if scene.failures else "RolledOut",
        message=scene.first_failure if scene.failures else serve,
        settled=scene.ready == scene.total,
        look_again_seconds=_late(scene),
    )


def _moving(scene: _Scene) -> Rollout:
    rules, total = scene.rules, scene.total
    existing = sum(seen.replicas for seen in scene.new)
    old = sum(seen.replicas for seen in scene.old)
    cap, again = _canary_cap(scene)
    # A surge that is under way goes on, as its own replica may have taken the room that allows a surge. One that finds no room ends,
    # unless the user asks for a surge, or it would be waited for for ever.
    nowhere, until = _without_room(scene)
    surge = max(0, max(rules.surge, existing + old - total) - nowhere)
    if nowhere and existing - nowhere <= scene.ready and scene.ready + old <= total:
        # No other is on its way, and none that serves may go otherwise: what is left of a larger surge would find no room either.
        surge = 0
    if rules.hold or scene.failures:
        new = min(existing, total)
        left = min(old, total - scene.ready)
    else:
        missing = rules.step if surge == 0 else 0
        left = min(old, max(0, total - min(cap, scene.ready + missing)))
        new = max(min(cap, total + surge - max(left, _living(scene.old))), min(existing, cap))
    stands = f"{scene.ready} of {total} replicas are on the new set, {left} on the old"
    if rules.hold:
        reason, message = "Held", f"{stands}; spec.rollout.hold is true"
    elif scene.failures:
        reason, message = "DeadlineExceeded", scene.first_failure
    elif cap < total:
        reason, message = "Canary", f"{scene.ready} of {cap} canary replicas serve, {left} on the old set"
    else:
        reason, message = "RollingOut", stands
    return Rollout(
        targets=(*_spread_new(scene, new, canary=cap < total), *_spread_old(scene.old, left)),
        reason=reason,
        message=message,
        first=ASKED if rules.surge and not rules.by_room and reason in ("Canary", "RollingOut") else None,
        look_again_seconds=_soonest(again, until, _late(scene)),
    )


def _back(scene: _Scene, refuge: Sequence[SetSeen]) -> Rollout:
    """A new set failed: the old ones, which served, take the whole number again."""
    lead, *others = sorted(refuge, key=lambda seen: (-seen.ready, seen.created))
    left, shares = scene.total, []
    for seen in others:
        beyond = min(seen.replicas, max(0, left - lead.replicas))
        shares.append((seen, max(beyond, min(seen.ready, max(0, left - lead.ready)))))
        left -= shares[-1][1]
    return Rollout(
        targets=(
            _target(lead.name, left, scene.serving, None),
            *(_target(seen.name, share, scene.serving, None) for seen, share in shares),
            # Kept without replicas: its revision remembers that it failed.
            *(
                Target(name=name, replicas=0, state="Failed", reason=why)
                for name, why in scene.failures.items()
            ),
        ),
        reason="RolledBack",
        message=f"{scene.first_failure}; {lead.name} {'serves again' if lead.ready else 'comes back'}",
        failed=tuple(
            (seen.name, scene.failures[seen.name]) for seen in scene.new if _newly_failed(scene, seen)
        ),
    )


def _newly_failed(scene: _Scene, seen: SetSeen) -> bool:
    return seen.name in scene.failures and not seen.failed


def _canary_cap(scene: _Scene) -> tuple[int, float | None]:
    """How many replicas the canary's steps allow on the new sets now, and in how many seconds the next step is reached by time alone."""
    since = [pod.since for seen in scene.new for pod in seen.pods if pod.stage is Stage.READY]
    for percent in scene.rules.percents:
        step = min(scene.total, ceil(scene.total * percent / 100))
        if scene.ready < step or not since:
            return step, None
        held = scene.now - max(since)
        if held < scene.rules.hold_seconds and scene.ready == step < scene.total:
            return step, scene.rules.hold_seconds - held
    return scene.total, None


def _spread_new(scene: _Scene, count: int, *, canary: bool) -> list[Target]:
    """The first set of the plan, which is the cheapest, fills first."""
    targets, left = [], count
    for one in scene.wanted:
        given = min(one.replicas, left)
        left -= given
        target = _target(one.name, given, scene.serving, scene.failures.get(one.name), planned=True)
        targets.append(replace(target, state="Canary") if canary and target.state != "Failed" else target)
    return targets


def _spread_old(old: Sequence[SetSeen], count: int) -> list[Target]:
    """Which replicas of the old sets stay: first those that serve, in the sets that serve most, then the others."""
    ordered = sorted(old, key=lambda seen: (bool(seen.failed), -seen.ready, seen.created))
    given, left = dict.fromkeys((seen.name for seen in ordered), 0), count
    for serving in (True, False):
        for seen in ordered:
            most = min(seen.ready, seen.replicas) if serving else seen.replicas
            more = min(most - given[seen.name], left)
            given[seen.name] += more
            left -= more
    return [
        Target(
            name=seen.name,
            replicas=given[seen.name],
            state="Failed" if seen.failed else "Draining",
            reason=seen.failed,
        )
        for seen in ordered
    ]


def _without_room(scene: _Scene) -> tuple[int, float | None]:
    """How many new replicas find no room, so that old ones must go for them; and in how many seconds there may be more of these.

    Where the user asks for a surge, room is waited for; where they ask to replace, none is. Where it is left to the room in the fleet,
    that room was misjudged if a quota refuses pods, or if pods have waited for too long for what others hold. No old one goes for a pod
    that lacks something else: it would find no node then either.
    """
    rules, found, waits = scene.rules, 0, list[float]()
    for seen in scene.new:
        placed = [pod for pod in seen.pods if pod.stage not in NOWHERE | {Stage.LEAVING}]
        # Of a group that has only some of its pods nothing serves.
        pods = Counter(pod.group for pod in placed)
        there = (
            len(placed)
            if seen.pods_per_replica == 1
            else sum(n >= seen.pods_per_replica for n in pods.values())
        )
        lacking = max(0, seen.replicas - there)
        if rules.by_room:
            crowded = (pod for pod in seen.pods if lack_of(pod) is Lack.ROOM)
            left = [pod.created + PLACE_SECONDS - scene.now for pod in crowded]
            waits += [one for one in left if one > 0]
            # A refusal is still reported for a while after it has passed, so only pods that are missing count as refused.
            lacking = min(lacking, sum(one <= 0 for one in left) + (seen.missing if seen.refused else 0))
        if rules.replaces or rules.by_room:
            found += lacking
    return found, min(waits, default=None)


def _living(old: Sequence[SetSeen]) -> int:
    """Replicas of the old sets that are still there, until they are told to go: only then does a new one come in their place."""
    there = 0
    for seen in old:
        staying = sum(pod.stage is not Stage.LEAVING for pod in seen.pods)
        there += max(seen.replicas, -(-staying // seen.pods_per_replica))
    return there


def _late(scene: _Scene) -> float | None:
    """Seconds until a start would be late."""
    deadline = scene.rules.deadline_seconds
    return _soonest(*(look_again(seen, scene.now, deadline) for seen in scene.new))


def _soonest(*times: float | None) -> float | None:
    """The first of the moments that there are."""
    return min((one for one in times if one is not None), default=None)


def _target(
    name: str, replicas: int, serving: Serving, failed: str | None, *, planned: bool = False
) -> Target:
    state: State = "Failed" if failed else "Serving" if _ready(serving, name) >= replicas else "Starting"
    return Target(name=name, replicas=replicas, state=state, reason=failed or "", planned=planned)


def _with_those_before(
    rollout: Rollout, wanted: Sequence[Wanted], serving: Serving, rules: Rules, now: float
) -> Rollout:
    """The rollout with those that do not serve kept where others, which do, would go before them.

    In a set that is being left only where none would serve at all, and for as long as a start may take since the newest set was made: those
    that are to come may find no room beside them.
    """
    there = all(serving.set_named(one.name) for one in wanted)
    newest = max((seen.created for seen in serving.sets), default=now) if there else now
    left = newest + rules.deadline_seconds - now
    found = [(target, serving.set_named(target.name)) for target in rollout.targets]
    serves = any(seen is not None and still_serving(seen, target.replicas) for target, seen in found)
    targets = []
    for target, seen in found:
        leaves, asked = target.state in ("Draining", "Failed"), target.replicas
        if seen is not None and not (leaves and (serves or left <= 0)):
            asked = keeping(seen, asked)
        more = asked - target.replicas
        targets.append(replace(target, replicas=asked, beyond=target.beyond + more))
        if more:
            why = "as a LeaderWorkerSet gives up its last ones first and one before them does not serve"
            rollout = replace(
                rollout,
                message=f"{rollout.message}; {target.name} keeps {asked} groups, {why}",
                look_again_seconds=_soonest(rollout.look_again_seconds, left if leaves else None),
            )
    return replace(rollout, targets=tuple(targets))


def _with_groups(rollout: Rollout, serving: Serving, now: float) -> Rollout:
    """The rollout with the numbers of the groups that each set keeps."""
    targets, again = [], [rollout.look_again_seconds]
    for target in rollout.targets:
        seen = serving.set_named(target.name)
        over, left = (frozenset[int](), None) if seen is None else let_go(seen, now)
        groups = numbers(seen, target.replicas, over)
        targets.append(replace(target, groups=groups, let_go=leaders(seen, over)))
        again.append(left)
    return replace(rollout, targets=tuple(targets), look_again_seconds=_soonest(*again))


def _ready(serving: Serving, name: str) -> int:
    seen = serving.set_named(name)
    return 0 if seen is None else seen.ready
