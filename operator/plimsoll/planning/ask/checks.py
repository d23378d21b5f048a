"""What can be seen to be wrong before any device is looked at: contradictions in the spec, and between spec, model and engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.engines import WATERMARK, EngineFacts
from plimsoll.facts.gpus import UnknownGpu, gpu_named
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.promql import unclosed
from plimsoll.planning.ask.features import parse_kv_dtype, unkept
from plimsoll.planning.ask.intent import Intent
from plimsoll.planning.placing.budgets import budget_of
from plimsoll.planning.placing.placement import PRODUCT_LABELS
from plimsoll.planning.plan import Finding, Severity

MOST_NEAR: Final = 3
"""How many similar names are suggested."""
SHOWN: Final = 80
"""Characters of a long value that a finding shows."""
QUERY_UNCLOSED: Final = "QueryUnclosed"


def check_spec(intent: Intent, model: ModelFacts, engine: EngineFacts) -> Iterator[Finding]:
    """Errors and warnings of one deployment, in the order of the spec's fields."""
    yield from _engine(engine)
    yield from _watermark(intent, engine)
    yield from _task(intent, model)
    yield from _topology(intent, model)
    yield from _kv_dtype(intent, model, engine)
    yield from _speculation(intent, model)
    yield from _adapters(intent, model)
    yield from _lengths(intent)
    assumed = model.architecture.assumed
    if assumed:
        yield Finding(
            severity=Severity.WARNING,
            reason="ModelAssumed",
            message=f"the model's config does not state {', '.join(assumed)}; rules of its family fill that in",
            field="model.source",
            value=model.source,
            remedy="model.architecture.config with the checkpoint's own config.json",
        )


def products_of(intent: Intent, inventory: Inventory) -> tuple[frozenset[str] | None, tuple[Finding, ...]]:
    """The catalogue names and label values that topology.gpuProducts means, None where any product may be used; and findings about
    names that are not known."""
    asked = intent.spec.topology.gpu_products
    if not asked:
        return None, ()
    labels = {
        pool.labels[label] for pool in inventory.pools for label in PRODUCT_LABELS if label in pool.labels
    }
    names: set[str] = set()
    findings: list[Finding] = []
    for product in asked:
        if product in labels:
            names.add(product)
            continue
        try:
            names.add(gpu_named(product).name)
        except UnknownGpu as error:
            near = error.near or tuple(get_close_matches(product, sorted(labels), n=MOST_NEAR))
            findings.append(
                Finding(
                    severity=Severity.ERROR,
                    reason="UnknownGPU",
                    message=f"topology.gpuProducts names {product!r}, {_wrong(error)}",
                    field="topology.gpuProducts",
                    value=product,
                    remedy=f"write {' or '.join(near) or 'a catalogue name, or the product label of a node'}",
                )
            )
    return frozenset(names), tuple(findings)


def check_products(namespace: str, config: OperatorConfig) -> Iterator[Finding]:
    """Findings about the admin's prices and limits for products that are not known, which would silently have no effect."""
    budget = budget_of(namespace, config)
    for field, products, effect in (
        ("prices.gpuHour", [price.product for price in config.prices.gpu_hour], "its price reaches no GPU"),
        (
            "budgets.gpusByProduct",
            [limit.product for limit in budget.gpus_by_product] if budget is not None else [],
            "its limit holds nobody back",
        ),
    ):
        for product in products:
            try:
                gpu_named(product)
            except UnknownGpu as error:
                hint = f"; did you mean {', '.join(error.near)}?" if error.near else ""
                yield Finding(
                    severity=Severity.WARNING,
                    reason="UnknownGPU",
                    message=f"{field} of the admin's config names {product!r}, {_wrong(error)}, so {effect}{hint}",
                    field=field,
                    value=product,
                    remedy=", ".join(error.near) or "a catalogue name, see plimsoll gpus",
                )


def check_held(intent: Intent) -> Iterator[Finding]:
    """A finding where bounds for autoscaling are set beside a number of replicas, which holds whatever they say."""
    spec, held = intent.spec, intent.spec.replicas
    if held is None or spec.scaling.zero is not None:
        return  # of scaling to zero, `check_sleep` tells
    for field, bound in (("scaling.max", spec.scaling.max), ("scaling.min", spec.scaling.min)):
        if bound is not None and intent.binds(field):
            yield Finding(
                severity=Severity.WARNING,
                reason="NotScaled",
                message=f"{field} {bound} has no effect: spec.replicas holds {held}, obeyed exactly, so nothing is scaled",
                field=field,
                value=str(bound),
                remedy="leave replicas out to have it scaled, or leave the bounds out",
            )
            return


