"""`plimsoll bench`: measures what users of an endpoint would see under a given load."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from plimsoll.cli import bench_options as options
from plimsoll.cli import drawing
from plimsoll.cli.bench_report import bench_report
from plimsoll.cli.bench_run import Progress, connections, new_salt, run_load
from plimsoll.cli.errors import DOES_NOT_FIT, FITS, INTERRUPTED, BadInput, note
from plimsoll.cli.output import output_option, print_data
from plimsoll.load.bench import bench
from plimsoll.load.drive import Limits
from plimsoll.load.problems import LoadError
from plimsoll.load.result import Result, data_of
from plimsoll.load.traces import STDIN, Requests, open_trace
from plimsoll.load.workload import ClosedLoop, OpenLoop, Pattern, Replay, Workload

DURATION_S = 60.0


@click.command("bench", cls=options.LoadCommand)
@click.argument("url")
@options.endpoint_options
@click.option(
    "--concurrency", type=click.IntRange(1, 100_000), metavar="N", help="N requests at once, always."
)
@click.option(
    "--rate",
    type=options.positive,
    metavar="R",
    help="R requests a second, whether or not any is answered.",
)
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(),
    metavar="FILE",
    help="Requests, their times alone or rates of a CSV file, .gz too.",
)
@click.option(
    "--burstiness",
    type=options.positive,
    metavar="K",
    help="Of --rate: 1 is Poisson; less comes in bursts, more is regular.  [default: 1]",
)
@click.option(
    "--trace-speed",
    type=options.positive,
    metavar="X",
    help="2 plays the trace twice as fast.  [default: 1]",
)
@options.shape_options
@click.option(
    "--duration",
    "duration_s",
    type=options.seconds,
    metavar="TIME",
    help="How long to send.  [default: 60, traces: to their end]",
)
@click.option("--requests", type=click.IntRange(1), metavar="N", help="Send N requests, then end.")
@click.option(
    "--warmup",
    "warmup_s",
    type=options.seconds,
    metavar="TIME",
    default="0",
    help="Sent first and not measured.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
@output_option
def bench_command(
    *,
    url: str,
    model: str | None,
    endpoint_type: str,
    api_key: str | None,
    headers: tuple[str, ...],
    timeout_s: float,
    concurrency: int | None,
    rate: float | None,
    trace_file: str | None,
    burstiness: float | None,
    trace_speed: float | None,
    input_tokens: str | None,
    output_tokens: str | None,
    prefix_tokens: int,
    prefix_count: int,
    seed: int,
    slo: str | None,
    duration_s: float | None,
    requests: int | None,
    warmup_s: float,
    as_json: bool,
    output: str,
) -> None:
    """Send load to an OpenAI-compatible endpoint and measure what its users would see.

    One of --concurrency, --rate and --trace says how much. Latencies count from when a request was due. Prompts are common
    words; two requests at the start teach how many tokens they are. Ctrl-C ends the load and prints what was measured.
    Names that vllm bench, genai-perf and guidellm have for these options are taken too. Exit code: 0 done, 2 a target
    was missed, nothing was answered or not all was sent, 3 the question or the endpoint is wrong, 130 interrupted.

    \b
    Examples:
      plimsoll bench http://localhost:8000 --concurrency 16 --slo ttft=1000,itl=50
      plimsoll bench http://chat.example:8000 --rate 4 --input-tokens p50=800,p95=4000 --output-tokens 100..400
      plimsoll bench http://localhost:8000 --trace requests.csv.gz --trace-speed 2 --json
    """
    pattern = _pattern(concurrency, rate, trace_file, burstiness, trace_speed)
    if duration_s is None and requests is None and trace_file is None:
        duration_s = DURATION_S
    if duration_s is not None and duration_s <= warmup_s:
        raise BadInput(
            f"--duration: {duration_s:g} s is all warm-up; it must be more than --warmup {warmup_s:g}"
        )
    workload = Workload(
        pattern=pattern,
        input_tokens=options.lengths(input_tokens, 512, "--input-tokens"),
        output_tokens=options.lengths(output_tokens, 128, "--output-tokens"),
        prefix_tokens=prefix_tokens,
        prefixes=prefix_count,
        seed=seed,
    )
    if _brings_lengths(pattern):
        options.refuse_lengths(input_tokens, output_tokens, prefix_tokens)
    else:
        options.check_prefix(prefix_tokens, workload.input_tokens)
    endpoint = options.endpoint(
        url, model=model, endpoint_type=endpoint_type, api_key=api_key, headers=headers, timeout_s=timeout_s
    )
    targets = options.slo(slo)
    room = connections()
    if concurrency is not None and concurrency > room:
        raise BadInput(
            f"--concurrency: {concurrency:,} are more than the {room:,} files that may be open here"
        )
    limits = Limits(seconds=duration_s, requests=requests, warmup_s=warmup_s, in_flight=room)

    async def work(stop: asyncio.Event) -> Result:
        with Progress(duration_s, requests) as progress:
            return await bench(
                endpoint, workload, limits, slo=targets, stop=stop, watch=progress, salt=new_salt()
            )

    result = run_load(work)
    if as_json or output != "text":
        print_data(data_of(result), "json" if as_json else output)
    else:
        drawing.show(bench_report(result))
    raise SystemExit(_exit_code(result))


def _pattern(
    concurrency: int | None,
    rate: float | None,
    trace: str | None,
    burstiness: float | None,
    speed: float | None,
) -> Pattern:
    if [concurrency, rate, trace].count(None) != 2:
        raise BadInput("how much load: give one of --concurrency N, --rate R and --trace FILE")
    if burstiness is not None and rate is None:
        raise BadInput("--burstiness is of arrivals: give it with --rate")
    if speed is not None and trace is None:
        raise BadInput("--trace-speed is of a trace: give it with --trace")
    if concurrency is not None:
        return ClosedLoop(concurrency)
    if rate is not None:
        return OpenLoop(rate, burstiness or 1.0)
    return Replay(_looked_at(trace or ""), speed or 1.0)


def _looked_at(trace: str) -> Path:
    """The trace's path. What was guessed of the trace is told before a request is sent, as a wrong guess would send a thousand times the load.
    All lines are looked through, and none is kept: one that is wrong would end the load once it is its turn, with all that was measured."""
    path = Path(trace)
    if path == STDIN:
        raise BadInput("--trace -: is looked at before it is played, so name a file")
    try:
        with open_trace(path) as read:
            note(f"{path}: {one}" for one in read.notes)
            for _ in read.lines:
                pass
    except LoadError as error:
        raise BadInput(f"--trace: {error}") from None
    return path


def _brings_lengths(pattern: Pattern) -> bool:
    """Whether prompts are as long as a trace says, and share what it says."""
    if not isinstance(pattern, Replay):
        return False
    with open_trace(pattern.path) as read:
        return isinstance(read, Requests)


def _exit_code(result: Result) -> int:
    if result.interrupted:
        return INTERRUPTED
    # Of a load that this client could not hold nobody knows whether it fits.
    return DOES_NOT_FIT if result.kept is False or result.counts.not_sent or not result.counts.ok else FITS
