"""`plimsoll plan`: shows what will run where, how much of it fits, how fast it will be, and what was rejected."""

from __future__ import annotations

import click

from plimsoll.cli import asking, drawing, inputs, whatif
from plimsoll.cli.errors import note
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.remarks import Style
from plimsoll.cli.report import fleet_report
from plimsoll.cli.untold import untold
from plimsoll.planning import codec


@click.command("plan", cls=inputs.OfFiles)
@inputs.files_option
@fleet_options
@inputs.config_option
@click.option(
    "--what-if",
    "what_ifs",
    multiple=True,
    metavar="CHANGES",
    help="Compare with gpu=, context=, precision=, kv= or users= changed; commas join changes, repeats are columns.",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Every term, layout, value and remark.")
@inputs.online_option
@output_option
def plan_command(
    *,
    files: tuple[str, ...],
    fleet: FleetChoice,
    config_file: str | None,
    what_ifs: tuple[str, ...],
    everything: bool,
    online: bool,
    output: str,
) -> None:
    """Plan one or several LLMDeployments on a fleet.

    The fleet is one of --fleet, --nodes, --snapshot and --context. Several resources are planned together: they share
    the fleet, and the one that gets no GPUs is told who did. Exit code: 0 fits or is tight, 2 does not fit, 3 is wrong.

    \b
    Examples:
      plimsoll plan -f llm.yaml --fleet 8xH100,16xL4
      plimsoll plan -f llm.yaml --nodes nodes.yaml -o json
      plimsoll plan -f llm.yaml --context --what-if gpu=H200 --what-if context=32768,users=200
      kubectl get nodes -o yaml | plimsoll plan -f llm.yaml --nodes -
    """
    question = asking.ask(files, fleet, config_file, online=online, besides=whatif.wrong(what_ifs))
    inventory = question.inventory()
    asking.tell_problems(inventory)
    plans = asking.answer(question, inventory)
    scenarios = [whatif.scenario(text, question, inventory) for text in what_ifs]
    if output != "text":
        data = codec.encode(plans)
        if scenarios:
            data["whatIf"] = {one.name: codec.encode(one.plans) for one in scenarios}
        print_data(data, output)
    elif scenarios:
        drawing.show(whatif.comparison(plans, scenarios))
    else:
        currency = question.snapshot.config.prices.currency
        empty = frozenset(pool.key for pool in inventory.pools if not pool.nodes)
        style = Style(everything=everything, colour=drawing.is_colourful(), currency=currency, empty=empty)
        drawing.show(fleet_report(plans, style))
    note(untold(question, plans))
    raise SystemExit(asking.exit_code(plans.plans))
