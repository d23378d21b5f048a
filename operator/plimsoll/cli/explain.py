"""`plimsoll explain`: shows a value of a plan with its formula, its inputs, who decided it, and what would change it.

Which names there are, and what is said of each, is in `explained`.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import asking, drawing, inputs
from plimsoll.cli.explained import Said, looked_up
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.cli.output import output_option, print_data
from plimsoll.planning.plan import Plan, Severity
from plimsoll.status.findings import sentence


@click.command("explain", cls=inputs.OfFiles)
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
    fleet: FleetChoice,
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
    question = asking.ask(files, fleet, config_file, online=online)
    plans = asking.answer(question)
    by_name = {(one.namespace, one.name): one for one in question.deployments}
    found = [
        (plan, looked_up(field, plan, by_name[plan.namespace, plan.name], question.snapshot.config))
        for plan in plans.plans
    ]
    if output != "text":
        print_data([_data(plan, said) for plan, said in found], output)
    else:
        drawing.show(_text(found, listed=field is None))
    raise SystemExit(asking.exit_code(plans.plans))


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
        if where is None:
            wrong = [finding for finding in plan.findings if finding.severity is Severity.ERROR]
            yield drawing.facts([("Error", sentence(finding)) for finding in wrong], width=8)


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
