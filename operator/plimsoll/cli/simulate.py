"""`plimsoll simulate`: what would have happened to a deployment under recorded traffic, before it is deployed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import isnan
from pathlib import Path

import click

from plimsoll.cli import asking, drawing, inputs
from plimsoll.cli.errors import FITS, INTERRUPTED, BadInput, mistakes, note, printable
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.page import check_page, write_page
from plimsoll.cli.simulate_asked import asked_for
from plimsoll.cli.simulate_page import simulation_page
from plimsoll.cli.simulate_play import beyond_memory, play
from plimsoll.cli.simulate_report import simulation_report, span
from plimsoll.cli.simulate_side import freed
from plimsoll.facts.spans import DAY_S
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.policies.registry import KINDS
from plimsoll.simulate.report import Report, data_of
from plimsoll.simulate.router import Routing
from plimsoll.simulate.seeds import Case
from plimsoll.simulate.stages import Stages
from plimsoll.simulate.traces import (
    MOST_DAYS,
    MOST_REQUESTS,
    BadTrace,
    Loaded,
    RequestTrace,
    expected,
    load,
)

USUAL = ("plimsoll", "static_peak")


class Amount(click.FloatRange):
    """A number: what is none, as `nan`, is above and below nothing, and would pass."""

    name = "number"

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


class Seed(click.IntRange):
    """A whole number; a list of them, which is what one might try, is told how several are given."""

    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if "," in str(value):
            self.fail(f"{value!r}: give --seed once for each world, as in --seed 1 --seed 2", param, ctx)
        if not str(value).strip().removeprefix("-").isdecimal():
            self.fail(f"{value!r} is no whole number, as 1 is", param, ctx)
        found: int = super().convert(value, param, ctx)
        return found


class PolicyName(click.Choice):  # type: ignore[type-arg]  # of no types before click 8.2
    """A policy, or all; a list of them is told how several are given."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "," in value:
            each = " ".join(f"--policy {one.strip()}" for one in value.split(",") if one.strip())
            self.fail(f"{value!r}: give --policy once for each, as in {each}", param, ctx)
        found: str = super().convert(value.lower().replace("-", "_"), param, ctx)
        return found


def _only(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str:
    """One that is given again would else be taken in silence in place of the first."""
    if len(value) > 1:
        raise click.BadParameter("one at a time, and a run for each other one", ctx, param)
    return value[0]


@click.command("simulate", cls=inputs.OfFiles)
@inputs.files_option
@click.option(
    "--trace",
    "trace_file",
    required=True,
    multiple=True,
    callback=_only,
    type=click.Path(),
    metavar="FILE",
    help="Requests (arrival_s,input_tokens,output_tokens[,prefix_block_ids], or as gateways and published traces name them), "
    "their times alone (lengths are then those of spec.workload, as of rates), rates (t_s,rate_rps[,cv]), counts by interval "
    "(time,requests), Prometheus' query_range, or a Grafana panel's JSON; CSV or JSON lines, gzipped or not; - is stdin. "
    "Dates and Unix times will do.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Which of several LLMDeployments is simulated: its name, or namespace/name.",
)
@fleet_options
@inputs.config_option
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=PolicyName([*KINDS, "all"]),
    help=f"Who decides the replicas; may be given more than once.  [default: {', '.join(USUAL)}]",
)
@click.option(
    "--routing",
    type=click.Choice([*(str(one) for one in Routing), "both"]),
    default="both",
    show_default=True,
    help="A Service, which chooses a replica by chance, or an InferencePool, which chooses the least loaded.",
)
@click.option(
    "--days",
    type=Amount(min=0, max=MOST_DAYS, min_open=True),
    metavar="N",
    help="Only so many days of it; 0.25 are six hours.",
)
@click.option(
    "--from-day",
    type=Amount(min=0, max=MOST_DAYS),
    default=0.0,
    show_default=True,
    metavar="N",
    help="Begin so many days into it.",
)
@click.option(
    "--scale",
    type=Amount(min=0, max=10_000, min_open=True),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="More or less of the traffic: 2 is twice as much.",
)
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    type=Seed(min=0),
    default=(1,),
    show_default=True,
    metavar="N",
    help="Of everything that chance decides: the same seed gives the same answer. Given more than once, how the plan does in the world of "
    "each is told too.",
)
@click.option(
    "--crashes",
    type=Amount(min=0, max=1_000),
    default=0.0,
    show_default=True,
    metavar="N",
    help="Crashes a day of each replica.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that play policies, routers and worlds side by side; the answer is the same.  [default: as many as cores, where it is "
    "long enough to be worth it]",
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
    name: str | None,
    fleet: FleetChoice,
    config_file: str | None,
    policies: tuple[str, ...],
    routing: str,
    days: float | None,
    from_day: float,
    scale: float,
    seeds: tuple[int, ...],
    crashes: float,
    jobs: int | None,
    page: str | None,
    online: bool,
    output: str,
) -> None:
    """Replay traffic against the plan of an LLMDeployment, in virtual time.

    The plan is made as `plimsoll plan` makes it; then its engines, router, metrics and start-ups are simulated, and the
    same code as the operator's decides the replicas. Others can be compared: Kubernetes' autoscaler, KEDA, Knative's rule,
    two of WVA, a Dynamo-like planner, the plain law that ours grew from (reference), constant numbers, and an oracle. Ctrl-C
    ends it with what is done by then. Exit code: 0 done, 2 the plan does not fit, 3 the input is wrong or of a kind that is
    not simulated, 130 stopped.

    \b
    Examples:
      plimsoll simulate -f llm.yaml --fleet 16xH100 --trace traffic.csv
      plimsoll simulate -f llm.yaml --snapshot fleet.yaml --trace week.csv.gz --days 2 --scale 0.1 --html out.html
      plimsoll simulate -f llm.yaml --fleet 16xH100 --trace traffic.csv --policy all -o json
      plimsoll simulate -f llm.yaml --fleet 16xH100 --trace traffic.csv --seed 1 --seed 2 --seed 3
    """
    reads = (*files, fleet.snapshot_file, fleet.nodes_file, config_file, trace_file)
    asking.check_stdin(*reads)
    # What is wrong with the rest is told before the minutes that a long trace takes to read.
    wrong = mistakes(
        lambda: _refuse_twins(seeds),
        lambda: None if page is None else check_page(page, *reads),
        lambda: None if _is_there(trace_file) else _loaded(trace_file),
    )
    asked = asked_for(files, fleet, config_file, name, online=online, besides=wrong)
    scenario = asked.scenario
    loaded = _loaded(trace_file)
    trace = loaded.trace

    stages = Stages(
        scenario=scenario,
        trace=trace,
        scale=scale,
        begin_s=from_day * DAY_S,
        span_s=None if days is None else days * DAY_S,
        crashes=crashes,
    )
    _check_part(stages)

    def arrivals_of(seed: int) -> Arrivals:
        drawn = freed(partial(stages.arrivals, seed))
        if not len(drawn):
            where = f" with seed {seed}" if len(seeds) > 1 else ""
            raise BadInput(
                f"--scale {scale:g}: nothing arrives in the part that is replayed{where}; take more of it"
            )
        return drawn

    with _memory_for(stages):
        arrivals = arrivals_of(seeds[0])
        for other in seeds[1:]:
            # Kept only while it is played; that nobody comes in it is told before the minutes of the first.
            arrivals_of(other)
        # Before the minutes of a simulation: what was done of it when somebody ends it is not lost for this.
        better = freed(partial(asked.better, arrivals)) if isinstance(trace, RequestTrace) else None
    names = list(KINDS) if "all" in policies else [name for name in KINDS if name in (policies or USUAL)]
    routings = list(Routing) if routing == "both" else [Routing(routing)]
    cases = [
        Case(seed=seed, routing=way, policy=name) for seed in seeds for way in routings for name in names
    ]
    done = play(cases, stages, arrivals, jobs)
    report = Report(
        scenario=scenario,
        world=stages.world(seeds[0]),
        arrivals=arrivals,
        scale=scale,
        from_day=from_day,
        days=days,
        whole_s=trace.span_s,
        taken=loaded.notes,
        began=None if trace.began is None else trace.began + timedelta(days=from_day),
        lengths_from_trace=isinstance(trace, RequestTrace),
        results=done.results,
        currency=asked.question.snapshot.config.prices.currency or "",
        better=better,
        missing=done.missing,
        seeds=seeds,
        worlds=done.worlds,
    )
    if page is not None:
        write_page(page, simulation_page(report))
        note([f"wrote {page}"])
    if output != "text":
        print_data(data_of(report), output)
    else:
        drawing.show(simulation_report(report))
    raise SystemExit(INTERRUPTED if done.missing else FITS)


