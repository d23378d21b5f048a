"""Everything that a turn knows of a deployment when it makes its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.api.problems import Problem
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.features import Adapters
from plimsoll.api.v1alpha1.status import RampStatus
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.decision import Told
from plimsoll.control.record import Record
from plimsoll.control.rollout import Rollout
from plimsoll.facts.report import Report
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.planning.plan import Plan, PlanSet
from plimsoll.status.pod_words import PodWords
from plimsoll.status.refusals import refusal_words

NEWS_SECONDS: Final = 600.0
"""How long the end of a pod may be why another one, made in its place, does not serve yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something other than the plan that keeps a turn from completing its work. Its message is told as it is."""

    reason: str
    """A reason of condition Stalled where `stalled`, else of Reconciling."""
    message: str
    stalled: bool = False
    """Whether it stays until a person acts; else only condition Reconciling tells of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    deployment: LLMDeployment
    plan: Plan | None
    """None before the first one."""
    rollout: Rollout | None
    """None where there is nothing to run."""
    serving: Serving = field(default_factory=Serving)
    now: float = 0.0
    """When that was seen."""
    entries: Mapping[str, PlanSet] = field(default_factory=dict)
    """The plan's entry of each set by the set's name, also of older sets that are not gone yet."""
    troubles: tuple[Trouble, ...] = ()
    spared: frozenset[str] = frozenset()
    """Labels of sets that nobody ends, as nobody can read what they are."""
    unserved: tuple[Problem, ...] = ()
    """What was asked for and cannot be made, mostly since the cluster does not serve its kind."""
    unsaid: tuple[str, ...] = ()
    """What was decided but this version of the engine has no flag for, each with the reason."""
    endpoint: str | None = None
    """Where the API answers inside the cluster."""
    model_names: tuple[str, ...] = ()
    safe_retry: str = ""
    """What was lowered below the plan after a start failed for memory; empty where nothing was."""
    reports: Mapping[str, Report] = field(default_factory=dict)
    """What supervisors report of their engines, by the pod's uid."""
    adapters: Adapters | None = None
    """As declared, presets merged in."""
    config_map: str | None = None
    image: str | None = None
    control: Record | None = None
    """What the control loop decided and remembers."""
    declared: Workload | None = None
    """The workload that plans are made for: as declared, presets and defaults merged in."""
    live: tuple[Told, ...] | None = None
    """Conditions that the control loop decides; None: it has not looked yet."""
    awake: str = ""
    """Why it does not sleep, where it may and does not, as the control loop says."""
    ramp: RampStatus | None = None
    """What became of a ramp that was handed in since the last turn."""
    better: Told | None = None
    """The condition that says what to declare, where another plan would follow from the traffic that is seen."""

    @property
    def wanted(self) -> int:
        """Replicas that should serve now."""
        return self.plan.replicas_wanted if self.plan is not None else 0

    @property
    def lead(self) -> tuple[PlanSet, SetSeen | None] | None:
        """The plan's first set, and what is seen of it."""
        if self.plan is None or not self.plan.sets:
            return None
        chosen = self.plan.sets[0]
        name = next((name for name, entry in self.entries.items() if entry.digest == chosen.digest), "")
        return chosen, self.serving.set_named(name)

    @property
    def on_plan(self) -> int:
        """Replicas that serve, of the plan's sets alone. Those that a retune has beyond the wanted number are not counted."""
        if self.rollout is None:
            return 0
        current = {target.name for target in self.rollout.targets if target.planned}
        ready = sum(seen.ready for seen in self.serving.sets if seen.name in current)
        beyond = any(target.beyond for target in self.rollout.targets)
        return min(ready, self.wanted) if beyond else ready

    @property
    def counted(self) -> int:
        """The replicas that `kubectl get` shows as ready: those of the plan, and after a rollback those that serve in their place."""
        if self.rollout is not None and self.rollout.reason == "RolledBack":
            return min(self.ready, self.wanted)
        return self.on_plan

    @property
    def ready(self) -> int:
        """Replicas that answer, of all sets."""
        return sum(seen.ready for seen in self.serving.sets)

    @property
    def pods(self) -> tuple[PodSeen, ...]:
        return tuple(pod for seen in self.serving.sets for pod in seen.pods if pod.stage is not Stage.LEAVING)

    @property
    def unserving(self) -> tuple[PodSeen, ...]:
        """Pods of replicas that do not answer; and after them those in whose place they were made, for as long as these may tell why."""
        there = tuple(
            pod
            for seen in self.serving.sets
            for pod in seen.pods
            if pod.stage is not Stage.LEAVING and not seen.answers(pod)
        )
        ended = (pod for seen in self.serving.sets for pod in seen.ended)
        return (*there, *(pod for pod in ended if self.now - pod.since <= NEWS_SECONDS))

    @property
    def refused(self) -> tuple[PodWords, ...]:
        """Why pods of sets that are not draining cannot be made, one for each set."""
        draining = {
            target.name
            for target in (self.rollout.targets if self.rollout is not None else ())
            if target.state == "Draining"
        }
        return tuple(
            words
            for seen in self.serving.sets
            if seen.name not in draining and (words := refusal_words(seen)) is not None
        )

    @property
    def paused(self) -> bool:
        return self.deployment.spec.paused is True
