"""One deployment as the control loop knows it: its bounds, promises and consent, and what matters of its planned sets.

Made anew only when the resource or its pinned plan has changed, so that a tick over thousands of them reads no plan and checks
no spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.topology import Toleration
from plimsoll.control.capacity import capacity_of
from plimsoll.control.decision import Told
from plimsoll.control.law import up_window_s
from plimsoll.control.record import EMPTY, Record
from plimsoll.control.retune import Consent, Knobs
from plimsoll.control.retune.scene import SETTINGS, fixed_settings, knobs_of
from plimsoll.control.situation import ZERO_AFTER_S, Bounds, Capacity, Slo
from plimsoll.facts.engines import EngineFacts, EngineNotPlannedError, UnknownEngineError, engine_facts
from plimsoll.planning import codec
from plimsoll.planning.layouts.layout import Layout, Shape
from plimsoll.planning.pinning import spec_digest
from plimsoll.planning.placing.budgets import claim_of, priority_of
from plimsoll.planning.plan import Hardware, Plan, PlanSet
from plimsoll.prometheus.vocabulary import exports
from plimsoll.reconcile.changing import before_of, change_of
from plimsoll.reconcile.kept import Kept
from plimsoll.render.revision import Revision
from plimsoll.render.sets import set_name
from plimsoll.status.findings import lacking_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A set of the pinned plan."""

    name: str
    digest: str
    """Of its entry in the plan."""
    replicas: int
    capacity: Capacity
    knobs: Knobs
    before: Mapping[str, str]
    """Settings that retunes changed, as the plan had them."""
    hardware: Hardware
    shape: Shape
    layout: Layout
    tolerations: tuple[Toleration, ...]
    product: str
    gpus: float
    price_per_hour: float | None
    runs: str = ""
    """Digest of what its replicas run: model, engine and settings, but for those that retunes change. Empty where the plan does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asleep:
    """Scaling to no replica, as it is asked for."""

    query: str | None
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    key: str
    """namespace/name."""
    metadata: ObjectMeta
    fixed: int | None
    least: int
    most: int | None
    paused: bool
    slo: Slo
    up_window_s: float
    down_window_s: float | None
    zero: Asleep | None
    consent: Consent
    tuning_asked: bool
    """Whether spec.tuning says anything."""
    priority: int
    spec: str
    """Digest of what planning reads."""
    engine: EngineFacts
    sets: tuple[Planned, ...]
    changed: Planned | None
    """The set that a retune tries."""
    others: Mapping[str, Planned]
    """Sets that exist and are not the plan's, by name: they serve until an edit's own set does, or again where that fails."""
    tls: bool
    record: Record
    """As it is stored."""
    told: tuple[Told, ...]
    """Conditions as status had them when this was made."""
    short: str = ""
    """Why the plan has fewer replicas than are wanted: a reason of its findings. Empty where it has all, or does not say why not."""
    replicas: int = field(init=False)
    bounds: Bounds = field(init=False)
    exports: frozenset[str] = field(init=False)
    """Figures that its engine exports, by their names in a sample."""

    def __post_init__(self) -> None:
        # Worked out once, as every tick asks for them.
        object.__setattr__(self, "replicas", sum(each.replicas for each in self.sets))
        object.__setattr__(self, "bounds", self._bounds())
        object.__setattr__(self, "exports", exports(self.engine.metrics))

    @property
    def gpus(self) -> float:
        """Of all its replicas."""
        return sum(each.gpus * each.replicas for each in self.sets)

    @property
    def autoscaled(self) -> bool:
        return self.fixed is None and self.most is not None

    def _bounds(self) -> Bounds:
        pause = "spec.paused is true" if self.paused else None
        if self.autoscaled and self.most is not None:
            return Bounds(min=self.least, max=self.most, pause=pause)
        count = self.replicas if self.fixed is None else self.fixed
        return Bounds(min=count, max=max(1, count), fixed=count, pause=pause)


def subject_of(
    deployment: LLMDeployment, kept: Kept, config: OperatorConfig, there: Mapping[str, Revision]
) -> Subject | None:
    """None where nothing is planned, or the spec is one that cannot be planned. `there` are the sets that exist, by name."""
    plan = kept.plan
    if plan is None or not plan.sets:
        return None
    try:
        merged = effective(deployment.spec, deployment.namespace, config)
        spec = merged.spec
        engine = _engine(plan.engine, plan.engine_version)
        bears = spec.topology.tolerations

        def named(each: PlanSet) -> Planned:
            name = set_name(deployment, each, facts=engine, config=config, there=there)
            return replace(_planned(name, each, bears), runs=_runs(plan, each))

        sets = tuple(named(each) for each in plan.sets)
        record = kept.of(spec).control or EMPTY
        tried = change_of(plan, record.retune)
        changed = None if tried is None else named(tried.entry)
    except (SpecError, UnknownEngineError, EngineNotPlannedError):
        return None
    ours = {each.name for each in (*sets, *(() if changed is None else (changed,)))}
    others = {name: _planned(name, one.entry, bears) for name, one in there.items() if name not in ours}
    fixed = fixed_settings(merged.binds)
    found = _subject(
        deployment,
        spec,
        engine,
        sets=sets,
        changed=changed,
        others=others,
        record=record,
        config=config,
        consent=Consent.of(spec.tuning, fixed=fixed),
    )
    lacking = lacking_of(plan)
    return found if lacking is None else replace(found, short=lacking.reason)


def _subject(
    deployment: LLMDeployment,
    spec: LLMDeploymentSpec,
    engine: EngineFacts,
    *,
    sets: tuple[Planned, ...],
    changed: Planned | None,
    others: Mapping[str, Planned],
    record: Record,
    config: OperatorConfig,
    consent: Consent,
) -> Subject:
    scaling = spec.scaling
    zero = scaling.zero
    least = scaling.min if scaling.min is not None else 0 if zero is not None else 1
    down = scaling.down_window_seconds
    return Subject(
        key=f"{deployment.namespace}/{deployment.name}",
        metadata=deployment.metadata,
        fixed=deployment.spec.replicas,
        least=least,
        most=scaling.max,
        paused=deployment.spec.paused is True,
        slo=Slo.of_ms(ttft_p99=spec.slo.ttft_p99_ms, itl_p99=spec.slo.itl_p99_ms),
        up_window_s=up_window_s(scaling.up_window_seconds, float(config.control.interval_seconds)),
        down_window_s=None if down is None else float(down),
        zero=None
        if zero is None
        else Asleep(query=zero.wake.query, after_s=float(zero.after_seconds or ZERO_AFTER_S)),
        consent=consent,
        tuning_asked=bool(spec.tuning.to_dict()),
        priority=priority_of(deployment.namespace, config),
        spec=spec_digest(spec),
        engine=engine,
        sets=sets,
        changed=changed,
        others=others,
        tls=spec.networking.tls_secret is not None,
        record=record,
        told=tuple(
            Told(type=one.type, status=one.status, reason=one.reason, message=one.message)
            for one in deployment.status.conditions
        ),
    )


def _planned(name: str, chosen: PlanSet, bears: tuple[Toleration, ...]) -> Planned:
    claim = claim_of(chosen)
    return Planned(
        name=name,
        digest=chosen.digest,
        replicas=chosen.replicas,
        capacity=capacity_of(chosen),
        knobs=knobs_of(chosen.settings, chosen.layout),
        before=before_of(chosen),
        hardware=chosen.hardware,
        shape=chosen.shape,
        layout=chosen.layout,
        tolerations=bears,
        product=claim.product,
        gpus=float(claim.gpus),
        price_per_hour=None if claim.price is None else float(claim.price),
    )


def _runs(plan: Plan, chosen: PlanSet) -> str:
    if not plan.model_digest:
        return ""
    tuned = set(SETTINGS.values())
    settings = {name: value for name, value in codec.encode(chosen.settings).items() if name not in tuned}
    return codec.digest((plan.model_digest, plan.engine, plan.engine_version, settings))


@cache
def _engine(name: str, version: str) -> EngineFacts:
    """One value for thousands of subjects."""
    return engine_facts(name, version)


def annotations_of(metadata: ObjectMeta) -> Mapping[str, str]:
    """Annotations that ask for something when their value changes."""
    return {
        name: metadata.annotations[name]
        for name in (names.ANNOTATION_RESET, names.ANNOTATION_WAKE)
        if name in metadata.annotations
    }
