"""What `explain` says of a name.

Five kinds of names are known: what the plan decided (max_model_len, replicas), terms of its memory ledger (weights, activation), what it predicts
(ttft_ms, tpot_ms, output_tokens_per_second), every field of the resource, with who set it, and the engine's flags that correspond to a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import yaml

from plimsoll.api.config import OperatorConfig
from plimsoll.api.defaults import OPEN, Effective, effective
from plimsoll.api.problems import SpecError, all_fields, model_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.cli.drawing import gib, many, short
from plimsoll.cli.errors import BadInput
from plimsoll.cli.explained_replicas import counted
from plimsoll.cli.importing.fields import FIELDS
from plimsoll.planning.interval import Interval
from plimsoll.planning.memory.ledger import Term
from plimsoll.planning.plan import Outcome, Plan, PlanSet, Value

NEAR: Final = 4
"""How many names are proposed in place of an unknown one."""
UTILIZATION: Final = "memory.utilizationPercent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is said of a name, in the order of printing. Parts that do not apply are empty."""

    name: str
    value: str
    because: str
    inputs: Mapping[str, str]
    source: str
    field: str
    changes: str


def looked_up(name: str | None, plan: Plan, deployment: LLMDeployment, config: OperatorConfig) -> list[Said]:
    """What is said of a name, or without one of everything that the plan decided. Raises BadInput for an unknown name, with proposals."""
    merged = _merged(deployment, config)
    decided = _decided(plan, merged)
    if name is None:
        return decided
    wanted = _plain(name)
    if not wanted:
        raise BadInput(_unknown(name, plan, decided))
    wanted = _flags().get(wanted, wanted)
    found = [said for said in decided if wanted in (_plain(said.name), _plain(said.field))]
    found = found or [said for said in _figures(plan) if wanted == _plain(said.name)]
    if not found and merged is not None:
        found = [_of_field(path, merged) for path in all_fields(LLMDeploymentSpec) if wanted == _plain(path)]
        # A field that nobody set was decided together with its group, as topology.tensor with the layout.
        found += [said for said in decided if said.field and wanted.startswith(f"{_plain(said.field)}.")]
    # Where nothing was decided at all, the plan's errors are the answer, so an unknown name is no error.
    if not found and _lead(plan):
        raise BadInput(_unknown(name, plan, decided))
    return found


def _merged(deployment: LLMDeployment, config: OperatorConfig) -> Effective | None:
    """The resource after presets and defaults; None where the plan says what is wrong with it."""
    try:
        return effective(deployment.spec, deployment.namespace, config)
    except SpecError:
        return None


def _plain(name: str) -> str:
    """maxModelLen, max-model-len, spec.max_model_len and what `kubectl explain` takes (llm.spec...) are the same name."""
    inside = re.sub(r"^(llmdeployments?|llms?)?\.?spec\.", "", name.lower())
    return "".join(letter for letter in inside if letter.isalnum() or letter == ".")


def _flags() -> dict[str, str]:
    """The engine's flags that correspond to a field, for people who know the engine better than the resource."""
    paths = {flag: path for flag, (path, _) in FIELDS.items()} | {"--gpu-memory-utilization": UTILIZATION}
    return {_plain(flag): _plain(path) for flag, path in paths.items()}


def _unknown(name: str, plan: Plan, decided: list[Said]) -> str:
    """The error for an unknown name. It proposes names with the same end, with a similar spelling, and with a word that begins with it."""
    known = (*all_fields(LLMDeploymentSpec), *(said.name for said in (*decided, *_figures(plan))))
    plain = {_plain(one): one for one in known}
    wanted = _plain(name)
    near = [one for one in plain if wanted and one.rpartition(".")[2] == wanted]
    near += get_close_matches(wanted, list(plain), n=NEAR, cutoff=0.5)
    near += [one for one in plain if wanted and one.rpartition(".")[2].startswith(wanted)]
    named = [plain[one] for one in dict.fromkeys(near)][:NEAR]
    hint = f"did you mean {', '.join(named)}?" if named else "leave it out to see all names"
    return f"FIELD: {name!r} is no value of a plan; {hint}"


def _decided(plan: Plan, merged: Effective | None) -> list[Said]:
    lead = _lead(plan)
    if lead is None or merged is None:
        return []
    return [
        *map(_of_value, lead.values),
        *_of_blocks(lead, merged),
        _of_engine(plan, merged),
        _replicas(plan, merged),
    ]


def _lead(plan: Plan) -> PlanSet | None:
    """The set that is explained; where nothing fits, the layout that came nearest."""
    return plan.sets[0] if plan.sets else plan.nearest


def _of_value(value: Value) -> Said:
    return Said(
        name=value.name,
        value=value.value,
        because=value.formula,
        inputs=value.inputs,
        source=value.source,
        field=value.field or "",
        changes=value.changes,
    )


