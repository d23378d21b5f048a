"""`plimsoll simulate`: what would have happened to a deployment under recorded traffic, before it is deployed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from plimsoll.cli import asking, drawing, inputs
from plimsoll.cli.errors import DOES_NOT_FIT, FITS, BadInput, note
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.simulate_page import simulation_page
from plimsoll.cli.simulate_report import simulation_report
from plimsoll.planning.ask.reading import read
from plimsoll.planning.placing.budgets import limits_of
from plimsoll.planning.plan import Severity
from plimsoll.simulate.arrivals import Arrivals, draw_arrivals
from plimsoll.simulate.compare import Comparison
from plimsoll.simulate.policies.registry import KINDS, Stage
from plimsoll.simulate.report import Report, data_of
from plimsoll.simulate.router import Routing
from plimsoll.simulate.scenario import CannotSimulate, Scenario, scenario_of
from plimsoll.simulate.traces import BadTrace, RequestTrace, Trace, load_trace
from plimsoll.status.findings import sentence

USUAL = ("plimsoll", "static_peak")
DAY_S = 86400.0


@click.command("simulate", cls=inputs.OfFiles)
@inputs.files_option
@click.option(
    "--trace",
    "trace_file",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="Requests (arrival_s,input_tokens,output_tokens[,prefix_block_ids]) or rates (t_s,rate_rps,cv); CSV or .csv.gz.",
)
@fleet_options
@inputs.config_option
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice([*KINDS, "all"]),
    help=f"Who decides the replicas; may be given more than once.  [default: {', '.join(USUAL)}]",
)
@click.option(
    "--routing",
    type=click.Choice([*(str(one) for one in Routing), "both"]),
    default="both",
    show_default=True,
    help="A Service, where connections stay with their replica, or an InferencePool.",
)
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Only so many days of it."
)
@click.option(
    "--from-day",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="N",
    help="Begin so many days into it.",
)
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="More or less of the traffic.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Of everything that chance decides: the same seed gives the same answer.",
)
@click.option(
    "--crashes",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="N",
    help="Crashes a day of each replica.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(),
    metavar="FILE",
    help="Write a page with timelines, complete in itself.",
)
@inputs.online_option
@output_option
def simulate_command(
    *,
    files: tuple[str, ...],
    trace_file: str,
    fleet: FleetChoice,
    config_file: str | None,
    policies: tuple[str, ...],
    routing: str,
    days: float | None,
    from_day: float,
    scale: float,
    seed: int,
    crashes: float,
    page: str | None,
    online: bool,
    output: str,
) -> None:
    """Replay traffic against the plan of an LLMDeployment, in virtual time.

    The plan is made as `plimsoll plan` makes it; then its engines, router, metrics and start-ups are simulated, and the
    same code as the operator's decides the replicas. Others can be compared: Kubernetes' autoscaler, KEDA, Knative's rule,
    two of WVA, a Dynamo-like planner, the plain law that ours grew from (reference), constant numbers, and an oracle. Exit
    code: 0 done, 2 the plan does not fit, 3 the input is wrong.

    \b
    Examples:
      plimsoll simulate -f llm.yaml --fleet 16xH100 --trace traffic.csv
      plimsoll simulate -f llm.yaml --snapshot fleet.yaml --trace week.csv.gz --days 2 --scale 0.1 --html out.html
      plimsoll simulate -f llm.yaml --fleet 16xH100 --trace traffic.csv --policy all -o json
    """
    trace = _trace(trace_file)
    scenario = _scenario(files, fleet, config_file, online=online)
    world = scenario.world(seed, crashes_per_replica_day=crashes)
    arrivals = _arrivals(trace, scenario, seed=seed, scale=scale, begin_s=from_day * DAY_S, days=days)
    names = list(KINDS) if "all" in policies else [name for name in KINDS if name in (policies or USUAL)]
    routings = list(Routing) if routing == "both" else [Routing(routing)]
    stage = Stage(scenario=scenario, world=world, arrivals=arrivals)
    results = {}
    with Bar(arrivals.span_s) as bar:
        for way in routings:
            comparison = Comparison(stage, routing=way, progress=bar)
            listed = []
            for name in names:
                bar.begin(f"{name} behind {way}")
                listed.append(comparison.best(name))
            results[way] = tuple(listed)
    report = Report(
        scenario=scenario,
        world=world,
        arrivals=arrivals,
        scale=scale,
        lengths_from_trace=isinstance(trace, RequestTrace),
        results=results,
    )
    if page is not None:
        _write(page, simulation_page(report))
    if output != "text":
        print_data(data_of(report), output)
    else:
        drawing.show(simulation_report(report))
    raise SystemExit(FITS)


def _trace(name: str) -> Trace:
    try:
        return load_trace(Path(name))
    except BadTrace as error:
        raise BadInput(f"--trace: {error}") from None


def _scenario(
    files: tuple[str, ...], fleet: FleetChoice, config_file: str | None, *, online: bool
) -> Scenario:
    question = asking.ask(files, fleet, config_file, online=online)
    if len(question.deployments) != 1:
        raise BadInput(
            f"{len(question.deployments)} resources are given; one is simulated at a time: name one with -f FILE"
        )
    deployment, inventory = question.deployments[0], question.inventory()
    asking.tell_problems(inventory)
    plan = asking.answer(question, inventory).plans[0]
    snapshot = question.snapshot
    reading = read(
        deployment, inventory, asking.facts_of(deployment, question), snapshot.learned, snapshot.config
    )
    try:
        return scenario_of(plan, reading, limits_of(deployment.namespace, snapshot.config))
    except CannotSimulate as error:
        note([sentence(finding) for finding in plan.findings if finding.severity is Severity.ERROR])
        click.echo(f"{click.style('error:', bold=True)} {error}", err=True)
        raise SystemExit(asking.exit_code([plan]) or DOES_NOT_FIT) from None


def _arrivals(
    trace: Trace, scenario: Scenario, *, seed: int, scale: float, begin_s: float, days: float | None
) -> Arrivals:
    if begin_s >= trace.span_s:
        raise BadInput(
            f"--from-day {begin_s / DAY_S:g}: the trace ends after {trace.span_s / DAY_S:.2f} days"
        )
    span = None if days is None else days * DAY_S
    arrivals = draw_arrivals(trace, scenario.lengths, seed=seed, scale=scale, begin_s=begin_s, span_s=span)
    if not len(arrivals):
        raise BadInput(f"--scale {scale:g}: nothing arrives in the part that is replayed; take more of it")
    return arrivals


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--html {name}: cannot be written: {error.strerror}") from None
    note([f"wrote {name}"])


class Bar:
    """Virtual time as it passes, one bar a run; silent where stderr is no terminal."""

    def __init__(self, span_s: float) -> None:
        self._span = span_s
        console = Console(stderr=True, highlight=False, emoji=False, markup=False)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f}%"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task: TaskID = self._progress.add_task("", total=span_s)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, name: str) -> None:
        self._progress.reset(self._task, description=name)

    def __call__(self, now: float) -> None:
        self._progress.update(self._task, completed=min(now, self._span))
