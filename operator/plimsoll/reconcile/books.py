"""What the operator's own metrics tell of each deployment: a few figures, kept from its last turn and gone with it.

A scrape must not read ten thousand resources, so turns leave here what they know anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from plimsoll import names
from plimsoll.api.conditions import REASONS, get_condition
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.api.v1alpha1.status import LLMDeploymentStatus
from plimsoll.control.decision import Told
from plimsoll.control.gate import OF_QUERY
from plimsoll.control.retune.steps import Phase
from plimsoll.facts.gpus import LinkKind, UnknownGpu, gpu_named
from plimsoll.facts.serving import Serving, Stage
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.plan import Plan
from plimsoll.status.told import ENGINE, RAMP, News

OTHER: Final = "Other"
"""In place of a word that is not in our tables: words that pods make up must not make new series without end."""

AGAIN_SECONDS: Final = 3600.0
"""How long after a restart another one of the same replica is one again. A node that starts anew restarts each of its replicas once."""

ACTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType({
    "Scale": frozenset({
        "AtMax", "AtMin", "GPUsUnavailable", "LoadFell", "LoadRose", "Panic", "ScaledToZero", "StartFailed", "Woken",
    }),
    "Retune": frozenset({"RetuneSuggested", *(f"Retune{phase.value}" for phase in Phase)}),
    RAMP: frozenset({"RampTaken", "RampRefused"}),
    ENGINE: frozenset({"EngineWarns"}),
})  # fmt: skip
"""Decisions that are about no condition, with the reasons of each. They are few, so each is counted by its own word, also one that is not here."""

TOLD: Final = tuple(
    (about, reason) for about, reasons in {**REASONS, **ACTS}.items() for reason in (*sorted(reasons), OTHER)
)
"""What decisions may be about, and why: as a counter is there before the first of its kind, so that this one is seen as it is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one deployment. What is not known is None or left out."""

    replicas: tuple[tuple[str, int], ...] = ()
    """By state."""
    devices: int | None = None
    slo: tuple[tuple[str, float], ...] = ()
    """Seconds by latency."""
    availability: float | None = None
    """Promised share of requests that are answered."""
    predicted: tuple[tuple[str, float], ...] = ()
    predicted_running: int | None = None
    kv_tokens: tuple[tuple[str, int], ...] = ()
    """By source."""
    tensor: int | None = None
    link: str = ""
    conditions: tuple[tuple[str, bool], ...] = ()
    limited: tuple[str, ...] = ()
    """Why it is limited in scaling; empty where it is not."""
    restarts: int = 0
    again: int = 0
    """Restarts of replicas that had restarted not long before."""


NO_FIGURES: Final = Figures()


class Promise(NamedTuple):
    """A resource's slo, as the metrics tell it."""

    seconds: tuple[tuple[str, float], ...] = ()
    availability: float | None = None


@dataclass(slots=True)
class _Known:
    uid: str
    generation: int | None
    slo: Promise
    restarts: int = 0
    again: int = 0
    before: tuple[tuple[str, int], ...] | None = None
    """Restarts by pod as of the first look; None before it."""
    seen: tuple[tuple[str, int], ...] = ()
    """Those since then."""
    ended: tuple[tuple[str, float], ...] = ()
    """When replicas restarted last, for as long as it matters."""
    figures: Figures = NO_FIGURES


