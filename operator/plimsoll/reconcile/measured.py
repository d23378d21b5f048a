"""What engines reported of their starts, on its way to two places: the status of their deployment, and the ledger of all.

A start teaches once. One that was over before this process began has likely taught another process, so it teaches only what
nobody knows yet. Reading reports and keeping what was learned are others' work.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import UnknownGpu, gpu_named
from plimsoll.facts.learned import NOTHING, Learned, Residual, merged, paced, taught
from plimsoll.facts.learned_speed import Speed
from plimsoll.facts.report import Report
from plimsoll.facts.serving import PodSeen, Serving
from plimsoll.planning.memory.lessons import Start, lessons
from plimsoll.reconcile.decide import Decision
from plimsoll.reconcile.seen import Seen
from plimsoll.render.revision import Revision

CHANGES_ENGINE: Final = re.compile(
    r"/spec/initContainers|/spec/containers(/[^/]+(/(args|command|env|envFrom|image)(/.*)?)?)?$"
)
"""Paths of patches that may bring another engine, or tell it other words."""
ENGINES_OWN: Final = ("VLLM_", "PYTORCH_")
"""Beginnings of variables by which an engine, or what it allocates with, does otherwise."""
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
    seed: Learned = NOTHING
    known: Learned = NOTHING
    """Both together: what plans are made with."""
    kept: Learned = NOTHING
    """What outlives this process, as far as it knows."""
    _taught: dict[str, dict[str, int]] = field(default_factory=dict)
    """By deployment, restarts of the pods (by uid) that have taught."""
    _rests: set[str] = field(default_factory=set)
    """Deployments of which nothing has changed since this process began."""
    _told: dict[str, tuple[tuple[str, Report], ...]] = field(default_factory=dict)

    def know(self, own: Learned, seed: Learned) -> None:
        self.own, self.seed, self.known = own, seed, merged(own, seed)

    def look(self, key: str, serving: Serving) -> None:
        self.reports.look(key, serving)
        last = max((pod.since for seen in serving.sets for pod in seen.pods), default=0.0)
        if last < self.began:
            self._rests.add(key)
        else:
            self._rests.discard(key)

    def news(self, key: str, status: LLMDeploymentStatus) -> bool:
        """Whether engines have told something since status was."""
        reports = self.reports.of(key)
        if self._told.get(key, ()) == tuple(reports.items()):
            return False
        if key in self._rests and _stands_there(status, reports):
            # Another process told it; else one that starts would plan for everybody who serves.
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
        """From the starts of a deployment that have not taught yet."""
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
        """What a ramp taught; whether it is kept by now. A status may say so only then, as a record is judged no more once it does."""
        after = paced(self.own, speed)
        if after != self.own:
            self.know(after, self.seed)
            self.changed.set()
        return self.kept.speed(speed.key) == speed

    def _teach(self, key: str, pod: PodSeen, found: tuple[Residual, ...]) -> None:
        if pod.since < self.began:
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
    """Sets that were born of the plan and the spec of this turn: an older one runs what was asked for then, maybe another model."""
    if decision.rollout is None or decision.frozen or not decision.prune:
        return {}
    sets = [target.name for target in decision.rollout.targets if target.planned]
    return {name: decision.revisions[name] for name in sets if name in decision.revisions}


def is_as_planned(seen: Seen) -> bool:
    """Whether the engine has the words that the plan has for it, and is the one that others get by its version. What presets and
    defaults say counts as what the owner says."""
    try:
        spec = effective(seen.deployment.spec, seen.deployment.namespace, seen.config).spec
    except SpecError:
        return False
    patched = (patch.path for patch in spec.pod_patches)
    return (
        spec.engine.image is None
        and not spec.engine.extra_args
        and not any(one.name.startswith(ENGINES_OWN) for one in spec.engine.env)
        and not any(CHANGES_ENGINE.match(path) for path in patched)
    )


def _stands_there(status: LLMDeploymentStatus, reports: Mapping[str, Report]) -> bool:
    tokens = [one.kv_tokens for one in reports.values()]
    return (
        all(one.adapters is None for one in reports.values())
        and status.accuracy is not None
        and status.progress is None
        and None not in tokens
        and min((one for one in tokens if one is not None), default=None)
        == status.accuracy.kv_tokens_measured
    )


def lessons_of(seen: Seen, decision: Decision, revision: Revision, report: Report) -> Iterator[Residual]:
    """Nothing where model or GPU are not known, where another model or engine was planned for than is known now, or where the
    owner runs something else than was planned: that would be believed for everybody's."""
    model, planned = seen.facts.model, decision.plan.model_digest
    if not is_as_planned(seen):
        return
    if model is None or (planned and planned != model.digest):
        return
    engine = seen.facts.engine or engine_facts(decision.plan.engine, decision.plan.engine_version)
    if revision.engine_version != engine.version:
        return
    entry = revision.entry
    try:
        gpu = gpu_named(entry.hardware.gpu)
    except UnknownGpu:
        return
    start = Start(
        model=model,
        gpu=gpu,
        layout=entry.layout,
        engine=engine,
        settings=entry.settings,
        device_bytes=entry.hardware.memory_bytes,
        kv_bytes=report.kv_bytes,
        weights_bytes=report.weights_bytes,
        cold=report.cold is True,
    )
    yield from lessons(start)
