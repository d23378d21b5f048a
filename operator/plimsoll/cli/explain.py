"""`plimsoll explain`: one value of a plan with its formula, its inputs, who decided it and what would change it.

Three kinds of names are known: what the plan decided (max_model_len, replicas), the terms of its memory ledger
(weights, activation), and every field of the resource, for which it says who set it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import click
from rich.console import RenderableType
from rich.text import Text

from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError, all_fields, model_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.cli import asking, drawing, inputs
from plimsoll.cli.asking import Question
from plimsoll.cli.drawing import gib
from plimsoll.cli.errors import BadInput
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.cli.output import output_option, print_data
from plimsoll.planning.memory.ledger import Term
from plimsoll.planning.plan import Plan, Severity, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What there is to say of one name, in the order it is printed; parts that do not apply are empty."""

    name: str
    value: str
    because: str
    inputs: Mapping[str, str]
    source: str
    field: str
    changes: str


@click.command("explain")
@click.argument("field", required=False)
@inputs.files_option
@fleet_options
@inputs.config_option
@inputs.online_option
@output_option
def explain_command(
    *,
    field: str | None,
    files: tuple[str, ...],
    snapshot_file: str | None,
    nodes_file: str | None,
    context: str | None,
    fleet: str | None,
    config_file: str | None,
    online: bool,
    output: str,
) -> None:
    """Say why FIELD has the value it has: formula, inputs, source, and what would change it.

    FIELD is a setting (max_model_len), a term of the memory ledger (activation), or a field of the resource
    (workload.contextTokens). Without FIELD, all decided values are listed.

    \b
    Examples:
      plimsoll explain -f llm.yaml --nodes nodes.yaml
      plimsoll explain -f llm.yaml --nodes nodes.yaml max_num_seqs
      plimsoll explain -f llm.yaml --fleet 8xH100 memory.utilizationPercent
    """
    choice = FleetChoice(snapshot_file=snapshot_file, nodes_file=nodes_file, context=context, fleet=fleet)
    question = asking.ask(files, choice, config_file, online=online)
    plans = asking.answer(question)
    by_name = {(one.namespace, one.name): one for one in question.deployments}
    found = [
        (plan, _looked_up(field, plan, by_name[plan.namespace, plan.name], question)) for plan in plans.plans
    ]
    if output != "text":
        print_data([_data(plan, said) for plan, said in found], output)
    else:
        drawing.show(_text(found, listed=field is None))
    raise SystemExit(asking.exit_code(plans.plans))


def _looked_up(name: str | None, plan: Plan, deployment: LLMDeployment, question: Question) -> list[Said]:
    decided = [*map(_of_value, plan.values), *([_replicas(plan)] if plan.values else [])]
    if name is None:
        return decided
    wanted = _plain(name)
    if not wanted:
        raise BadInput(_unknown(name, plan))
    found = [said for said in decided if wanted in (_plain(said.name), _plain(said.field))]
    found = found or [said for said in _terms(plan) if wanted == _plain(said.name)]
    if not found:
        found = [said for said in _fields(deployment, question) if wanted == _plain(said.field)]
        # What nobody set was decided with the group it belongs to: topology.tensor with the layout.
        found += [said for said in decided if said.field and wanted.startswith(f"{_plain(said.field)}.")]
    if not found:
        raise BadInput(_unknown(name, plan))
    return found


def _plain(name: str) -> str:
    """maxModelLen, max-model-len and spec.max_model_len are the same name."""
    return "".join(
        letter for letter in name.removeprefix("spec.").lower() if letter.isalnum() or letter == "."
    )


def _unknown(name: str, plan: Plan) -> str:
    known = [value.name for value in plan.values] + [said.name for said in _terms(plan)]
    paths = all_fields(LLMDeploymentSpec)
    plain = {_plain(one): one for one in (*paths, *known)}
    near = get_close_matches(_plain(name), list(plain), n=4, cutoff=0.5)
    near += [path for path in plain if path.rpartition(".")[2] == _plain(name) and path not in near]
    hint = (
        f"did you mean {', '.join(plain[one] for one in near)}?" if near else "leave it out to see all names"
    )
    return f"FIELD: {name!r} is no value of a plan; {hint}"


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


def _replicas(plan: Plan) -> Said:
    short = f", {plan.replicas} of them placed" if plan.replicas != plan.replicas_wanted else ""
    return Said(
        name="replicas",
        value=f"{plan.replicas_wanted}{short}",
        because=plan.replicas_reason,
        inputs={},
        source="load and bounds",
        field="replicas",
        changes="replicas, scaling, workload, slo",
    )


def _terms(plan: Plan) -> list[Said]:
    lead = plan.sets[0] if plan.sets else plan.nearest
    return [_of_term(term) for term in lead.ledger.terms] if lead else []


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


def _fields(deployment: LLMDeployment, question: Question) -> Iterator[Said]:
    """Every field of the resource, as it is after presets and defaults."""
    try:
        merged = effective(deployment.spec, deployment.namespace, question.snapshot.config)
    except SpecError:
        return  # the plan says what is wrong
    for path in all_fields(LLMDeploymentSpec):
        source = merged.source_of(path)
        yield Said(
            name=path,
            value=_shown(merged.spec.to_dict(), path),
            because=_described(path),
            inputs={},
            source="nobody set it" if source.kind == "open" else str(source),
            field=path,
            changes="",
        )


def _shown(spec: object, path: str) -> str:
    for part in path.split("."):
        spec = spec.get(part) if isinstance(spec, dict) else None
    return "not set" if spec is None else str(spec)


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


def _text(found: list[tuple[Plan, list[Said]]], *, listed: bool) -> Iterator[RenderableType]:
    for place, (plan, said) in enumerate(found):
        if place:
            yield ""
        where = plan.sets[0] if plan.sets else plan.nearest
        on = f"  {where.layout} on {where.hardware}" if where else ""
        yield Text.assemble((f"{plan.namespace}/{plan.name}", "bold"), (f"{on}  {plan.outcome.value}", "dim"))
        if listed and said:
            rows = [(f"  {one.name}", one.value, one.source, one.field) for one in said]
            yield drawing.table(("  NAME", "VALUE", "FROM", "SET IT WITH"), rows, left=(0, 2, 3))
        else:
            for one in said:
                yield from _one(one)
        if not said:
            wrong = [finding for finding in plan.findings if finding.severity is Severity.ERROR]
            yield drawing.facts([("Error", finding.message) for finding in wrong], width=8)


def _one(said: Said) -> Iterator[RenderableType]:
    yield ""
    yield Text.assemble(f"  {said.name}", " = ", (said.value, "bold"))
    rows = (
        ("because", said.because),
        ("with", ", ".join(f"{name} {value}" for name, value in said.inputs.items())),
        ("from", said.source),
        ("set it with", f"spec.{said.field}" if said.field else ""),
        ("would change", said.changes),
    )
    yield drawing.facts([(name, text) for name, text in rows if text], indent=4)


def _data(plan: Plan, said: list[Said]) -> dict[str, object]:
    return {
        "namespace": plan.namespace,
        "name": plan.name,
        "outcome": plan.outcome.value,
        "values": [
            {
                "name": one.name,
                "value": one.value,
                "formula": one.because,
                "inputs": dict(one.inputs),
                "source": one.source,
                "field": one.field or None,
                "changes": one.changes or None,
            }
            for one in said
        ],
    }
