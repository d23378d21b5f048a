"""What engines reported of their starts, on its way to the status of their deployment and to what is learned for all deployments.

A start teaches once. One that was over before this process began has most likely taught the process before, so it teaches only
what is not known yet. Reports are read, and lessons kept, elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Final, Protocol

from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.learned import NOTHING, Learned, Residual, merged, paced, taught
from plimsoll.facts.learned_speed import Speed
from plimsoll.facts.report import Report
from plimsoll.facts.serving import PodSeen, Serving
from plimsoll.planning.memory.lessons import Start, lessons
from plimsoll.reconcile.decision import Decision
from plimsoll.reconcile.lessons.as_planned import NotAsPlanned, runs
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision
from plimsoll.status.warned import are_told

LOG: Final = logging.getLogger(__name__)


class Reports(Protocol):
    def look(self, key: str, serving: Serving) -> None: ...
    def of(self, key: str) -> Mapping[str, Report]: ...
    def again(self, key: str) -> None: ...
    def forget(self, key: str) -> None: ...


class _Nobody:
    """Where no engine is asked."""

    def look(self, key: str, serving: Serving) -> None: ...
    def of(self, key: str) -> Mapping[str, Report]:  # noqa: ARG002
        return {}

    def again(self, key: str) -> None: ...
    def forget(self, key: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class Measured:
    reports: Reports = field(default_factory=_Nobody)
    began: float = 0.0
    """When this process did, in seconds since the epoch."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a start has taught something."""
    own: Learned = NOTHING
    """What this cluster has taught."""
    seed: Learned = NOTHING
    """What an admin has brought from other clusters."""
    known: Learned = NOTHING
    """Both together: what plans are made with."""
    kept: Learned = NOTHING
    """What is stored in the cluster, as far as this process knows."""
    _taught: dict[str, dict[str, int]] = field(default_factory=dict)
    """By deployment and uid of a pod: its restarts when it last taught."""
    _rests: set[str] = field(default_factory=set)
    """Deployments whose pods have not changed since this process began."""
    _told: dict[str, tuple[tuple[str, Report], ...]] = field(default_factory=dict)
    """By deployment, the reports that the status tells."""

    def know(self, own: Learned, seed: Learned) -> None:
        self.own, self.seed, self.known = own, seed, merged(own, seed)

    def look(self, key: str, serving: Serving) -> None:
        self.reports.look(key, serving)
        last = max((pod.since for seen in serving.sets for pod in seen.pods), default=0.0)
        if self._before_us(last):
            self._rests.add(key)
        else:
            self._rests.discard(key)

    def news(self, key: str, status: LLMDeploymentStatus) -> bool:
        """Whether engines have reported something that the status does not tell yet."""
        reports = self.reports.of(key)
        if self._told.get(key, ()) == tuple(reports.items()):
            return False
        if key in self._rests and _stands_there(status, reports):
            # The process before has told it. Without this, one that starts would take a whole turn of every deployment.
            self.told(key, reports)
            return False
        return True

    def told(self, key: str, reports: Mapping[str, Report]) -> None:
        """These have reached the status."""
        if reports:
            self._told[key] = tuple(reports.items())
        else:
            self._told.pop(key, None)

    def forget(self, key: str) -> None:
        self.reports.forget(key)
        self._taught.pop(key, None)
        self._told.pop(key, None)
        self._rests.discard(key)

    def learn(self, key: str, seen: Seen, decision: Decision) -> None:
        """Learn from those starts of a deployment that have not taught yet."""
        before, now = self._taught.get(key, {}), {}
        planned = planned_sets(decision)
        reports = self.reports.of(key)
        for set_ in seen.serving.sets:
            for pod in set_.pods:
                report, revision = reports.get(pod.uid), planned.get(set_.name)
                if report is None or not report.serves or revision is None:
                    continue
                now[pod.uid] = pod.restarts
                if before.get(pod.uid) != pod.restarts:
                    self._teach(key, pod, tuple(lessons_of(seen, decision, revision, report)))
        if now:
            self._taught[key] = now
        else:
            self._taught.pop(key, None)

    def take(self, speed: Speed) -> bool:
        """Learn what a ramp taught. Returns whether that, or a later lesson for the same key, is kept by now: only then may the status tell of
        the ramp, as it is not judged again after that."""
        after = paced(self.own, speed)
        if after != self.own:
            self.know(after, self.seed)
            self.changed.set()
        return self.kept.speed(speed.key) == after.speed(speed.key)

    def _before_us(self, moment: float) -> bool:
        """Whether the moment lies before this process began. The API tells whole seconds, so one in the same second does not count."""
        return moment < floor(self.began)

    def _teach(self, key: str, pod: PodSeen, found: tuple[Residual, ...]) -> None:
        if self._before_us(pod.since):
            found = tuple(one for one in found if self.own.find(one.term, one.key) is None)
        if not found:
            return
        self.know(taught(self.own, found), self.seed)
        self.changed.set()
        LOG.info(
            "learned from the start of %s: %s",
            pod.name,
            ", ".join(f"{one.term} {one.bytes / 2**20:+.0f} MiB ({one.key.flags})" for one in found),
            extra={"deployment": key},
        )


def planned_sets(decision: Decision) -> Mapping[str, Revision]:
    """Sets that were made by the plan and the spec of this turn. An older set may run something else, even another model."""
    if decision.rollout is None or decision.frozen or not decision.prune:
        return {}
    sets = [target.name for target in decision.rollout.targets if target.planned]
    return {name: decision.revisions[name] for name in sets if name in decision.revisions}


def _stands_there(status: LLMDeploymentStatus, reports: Mapping[str, Report]) -> bool:
    """Whether the status tells all that these reports say."""
    tokens = [one.kv_tokens for one in reports.values()]
    return (
        all(one.adapters is None for one in reports.values())
        and are_told(reports, status.sets)
        and status.accuracy is not None
        and status.progress is None
        and None not in tokens
        and min((one for one in tokens if one is not None), default=None)
        == status.accuracy.kv_tokens_measured
    )


def lessons_of(seen: Seen, decision: Decision, revision: Revision, report: Report) -> Iterator[Residual]:
    """What a start teaches. Nothing where it is not what the plan alone would start: the lesson would be applied to everybody."""
    try:
        found = runs(seen, decision, revision)
    except NotAsPlanned:
        return
    entry = revision.entry
    start = Start(
        model=found.model,
        gpu=found.gpu,
        layout=entry.layout,
        engine=found.engine,
        settings=entry.settings,
        device_bytes=entry.hardware.memory_bytes,
        kv_bytes=report.kv_bytes,
        weights_bytes=report.weights_bytes,
        cold=report.cold is True,
    )
    yield from lessons(start)