def check_sleep(intent: Intent) -> Iterator[Finding]:
    """A finding where scaling to zero is asked for and has no effect, as something else fixes the number of replicas."""
    spec = intent.spec
    if spec.scaling.zero is None or (spec.replicas is None and spec.scaling.max is not None):
        return
    if spec.replicas is not None:
        why, remedy = f"spec.replicas holds {spec.replicas}", "leave replicas out"
        if spec.scaling.max is None:
            remedy = f"{remedy}, and set scaling.max"
    else:
        why, remedy = "without scaling.max the number stays as it is planned", "scaling.max, 1 or more"
    yield Finding(
        severity=Severity.WARNING,
        reason="NeverSleeps",
        message=f"scaling.zero has no effect: {why}",
        field="scaling.zero",
        remedy=remedy,
    )


def check_query(intent: Intent) -> Iterator[Finding]:
    """An error where the wake query is none, so that nothing could wake by it. A plan that stands already is not the worse for it."""
    zero, field = intent.spec.scaling.zero, "scaling.zero.wake.query"
    if zero is None or zero.wake.query is None or (slip := unclosed(zero.wake.query)) is None:
        return
    yield Finding(
        severity=Severity.ERROR,
        reason=QUERY_UNCLOSED,
        message=f"{field} is no PromQL, and nothing would sleep or wake by it: {slip.wrong}",
        field=field,
        value=zero.wake.query[:SHOWN],
        remedy=slip.right,
    )


def check_wake(intent: Intent, admin: OperatorConfig | None) -> Iterator[Finding]:
    """A finding where waking depends on a query that no Prometheus answers, or that counts what other clusters ask for. Without an
    admin's config neither is known."""
    zero, field = intent.spec.scaling.zero, "scaling.zero.wake.query"
    if admin is None or zero is None or zero.wake.query is None:
        return
    query, labels = zero.wake.query, admin.control.prometheus_match_labels
    if admin.prometheus_url is None:
        yield Finding(
            severity=Severity.WARNING,
            reason="WakeUnanswered",
            message=f"{field} asks a Prometheus, and the admin's config names none, so that it neither sleeps nor wakes by it",
            field=field,
            value=query[:SHOWN],
            remedy="prometheusUrl in the admin's config, or scaling.zero.wake.annotation",
        )
    elif labels and not any(re.search(rf"\b{label}\b", query) for label in labels):
        told = ", ".join(
            f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in labels.items()
        )
        yield Finding(
            severity=Severity.WARNING,
            reason="WakeOfAllClusters",
            message=f"{field} is sent as it is written to a Prometheus that shows several clusters, and names no label of this one, "
            "so that it may count what another one is asked for",
            field=field,
            value=query[:SHOWN],
            remedy=f"{{{told}}} in its selectors",
        )


def _wrong(error: UnknownGpu) -> str:
    return "which several products share" if error.shared else "which is not known"


def _engine(engine: EngineFacts) -> Iterator[Finding]:
    if engine.approximated_from is not None:
        yield Finding(
            severity=Severity.WARNING,
            reason="EngineVersionUnknown",
            message=engine.approximated_from,
            field="engine.version",
            value=engine.version,
            remedy="have `plimsoll engine describe IMAGE` tell what that version takes, for engines.versions[].facts of the admin's "
            "config",
        )


def _watermark(intent: Intent, engine: EngineFacts) -> Iterator[Finding]:
    """A finding where a watermark is set that the engine has no flag for: the plan would count on it, and it would have no effect."""
    asked = intent.spec.engine.watermark_permille
    if asked and not engine.has_watermark:
        field = "engine.watermarkPermille"
        yield _error(
            "NoWatermark",
            f"{field} is {asked}, but {engine.name} {engine.version} has no {WATERMARK}; leave it out, or take a newer engine.version",
            field,
            str(asked),
        )


def _task(intent: Intent, model: ModelFacts) -> Iterator[Finding]:
    if intent.generates:
        return
    itl = intent.spec.slo.itl_p99_ms
    if intent.spec.model.task == "generate":
        yield _error(
            "NoGenerator",
            f"model.task is generate, but {model.architecture.name} is an encoder, which writes no text; use embed, rerank "
            f"or classify",
            "model.task",
            "generate",
        )
    elif itl is not None and intent.binds("slo.itlP99Ms"):
        yield Finding(
            severity=Severity.WARNING,
            reason="NothingDecoded",
            message=f"slo.itlP99Ms is {itl}, but this task answers at once, without tokens to wait for; it is ignored",
            field="slo.itlP99Ms",
            value=str(itl),
            remedy="slo.ttftP99Ms, the time to the answer",
        )


