"""The first half of planning: the spec merged with presets and defaults, checked against model, engine and fleet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import Effective, effective
from plimsoll.api.problems import INLINE, OR, WHAT_HELPS, SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts, brought_in, engine_facts
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import Learned
from plimsoll.facts.model import ModelFacts
from plimsoll.planning.ask.checks import (
    QUERY_UNCLOSED,
    check_held,
    check_products,
    check_query,
    check_sleep,
    check_spec,
    check_step,
    check_wake,
    products_of,
)
from plimsoll.planning.ask.context_length import context_length
from plimsoll.planning.ask.guesses import check_draft, check_guesses
from plimsoll.planning.ask.intent import Intent, Source, SourceOf, pooled, read_intent
from plimsoll.planning.ask.quantize import as_served, check_deprecated
from plimsoll.planning.ask.stretched import check_rope
from plimsoll.planning.ask.task import Task
from plimsoll.planning.ask.trust import check_trust
from plimsoll.planning.ask.ways_in import check_ways_in
from plimsoll.planning.ask.withdrawn import check_withdrawn
from plimsoll.planning.ask.words import check_words
from plimsoll.planning.pinning import digest_before, spec_digest
from plimsoll.planning.placing.images import ADMIN_FIELDS, brought, with_images
from plimsoll.planning.placing.placement import Slot, slots
from plimsoll.planning.plan import Finding, Origin, Severity

POOLING: Final = ("embed", "rerank", "classify")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """Facts that must be looked up before planning."""

    model: ModelFacts | None
    draft: ModelFacts | None = None
    engine: EngineFacts | None = None
    """None: taken by engine.version of the resource, else by the admin's default, else of the newest version known."""
    problem: str | None = None
    """Why the model could not be read, in the resolver's sentence."""
    reading: str | None = None
    """A sentence that says who is reading a model that is not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read: a task to plan, or findings that say why there is none."""

    deployment: LLMDeployment
    facts: PlanFacts
    engine: EngineFacts | None
    digest: str
    """Digest of the spec's fields that planning reads."""
    digest_before: str
    """The same as the release before made it."""
    task: Task | None
    """None where one of the findings is an error, unless a plan that stands may be kept in spite of it."""
    slots: tuple[Slot, ...] = ()
    findings: tuple[Finding, ...] = ()
    hints: tuple[str, ...] = ()
    """What the presets in force advise."""

    @property
    def errs(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def of_what_stands(self) -> Reading:
        """The reading for a plan that stands: what no figure of it follows from is no reason to disturb it, nor to keep it from being scaled.
        Live metrics tell of it, and a warning does."""
        return replace(
            self,
            findings=tuple(
                replace(each, severity=Severity.WARNING) if each.reason == QUERY_UNCLOSED else each
                for each in self.findings
            ),
        )

    @property
    def owner(self) -> str:
        return f"{self.deployment.namespace}/{self.deployment.name}"


def read(
    deployment: LLMDeployment,
    inventory: Inventory,
    facts: PlanFacts,
    learned: Learned,
    admin: OperatorConfig | None,
) -> Reading:
    """Reads and checks a deployment. `admin` is None where no admin's config is known; its defaults hold then."""
    config = admin or OperatorConfig()
    try:
        merged = effective(deployment.spec, deployment.namespace, config)
    except SpecError as error:
        return _stopped(deployment, facts, None, ("", ""), _problems(error))
    intent = read_intent(deployment.namespace, deployment.name, merged.spec, source_of(merged))
    digests = spec_digest(merged.spec), digest_before(merged.spec)
    version = merged.spec.engine.version or config.engines.default_version
    engine = brought_in(
        facts.engine or engine_facts(merged.spec.engine.name, version), merged.spec.engine.image
    )
    products, unknown = products_of(intent, inventory)
    # What is not allowed, names that are no GPU's and a query that is none are wrong whatever the model turns out to be.
    anyway = (
        *check_trust(merged.spec, deployment.namespace, admin, engine),
        *unknown,
        *check_query(intent),
    )
    model, unreadable = facts.model, _unknown_model(merged, facts)
    if model is None or unreadable is not None:
        stopped = _stopped(deployment, facts, engine, digests, (*filter(None, [unreadable]), *anyway))
        # Sets that serve already may grow meanwhile, which needs the devices and not the model.
        return replace(stopped, slots=_found(merged.spec, intent, inventory, products))
    if model.architecture.encoder or merged.spec.model.task in POOLING:
        intent = pooled(intent)
    model, served = as_served(model, merged.spec.quantization.method, engine)
    context = context_length(model.architecture, intent)
    findings = (
        *_yielded(merged),
        *check_products(deployment.namespace, config),
        *check_held(intent),
        *check_sleep(intent),
        *check_wake(intent, admin),
        *check_ways_in(intent),
        *anyway,
        *served,
        *check_deprecated(merged.spec, model, engine),
        *check_spec(intent, model, engine),
        *check_step(intent, model, context.tokens),
        *check_draft(intent, model, facts.draft),
        *check_rope(intent, model, context.tokens),
        *check_guesses(intent, engine),
        *check_words(merged.spec, engine, config),
        *check_withdrawn(merged.spec, model, engine, own_image=brought(engine, config, *ADMIN_FIELDS)),
        *context.findings,
    )
    if any(finding.severity is Severity.ERROR and finding.reason != QUERY_UNCLOSED for finding in findings):
        return _stopped(deployment, facts, engine, digests, findings)
    found, left_out = with_images(
        _found(merged.spec, intent, inventory, products), merged.spec, engine, config
    )
    return Reading(
        deployment=deployment,
        facts=facts,
        engine=engine,
        digest=digests[0],
        digest_before=digests[1],
        task=Task(
            intent=intent,
            model=model,
            draft=facts.draft,
            engine=engine,
            own_image=brought(engine, config, "nvidia"),
            learned=learned,
            context=context,
        ),
        slots=found,
        findings=(*findings, *left_out),
        hints=merged.advice,
    )


def source_of(merged: Effective) -> SourceOf:
    """A function from a field of the spec to who set it, in the words of a plan."""

    def find(field: str) -> Source:
        source = merged.source_of(field)
        words = f"{source.kind} {source.name}" if source.name else source.kind
        return _ORIGINS[source.kind], words

    return find


_ORIGINS: Final = {
    "user": Origin.USER,
    "preset": Origin.PRESET,
    "admin preset": Origin.PRESET,
    "namespace default": Origin.NAMESPACE,
    "admin config": Origin.CONFIG,
    "open": Origin.DERIVED,
}


def _stopped(
    deployment: LLMDeployment,
    facts: PlanFacts,
    engine: EngineFacts | None,
    digests: tuple[str, str],
    findings: tuple[Finding, ...],
) -> Reading:
    return Reading(
        deployment=deployment,
        facts=facts,
        engine=engine,
        digest=digests[0],
        digest_before=digests[1],
        task=None,
        findings=findings,
    )


def _found(
    spec: LLMDeploymentSpec, intent: Intent, inventory: Inventory, products: frozenset[str] | None
) -> tuple[Slot, ...]:
    return slots(
        inventory.pools,
        selector=spec.topology.node_selector,
        tolerations=spec.topology.tolerations,
        products=products,
        on_cpu=intent.on_cpu,
        cores=intent.cores,
    )


def _problems(error: SpecError) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            severity=Severity.ERROR,
            reason="InvalidSpec",
            message=problem.message,
            field=problem.field.removeprefix("spec."),
            value=problem.value,
        )
        for problem in error.problems
    )


