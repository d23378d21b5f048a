"""`plimsoll ramp`: measures how much load an endpoint takes, what limits it, and whether the plan was right."""

from __future__ import annotations

import asyncio

import click

from plimsoll.cli import bench_options as options
from plimsoll.cli import drawing, inputs, ramp_plan
from plimsoll.cli.bench_run import Progress, connections, new_salt, run_load
from plimsoll.cli.errors import BAD_INPUT, DOES_NOT_FIT, FITS, INTERRUPTED, BadInput, note
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.page import check_page, write_page
from plimsoll.cli.ramp_page import ramp_page
from plimsoll.cli.ramp_record import recorder_of
from plimsoll.cli.ramp_report import ramp_report
from plimsoll.cli.ramp_target import target
from plimsoll.cli.reaching import namespace_option
from plimsoll.load.bench import session
from plimsoll.load.conclusions import Ramp
from plimsoll.load.ramp import RampPlan, at_most, ramp
from plimsoll.load.result import data_of
from plimsoll.load.workload import ClosedLoop, Workload


@click.command("ramp", cls=options.LoadCommand)
@click.argument("what", metavar="NAME|URL", required=False)
@namespace_option("Of NAME. Default: the only one that has it.")
@click.option("--url", metavar="URL", help="Measure this address of NAME, such as one that is forwarded.")
@options.endpoint_options
@click.option(
    "--by",
    type=click.Choice(["rate", "concurrency"]),
    default="rate",
    show_default=True,
    help="What rises: requests a second, or requests at once.",
)
@click.option(
    "--start", type=options.positive, default="1", show_default=True, metavar="N", help="The first load."
)
@click.option(
    "--max",
    "most",
    type=options.positive,
    default="256",
    show_default=True,
    metavar="N",
    help="The highest one.",
)
@click.option(
    "--step-duration",
    "step_s",
    type=options.seconds,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long each load is measured, after it has settled.",
)
@options.shape_options
@click.option(
    "--metrics-url",
    "metrics",
    multiple=True,
    metavar="URL",
    help="Where the engine exports metrics; once for each pod.  [default: NAME's pods, or URL/metrics]",
)
@click.option(
    "--gpu-metrics",
    multiple=True,
    metavar="URL",
    help="Where a DCGM exporter does; once for each node of NAME's pods, whose GPUs alone count.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(),
    metavar="FILE",
    help="Compare with what `plimsoll plan -o json` wrote.",
)
@inputs.files_option
@fleet_options
@inputs.config_option
@inputs.online_option
@click.option("--name", metavar="NAME", help="Which of several plans the endpoint serves.")
@click.option(
    "--html",
    "page",
    type=click.Path(),
    metavar="FILE",
    help="Write a page with the picture, complete in itself.",
)
@click.option(
    "--record",
    "recorded",
    is_flag=True,
    help="Hand the result of NAME to the operator: plans of its model on its GPU learn from it.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
@output_option
def ramp_command(
    *,
    what: str | None,
    namespace: str | None,
    url: str | None,
    model: str | None,
    endpoint_type: str,
    api_key: str | None,
    headers: tuple[str, ...],
    timeout_s: float,
    by: str,
    start: float,
    most: float,
    step_s: float,
    input_tokens: str | None,
    output_tokens: str | None,
    prefix_tokens: int,
    prefix_count: int,
    seed: int,
    slo: str | None,
    metrics: tuple[str, ...],
    gpu_metrics: tuple[str, ...],
    plan_file: str | None,
    files: tuple[str, ...],
    fleet: FleetChoice,
    config_file: str | None,
    online: bool,
    name: str | None,
    page: str | None,
    recorded: bool,
    as_json: bool,
    output: str,
) -> None:
    """Raise the load on a deployment, or on any endpoint, until more stops paying.

    Loads double until p99 ITL grows faster than the load or answers no longer keep up; one more step confirms it, two
    narrow it down. What holds the engine back is told from the metrics it exports meanwhile. Of a deployment's NAME the
    Service, the pods' metrics and the pinned plan are found with the kubeconfig; run it where the cluster's addresses can be
    reached, or say another with --url. The plan's figures (of --plan, or -f and a fleet, for any endpoint) stand beside the
    measured ones, and its lengths and targets are taken where none are given. With --record the operator takes the result into
    what it has learned, where it corrects the predictions of later plans.
    Ctrl-C ends the load and prints what was measured. Exit code: 0 done, 2 the first load was too much already, 3 the
    question or the endpoint is wrong, it went away meanwhile, or the operator takes no record, 130 interrupted.

    \b
    Examples:
      plimsoll ramp chat -n team-a --html ramp.html
      plimsoll ramp chat -n team-a --record
      plimsoll ramp http://localhost:8000 --input-tokens 800 --output-tokens 200 --slo ttft=1000,itl=50
      plimsoll ramp http://localhost:8000 --by concurrency --step-duration 1m --html ramp.html
      plimsoll ramp http://chat.example:8000 -f llm.yaml --snapshot prod.yaml -o json
    """
    if page is not None:
        check_page(page, plan_file, *files, fleet.snapshot_file, fleet.nodes_file, config_file)
    held = _held(plan_file, files, fleet, config_file, name, online=online)
    measured = target(what, url=url, namespace=namespace, context=fleet.context or None)
    if gpu_metrics and measured.deployment is None:
        raise BadInput(
            "--gpu-metrics: an address says nothing of whose GPUs answer, and an exporter knows those of everybody on its node; "
            "give the NAME of a deployment"
        )
    held = held or measured.held
    recorder = (
        recorder_of(measured.deployment, fleet.context or None, elsewhere=url is not None)
        if recorded
        else None
    )
    given, answered = held.lengths if held else (512, 128)
    shape = Workload(
        pattern=ClosedLoop(1),
        input_tokens=options.lengths(input_tokens, given, "--input-tokens"),
        output_tokens=options.lengths(output_tokens, answered, "--output-tokens"),
        prefix_tokens=prefix_tokens,
        prefixes=prefix_count,
        seed=seed,
    )
    options.check_prefix(prefix_tokens, shape.input_tokens)
    rising = RampPlan(
        closed_loop=by == "concurrency", start=start, most=most, step_s=step_s, in_flight=connections()
    )
    _check(rising)
    endpoint = options.endpoint(
        measured.url,
        model=model,
        endpoint_type=endpoint_type,
        api_key=api_key,
        headers=headers,
        timeout_s=timeout_s,
    )
    targets = options.slo(slo) or (held.slo if held else None)
    pages = metrics or measured.pages or (f"{endpoint.root}/metrics",)

    async def work(stop: asyncio.Event) -> Ramp:
        with Progress(None, None) as progress:
            async with session(endpoint, seed, salt=new_salt(), stop=stop) as opened:
                progress.tell(_how_long(rising))
                return await ramp(
                    opened,
                    shape,
                    rising,
                    slo=targets,
                    metrics=(*pages, *gpu_metrics),
                    pods=measured.pods,
                    expected=held.expected if held else None,
                    stop=stop,
                    watch=progress,
                    before=lambda load: progress.step(f"{load:g} {_unit(rising)}"),
                )

    result = run_load(work)
    if page is not None:
        write_page(page, ramp_page(result))
        note([f"{page}: the picture"])
    if as_json or output != "text":
        print_data(data_of(result), "json" if as_json else output)
    else:
        drawing.show(ramp_report(result))
    if recorder is not None:
        recorder.record(result, prefix_tokens)
    raise SystemExit(_exit_code(result))


def _held(
    plan_file: str | None,
    files: tuple[str, ...],
    fleet: FleetChoice,
    config_file: str | None,
    name: str | None,
    *,
    online: bool,
) -> ramp_plan.Held | None:
    if plan_file is not None and files:
        raise BadInput("--plan and -f both say what to compare with; give one of them")
    if plan_file is not None:
        return ramp_plan.from_file(plan_file, name)
    if files:
        return ramp_plan.from_resource(files, fleet, config_file, name, online=online)
    return None


def _how_long(rising: RampPlan) -> str:
    loads, seconds = at_most(rising)
    minutes = max(1, round(loads * seconds / 60))
    return (
        f"{drawing.many(loads, 'load')} at most, of {rising.start:g} to {rising.most:g} {_unit(rising)} (--max), each for {seconds:g} s "
        f"(--step-duration) and as long as its answers take: {drawing.many(minutes, 'minute')} or more where it goes so far"
    )


def _unit(rising: RampPlan) -> str:
    return "at once" if rising.closed_loop else "requests/s"


def _check(rising: RampPlan) -> None:
    if rising.closed_loop and rising.start != int(rising.start):
        raise BadInput(f"--start: {rising.start:g} requests at once cannot be; give a whole number")
    if rising.start > rising.most:
        raise BadInput(f"--start: {rising.start:g} is above --max {rising.most:g}")
    if rising.step_s < 1:
        raise BadInput(
            f"--step-duration: {rising.step_s:g} s is too short to measure anything; give 1s or more"
        )


def _exit_code(result: Ramp) -> int:
    if result.interrupted:
        return INTERRUPTED
    if result.away is not None:
        return BAD_INPUT
    too_much = result.knee is not None and result.knee.load is None
    return DOES_NOT_FIT if too_much or result.tried is None else FITS