def check_step(intent: Intent, model: ModelFacts, longest: int) -> Iterator[Finding]:
    """A finding where somebody set a step that is smaller than the longest request, for a model that computes each request whole."""
    field, step = "engine.maxBatchedTokens", intent.spec.engine.max_batched_tokens
    if step is None or step >= longest or not model.architecture.encoder or not intent.binds(field):
        return
    yield Finding(
        severity=Severity.WARNING,
        reason="StepBelowRequest",
        message=f"{field} is {step:,}, but {model.architecture.name} looks both ways and computes each request whole, up to "
        f"{longest:,} tokens; the engine refuses to start with less",
        field=field,
        value=str(step),
        remedy=f"at least {longest}, or workload.contextTokens of at most {step}",
    )


def _topology(intent: Intent, model: ModelFacts) -> Iterator[Finding]:
    """Findings about wishes that no device could grant. Those that depend on devices are rules about layouts."""
    topology = intent.spec.topology
    architecture = model.architecture
    if topology.expert_parallel and not architecture.is_moe:
        yield _error(
            "NoExperts",
            f"topology.expertParallel is true, but {architecture.name} has no experts to spread; leave it out",
            "topology.expertParallel",
            "true",
        )
    if topology.data is not None and topology.data > 1 and not architecture.is_moe:
        yield _error(
            "DataOfDense",
            f"topology.data is {topology.data}, but data ranks of a model without experts are plain replicas; "
            f"set replicas: {topology.data} instead",
            "topology.data",
            str(topology.data),
        )
    if topology.expert_balancing and topology.expert_parallel is False:
        yield _error(
            "BalancingWithoutSpread",
            "topology.expertBalancing moves whole experts, but topology.expertParallel is false",
            "topology.expertBalancing",
            "true",
        )
    if topology.pipeline is not None and topology.pipeline > 1 and not architecture.supports_pipeline:
        yield _error(
            "NoPipeline",
            f"topology.pipeline is {topology.pipeline}, but the engine cannot cut {architecture.name} into stages",
            "topology.pipeline",
            str(topology.pipeline),
        )


def _kv_dtype(intent: Intent, model: ModelFacts, engine: EngineFacts) -> Iterator[Finding]:
    asked = intent.spec.memory.kv_cache_dtype
    if asked is None or asked == "auto":
        return
    if engine.kv_dtypes and asked not in engine.kv_dtypes:
        yield _error(
            "UnknownKvDtype",
            f"memory.kvCacheDtype is {asked!r}, which {engine.name} {engine.version} does not know; it knows "
            f"{', '.join(engine.kv_dtypes)}",
            "memory.kvCacheDtype",
            asked,
        )
    elif (why := unkept(asked, model.architecture)) is not None:
        yield _error(
            "KvDtypeNotOfLatents" if model.architecture.is_latent else "KvDtypeNotOfModel",
            f"memory.kvCacheDtype is {asked!r}, but {why}",
            "memory.kvCacheDtype",
            asked,
        )
    elif parse_kv_dtype(asked) is None:
        yield Finding(
            severity=Severity.WARNING,
            reason="KvDtypeUncounted",
            message=f"the bytes of memory.kvCacheDtype {asked!r} are not known; the ledger counts the model's own dtype, "
            f"so the cache will hold more than is said",
            field="memory.kvCacheDtype",
            value=asked,
        )


def _speculation(intent: Intent, model: ModelFacts) -> Iterator[Finding]:
    wish = intent.spec.speculative
    if wish is not None and wish.method == "mtp" and not model.architecture.mtp_layers:
        yield _error(
            "NoPredictionLayers",
            "speculative.method is mtp, but the checkpoint carries no prediction layers; use ngram, or a draft model",
            "speculative.method",
            "mtp",
        )


def _adapters(intent: Intent, model: ModelFacts) -> Iterator[Finding]:
    if intent.spec.adapters is not None and not model.architecture.supports_adapters:
        yield Finding(
            severity=Severity.ERROR,
            reason="NoAdapters",
            message=f"adapters are set, but the engine's {model.architecture.name} takes no LoRA adapters",
            field="adapters",
            remedy="leave them out, and serve a checkpoint with the adapter merged into its weights",
        )


def _lengths(intent: Intent) -> Iterator[Finding]:
    if intent.lengths.declared:
        return
    out = f" and {intent.lengths.output_typical:,} out" if intent.generates else ""
    yield Finding(
        severity=Severity.INFO,
        reason="WorkloadAssumed",
        message=f"lengths are not declared in full; {intent.lengths.input_typical:,} tokens in{out} are assumed for a "
        f"typical request",
        field="workload.inputTokens",
        remedy="workload.inputTokens and workload.outputTokens"
        if intent.generates
        else "workload.inputTokens",
    )


def _error(reason: str, message: str, field: str, value: str) -> Finding:
    return Finding(severity=Severity.ERROR, reason=reason, message=message, field=field, value=value)