class Books:
    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self.plans: Counter[tuple[str, str]] = Counter()
        """Plans that were made anew, by reason and outcome."""
        self.decisions: Counter[tuple[str, str]] = Counter()
        """By what they are about, and the reason."""

    def __iter__(self) -> Iterator[tuple[str, Figures]]:
        """By key, sorted; what changes meanwhile does not matter."""
        return iter([(key, known.figures) for key, known in sorted(self._known.items())])

    def note(
        self,
        deployment: LLMDeployment,
        status: LLMDeploymentStatus,
        serving: Serving,
        config: OperatorConfig,
        now: float,
        *,
        live: Iterable[Told] = (),
    ) -> None:
        """Note how a deployment stands after its turn. `live` is what control tells, as a status has not all of its reasons."""
        key = f"{deployment.namespace}/{deployment.name}"
        uid, generation = deployment.metadata.uid or "", deployment.metadata.generation
        known = self._known.get(key)
        if known is None or (known.uid, known.generation) != (uid, generation):
            kept = known if known is not None and known.uid == uid else _Known(uid, generation, Promise())
            kept.generation, kept.slo = generation, _slo(deployment, config)
            known = self._known[key] = kept
        _count(known, serving, now)
        known.figures = _shared(_figures(status, serving, known, live))

    def note_unreadable(self, about: ObjectMeta, status: LLMDeploymentStatus) -> None:
        """Note of a deployment that cannot be read what its conditions say: nothing else of it is known any more. Restarts count on."""
        key, uid = f"{about.namespace}/{about.name}", about.uid or ""
        known = self._known.get(key)
        if known is None or known.uid != uid:
            known = self._known[key] = _Known(uid, None, Promise())
        known.generation, known.slo = None, Promise()
        known.figures = _shared(_figures(status, Serving(), known))

    def planned(self, plan: Plan) -> None:
        if plan.pinning is None or not plan.pinning.kept:
            reason = OTHER if plan.pinning is None else plan.pinning.reason
            self.plans[reason, str(plan.outcome)] += 1

    def decided(self, news: Iterable[News]) -> None:
        for one in news:
            known = one.about in ACTS or one.reason in REASONS.get(one.about, {})
            about = one.about if one.about in ACTS or one.about in REASONS else OTHER
            self.decisions[about, one.reason if known else OTHER] += 1

    def forget(self, key: str) -> None:
        self._known.pop(key, None)


def _count(known: _Known, serving: Serving, now: float) -> None:
    """Count restarts of replicas. The pods of a group are brought down and up as one, which is one restart, though they may be seen to
    be at it one after another."""
    pods = [pod for seen in serving.sets for pod in seen.pods]
    if known.before is None:
        # Restarts from before this program's first look are not counted: they would look as if all had come at once.
        known.before = tuple((pod.uid, pod.restarts) for pod in pods if pod.restarts)
    before, seen = dict(known.before), dict(known.seen)
    ended = {name: at for name, at in known.ended if now - at <= AGAIN_SECONDS}
    known.seen = tuple((pod.uid, n) for pod in pods if (n := pod.restarts - before.get(pod.uid, 0)) > 0)
    since = dict(known.seen)
    for name, uids in _replicas(serving):
        more = max(since.get(uid, 0) for uid in uids) - max(seen.get(uid, 0) for uid in uids)
        if more > 0:
            known.restarts += more
            known.again += more if name in ended else more - 1
            ended[name] = now
    known.ended = tuple(ended.items())


def _replicas(serving: Serving) -> Iterator[tuple[str, Sequence[str]]]:
    """The pods of each, under a name that stays where one of several is replaced."""
    for each in serving.sets:
        groups: dict[str, list[str]] = {}
        for pod in each.pods:
            name = pod.uid if pod.group is None else f"{each.name}/{pod.group}"
            groups.setdefault(name, []).append(pod.uid)
        yield from groups.items()


@lru_cache(4096)
def _shared(figures: Figures) -> Figures:
    """One object for equal figures: most deployments have the same as others, so this takes a tenth of the memory."""
    return figures


def _slo(deployment: LLMDeployment, config: OperatorConfig) -> Promise:
    try:
        slo = effective(deployment.spec, deployment.namespace, config).spec.slo
    except SpecError:
        slo = deployment.spec.slo
    percent = slo.availability_percent
    return Promise(
        _seconds(ttft_p99=slo.ttft_p99_ms, itl_p99=slo.itl_p99_ms),
        None if percent is None else round(float(percent) / 100, 6),
    )


def as_serving(status: LLMDeploymentStatus, serving: Serving) -> LLMDeploymentStatus:
    """The status that a turn which raised leaves, with the replicas that are ready now: it has those of an earlier turn."""
    if status.replica_status is None:
        return status
    ready = sum(seen.ready for seen in serving.sets)
    counted = status.replica_status.model_copy(update={"ready": ready})
    return status.model_copy(update={"replica_status": counted})