def _of_blocks(lead: PlanSet, merged: Effective) -> list[Said]:
    """The number of cache blocks, which follows from other values unless somebody sets it. Without a cache there is none."""
    capacity = lead.ledger.capacity
    if capacity is None:
        return []
    source = merged.source_of("engine.blockTokens")
    return [
        Said(
            name="block_size",
            value=f"{capacity.block_size} tokens",
            because="as set" if source != OPEN else "as the engine cuts the cache of such layers",
            inputs={},
            source="the engine" if source == OPEN else str(source),
            field="engine.blockTokens",
            changes="engine.blockTokens, engine.version, memory.kvCacheDtype",
        )
    ]


def _of_engine(plan: Plan, merged: Effective) -> Said:
    source = merged.source_of("engine.version")
    return Said(
        name="engine_version",
        value=f"{plan.engine} {plan.engine_version}",
        because="as set" if source != OPEN else "no version is set in the resource",
        inputs={},
        source="the admin's config, else this release's own" if source == OPEN else str(source),
        field="engine.version",
        changes="engine.version, the admin's engines.defaultVersion",
    )


def _replicas(plan: Plan, merged: Effective) -> Said:
    why = counted(plan, merged)
    short = f", {plan.replicas} of them placed" if plan.replicas != plan.replicas_wanted else ""
    nothing = plan.outcome is Outcome.DOES_NOT_FIT
    return Said(
        name="replicas",
        value="none" if nothing else f"{plan.replicas_wanted}{short}",
        because=f"nothing fits; else {plan.replicas_reason}" if nothing else why.formula,
        inputs={} if nothing else why.inputs,
        source=why.source,
        field="replicas",
        changes="replicas, scaling, workload, slo",
    )


def _figures(plan: Plan) -> list[Said]:
    """What nobody decides as it follows from the plan: the terms of the ledger, and predictions."""
    lead = _lead(plan)
    return [*map(_of_term, lead.ledger.terms), *_predicted(lead)] if lead else []


def _predicted(lead: PlanSet) -> Iterator[Said]:
    """Predictions for the load that a replica is expected to carry. What was learned from ramps corrects them."""
    if lead.performance is None:
        return
    load, answer, taught = lead.load, lead.performance, lead.performance.learned
    held = f"90% of measured loads within {{}}, with {many(load.concurrency, 'request')} in flight"
    inputs = {"input": str(load.input_tokens), "output": str(load.output_tokens)}
    if taught is not None:
        inputs |= {"TTFT": f"x {taught.ttft:.2f}", "TPOT": f"x {taught.tpot:.2f}", "ramp": taught.taught_by}
    for name, value in (
        ("ttft_ms", f"{short(answer.ttft_ms.mid)} ms, {held.format(_within(answer.ttft_ms))}"),
        ("tpot_ms", f"{short(answer.tpot_ms.mid)} ms, {held.format(_within(answer.tpot_ms))}"),
        ("output_tokens_per_second", f"{short(answer.output_tokens_per_second)} of each replica"),
    ):
        yield Said(
            name=name,
            value=value,
            because="work of prompts and steps at fitted rates" + (" x learned factors" if taught else ""),
            inputs=inputs,
            source=f"performance model, {'learned' if taught else 'calibrated'}",
            field="",
            changes="plimsoll ramp NAME --record",
        )


def _within(interval: Interval) -> str:
    return f"{short(interval.low)} to {short(interval.high)}"


def _of_term(term: Term) -> Said:
    size = term.bytes
    return Said(
        name=term.name,
        value=f"{gib(size.mid, 2)} GiB of each GPU, 90% of starts within {gib(size.low, 2)} to {gib(size.high, 2)}",
        because=term.formula,
        inputs=term.inputs,
        source=f"memory ledger, {term.certainty.value}",
        field="",
        changes="",
    )


def _of_field(path: str, merged: Effective) -> Said:
    """A field after presets and defaults. A field with fields of its own was set by everyone who set any of them."""
    inside = [source for field, source in merged.sources.items() if field.startswith(f"{path}.")]
    sources = dict.fromkeys(map(str, inside or [merged.source_of(path)]))
    return Said(
        name=path,
        value=_shown(merged.spec.to_dict(), path),
        because=_described(path),
        inputs={},
        source=", ".join("nobody set it" if source == str(OPEN) else source for source in sources),
        field=path,
        changes="",
    )


def _shown(spec: object, path: str) -> str:
    """A value on one line, as it would be written in the resource."""
    for part in path.split("."):
        spec = spec.get(part) if isinstance(spec, dict) else None
    if spec is None:
        return "not set"
    if isinstance(spec, str):
        return spec
    written: str = yaml.safe_dump(
        spec, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return written.removesuffix("...\n").strip()


def _described(path: str) -> str:
    model: object = LLMDeploymentSpec
    described = ""
    for part in path.split("."):
        fields = getattr(model, "model_fields", {})
        info = next((info for name, info in fields.items() if (info.alias or name) == part), None)
        if info is None:
            return described
        described, model = info.description or "", model_of(info.annotation)
    return described