def _refuse_twins(seeds: tuple[int, ...]) -> None:
    for place, seed in enumerate(seeds):
        if seed in seeds[:place]:
            raise BadInput(f"--seed {seed} is given twice, and twice it is the same world")


def _is_there(name: str) -> bool:
    """Without a try to open it, which a pipe takes for its reader's end."""
    try:
        return name == "-" or Path(name).exists()
    except OSError:
        return False


def _loaded(name: str) -> Loaded:
    try:
        loaded = freed(partial(load, Path(name)))
    except BadTrace as error:
        raise BadInput(f"--trace: {error}") from None
    except MemoryError:
        raise BadInput(f"--trace {name}: needs more memory than there is; bring a part of it") from None
    note(loaded.notes)
    if loaded.moved:
        stood = f"{drawing.many(loaded.moved, 'line')} stood after a later one"
        note([f"{loaded.trace.name}: {stood}; they are replayed in order of time"])
    # A file's name is bytes, and these may be no text.
    named = replace(loaded.trace, name=printable(loaded.trace.name))
    return replace(loaded, trace=named, notes=tuple(map(printable, loaded.notes)))


@contextmanager
def _memory_for(stages: Stages) -> Iterator[None]:
    """A context around the drawing of a world's requests, which turns what cannot be held into BadInput."""
    try:
        yield
    except MemoryError:
        raise BadInput(beyond_memory(_about(stages))) from None


def _about(stages: Stages) -> float:
    """How many requests are played."""
    end_s = stages.trace.span_s
    if stages.span_s is not None:
        end_s = min(end_s, stages.begin_s + stages.span_s)
    return expected(stages.trace, stages.begin_s, end_s, stages.scale)


def _check_part(stages: Stages) -> None:
    if stages.begin_s >= stages.trace.span_s:
        raise BadInput(
            f"--from-day {stages.begin_s / DAY_S:g}: the trace ends after {span(stages.trace.span_s)}"
        )
    about = _about(stages)
    if about > MOST_REQUESTS:
        raise BadInput(
            f"--trace: some {about:,.0f} requests would be replayed, at most {MOST_REQUESTS:,} are; take a part with --days, or less "
            "with --scale"
        )