def _figures(
    status: LLMDeploymentStatus, serving: Serving, known: _Known, live: Iterable[Told] = ()
) -> Figures:
    slo = known.slo
    plan, counted = status.plan, status.replica_status
    replicas: tuple[tuple[str, int], ...] = ()
    if counted is not None:
        leaders = [pod for seen in serving.sets for pod in seen.pods if pod.rank == 0]
        replicas = (
            ("failed", sum(pod.stage is Stage.FAILED for pod in leaders)),
            ("ready", counted.ready or 0),
            ("starting", counted.starting or 0),
            ("waiting_gpus", counted.waiting_for_gpus or 0),
            ("waiting_nodes", counted.waiting_for_nodes or 0),
            ("waiting_quota", counted.waiting_for_quota or 0),
            ("wanted", counted.wanted or 0),
        )
    tensor, link = (None, "") if plan is None else _joined(plan.layout or "", plan.gpu or "")
    measured = None if status.accuracy is None else status.accuracy.kv_tokens_measured
    return Figures(
        replicas=replicas,
        devices=_devices(status),
        slo=slo.seconds,
        availability=slo.availability,
        predicted=()
        if plan is None
        else _seconds(ttft_p99=plan.predicted_ttft_ms, itl_p99=plan.predicted_itl_ms),
        predicted_running=None if plan is None else plan.predicted_running,
        kv_tokens=tuple(
            (source, tokens)
            for source, tokens in (("measured", measured), ("predicted", plan.kv_tokens if plan else None))
            if tokens is not None
        ),
        tensor=tensor,
        link=link,
        conditions=tuple(
            (one.type, one.status == "True")
            for one in sorted(status.conditions, key=lambda one: one.type)
            # With a wake query that is refused or finds nothing the replicas are seen all the same, and the alert on this condition says that they
            # are not.
            if one.status != "Unknown" and not (one.type == names.METRICS and one.reason in OF_QUERY)
        ),
        limited=_limited(status, live),
        restarts=known.restarts,
        again=known.again,
    )


def _limited(status: LLMDeploymentStatus, live: Iterable[Told]) -> tuple[str, ...]:
    limited = get_condition(status.conditions, names.SCALING)
    if limited is None or limited.status != "True":
        return ()
    besides = next(
        (one.besides for one in live if (one.type, one.reason) == (limited.type, limited.reason)), ()
    )
    words = (limited.reason, *besides)
    return tuple(dict.fromkeys(word if word in REASONS[names.SCALING] else OTHER for word in words))


def _devices(status: LLMDeploymentStatus) -> int | None:
    """Devices of all wanted replicas. Those that no set is asked to run yet count as the plan's first set's."""
    if status.plan is None or status.plan.gpus_per_replica is None or status.replica_status is None:
        return None
    first, wanted = status.plan.gpus_per_replica, status.replica_status.wanted or 0
    unasked = max(0, wanted - sum(each.replicas for each in status.sets))
    return first * unasked + sum(each.replicas * (_gpus(each.layout) or first) for each in status.sets)


def _gpus(layout: str | None) -> int | None:
    found = Layout.read(layout or "")
    return None if found is None else found.gpus


def _seconds(**milliseconds: int | None) -> tuple[tuple[str, float], ...]:
    return tuple((name, value / 1000) for name, value in sorted(milliseconds.items()) if value is not None)


@lru_cache(1024)
def _joined(layout: str, gpu: str) -> tuple[int | None, str]:
    """Over how many GPUs each layer is cut, and what joins them: PCIe where the faster fabric does not reach all of them.

    Cached, as each turn asks, and an unknown GPU would be searched for among those with similar names each time.
    """
    found = Layout.read(layout)
    if found is None:
        return None, ""
    tensor = found.tensor
    try:
        link = gpu_named(gpu.partition(", ")[0]).link
    except UnknownGpu:
        return tensor, "unknown"
    within = tensor <= link.domain or link.kind in (LinkKind.PCIE, LinkKind.HOST)
    return tensor, str(link.kind if within else LinkKind.PCIE)
