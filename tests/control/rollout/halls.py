"""A hall of nodes that take a pod each, a scheduler, a quota, and replicas that move between sets in it, turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from plimsoll.control.rollout import Rollout, Rules, move
from plimsoll.control.rollout.targets import Wanted
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage

TURN = 15.0
START = 60.0
DEADLINE = 600
FULL = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


@dataclass(frozen=True, slots=True)
class Pod:
    set: str
    number: int
    created: float
    stage: Stage = Stage.UNSCHEDULED
    since: float = 0.0
    node: int | None = None
    restarts: int = 0

    @property
    def stays(self) -> bool:
        return self.stage is not Stage.LEAVING


@dataclass
class Hall:
    nodes: int
    wanted: str = "old"
    """The set that is asked for."""
    replicas: int = 3
    strategy: str = ""
    """`surge`, `replace`, or as there is room."""
    rules: Rules = field(default_factory=lambda: Rules(deadline_seconds=DEADLINE))
    quota: int = 100
    """Pods that may be there."""
    broken: frozenset[str] = frozenset({"broken", "worse"})
    """Sets whose engines die."""
    lost: frozenset[str] = frozenset({"unpulled"})
    """Sets whose image is nowhere."""
    cordoned: frozenset[int] = frozenset()
    down: frozenset[int] = frozenset()
    asked: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    served: frozenset[str] = frozenset()
    """Sets that had a ready pod at any time."""
    pods: list[Pod] = field(default_factory=list)
    now: float = 100_000.0
    made: int = 0
    least: int = 10**6
    most: int = 0

    @property
    def up(self) -> tuple[int, ...]:
        taken = {pod.node for pod in self.pods}
        return tuple(n for n in range(self.nodes) if n not in self.cordoned | self.down | taken)

    @property
    def total(self) -> int:
        """A plan asks for no more than the nodes hold."""
        return min(self.replicas, self.nodes - len(self.down))

    @property
    def ready(self) -> int:
        return sum(pod.stage is Stage.READY for pod in self.pods)

    def copy(self) -> Hall:
        return replace(self, asked=dict(self.asked), failed=dict(self.failed), pods=list(self.pods))

    def turn(self) -> Rollout:
        rollout = self.decided()
        for name, why in rollout.failed:
            self.failed[name] = why
        self.asked = {one.name: one.replicas for one in rollout.targets}
        for name in {pod.set for pod in self.pods}:
            mine = [pod for pod in self.pods if pod.set == name and pod.stays]
            mine.sort(
                key=lambda pod: (pod.node is None, pod.stage is not Stage.READY, pod.created), reverse=True
            )
            for pod in mine[: max(0, len(mine) - self.asked.get(name, 0))]:
                self.pods.remove(pod)
                if pod.node is not None:
                    self.pods.append(replace(pod, stage=Stage.LEAVING, since=self.now))
        self.least, self.most = min(self.least, self.ready), max(self.most, sum(self.asked.values()))
        return rollout

    def decided(self) -> Rollout:
        surge = 0 if self.strategy == "replace" else self.rules.surge
        if not self.strategy:
            surge = min(surge, len(self.up))
        rules = replace(
            self.rules, surge=surge, replaces=self.strategy == "replace", by_room=not self.strategy
        )
        return move([Wanted(self.wanted, self.total)], self.seen(), rules, self.now)

    def seen(self) -> Serving:
        return Serving(sets=tuple(self._set(name, count) for name, count in self.asked.items()))

    def _set(self, name: str, count: int) -> SetSeen:
        pods = tuple(self._pod(pod) for pod in self.pods if pod.set == name)
        short = sum(pod.set == name and pod.stays for pod in self.pods) < count
        refused = "exceeded quota" if short and len(self.pods) >= self.quota else ""
        return SetSeen(
            name=name,
            replicas=count,
            failed=self.failed.get(name, ""),
            refused=refused,
            never_served=name not in self.served,
            pods=pods,
        )

    def _pod(self, pod: Pod) -> PodSeen:
        leaves = pod.node in self.cordoned
        return PodSeen(
            name=f"{pod.set}-{pod.number}",
            uid=str(pod.number),
            stage=pod.stage,
            node=None if pod.node is None else f"n{pod.node}",
            created=pod.created,
            since=pod.since,
            restarts=pod.restarts,
            message=FULL if pod.stage is Stage.UNSCHEDULED else "",
            reason=""
            if pod.stage is not Stage.FAILED
            else "ImagePullBackOff"
            if pod.set in self.lost
            else "Error",
            leaves=f"node n{pod.node}, which is cordoned" if leaves else "",
            leaves_since=self.now if leaves else None,
        )

    def pass_time(self) -> None:
        """What leaves is gone, what is asked for is made, what has no node looks for one, what starts gets on."""
        self.now += TURN
        self.pods = [pod for pod in self.pods if pod.stays and pod.node not in self.down]
        for name, count in self.asked.items():
            there = sum(pod.set == name for pod in self.pods)
            for _ in range(min(count - there, self.quota - len(self.pods))):
                self.made += 1
                self.pods.append(Pod(name, self.made, self.now, since=self.now))
        for place, pod in enumerate(self.pods):
            self.pods[place] = self._later(pod)
        self.served |= {pod.set for pod in self.pods if pod.stage is Stage.READY}

    def _later(self, pod: Pod) -> Pod:
        if pod.stage is Stage.UNSCHEDULED and self.up:
            stage = Stage.FAILED if pod.set in self.lost else Stage.LOADING
            return replace(pod, node=self.up[0], stage=stage, since=self.now)
        if pod.set in self.broken and pod.node is not None:
            return replace(pod, stage=Stage.FAILED, restarts=pod.restarts + 1, since=self.now)
        if pod.stage is Stage.LOADING and self.now - pod.since >= START:
            return replace(pod, stage=Stage.READY, since=self.now)
        return pod

    def run(self, turns: int, done: Callable[[Rollout], bool] = lambda _: False) -> Rollout:
        rollout = self.turn()
        for _ in range(turns):
            if done(rollout):
                break
            self.pass_time()
            rollout = self.turn()
        return rollout