def _unknown_model(merged: Effective, facts: PlanFacts) -> Finding | None:
    """A finding where the model or a draft model is not known. A draft model that counted nothing would make too much fit."""
    if facts.model is None:
        return _unreadable("model.source", merged.spec.model.source, facts)
    wish = merged.spec.speculative
    if wish is not None and wish.model is not None and facts.draft is None:
        return _unreadable("speculative.model", wish.model, facts)
    return None


def _unreadable(field: str, source: str, facts: PlanFacts) -> Finding:
    if facts.reading is not None:
        return Finding(
            severity=Severity.ERROR,
            reason="ModelReading",
            message=facts.reading,
            field=field,
            value=source,
        )
    problem = facts.problem or f"{field} is {source}, and nothing is known of that model"
    message, _, helps = problem.partition(WHAT_HELPS)
    if field != "model.source":
        # That config is of the model, and no field holds one of its draft.
        helps = OR.join(cure for cure in helps.split(OR) if cure != INLINE)
    otherwise = (
        "model.architecture.config with the text of its config.json, or a source that can be read"
        if field == "model.source"
        else "a draft that can be read"
    )
    return Finding(
        severity=Severity.ERROR,
        reason="ModelUnreadable",
        message=message,
        field=field,
        value=source,
        remedy=helps or otherwise,
    )


def _yielded(merged: Effective) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            severity=Severity.INFO,
            reason="DefaultYielded",
            message=f"{item.field} of the {item.source.kind} {item.source.name} is left out: {item.reason}",
            field=item.field,
            value=str(item.value),
        )
        for item in merged.yielded
    )
