"""What is said of an engine without a GPU, beside a real engine on this machine's GPU: `on_gpu.py --gpu H100 [--out FOLDER] [--json]`.

The engine is the machine's own (`--engine`, by default the `vllm` on PATH); its model has the real shape and made-up weights, which
takes no download and changes no time. `start` tells the cache that the engine ends up with beside the ledger's; `speed` sends so many
users who ask again as soon as they are answered, and tells the planner's and the engine model's latencies beside the measured ones;
`turns` runs two engines on the one GPU, one of which has the watermark that a retune would choose, and the same requests for both: by
default a crowd in front of a short pool and an open loop that has room left, with `--crowded` the crowd alone.

Under `--out` stands what was measured, as soon as it is: `starts.jsonl` and `latencies.csv`, in the forms that `kv_accuracy.py` and
`latency_accuracy.py` read, and `turns.jsonl`. `--kept FOLDER` needs no GPU: it compares such files, as those below `measured/`.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import math
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

import arguments  # noqa: E402
from fidelity_kept import write_gpu  # noqa: E402
from models import shaped  # noqa: E402
from on_gpu_engine import READY_SECONDS, EngineOnGpu  # noqa: E402
from on_gpu_said import BLOCK, caches, latencies, rows_of, summary, turn  # noqa: E402
from plimsoll.control.retune import sizing  # noqa: E402
from plimsoll.control.retune.ladder import AIM  # noqa: E402
from plimsoll.facts.models import catalogue_config, lookup  # noqa: E402
from plimsoll.load.bench import session  # noqa: E402
from plimsoll.load.client import Api, Endpoint  # noqa: E402
from plimsoll.load.drive import Limits  # noqa: E402
from plimsoll.load.lengths import Fixed  # noqa: E402
from plimsoll.load.result import Result  # noqa: E402
from plimsoll.load.slo import Slo, parse_slo  # noqa: E402
from plimsoll.load.workload import ClosedLoop, Workload  # noqa: E402
from plimsoll.planning.layouts.layout import Layout  # noqa: E402
from plimsoll.planning.memory.kv import kv_bytes_per_token  # noqa: E402
from preempting import ANSWERS, PROMPTS  # noqa: E402
from retune_ratios import PROMISED, Side, by_turns, in_turns, told  # noqa: E402

PARTS: Final = ("start", "speed", "turns")
STARTS, POINTS, RUNS = "starts.jsonl", "latencies.csv", "turns.jsonl"
ROUNDS: Final = 5
"""Answers of each user, on average."""
HALVES: Final = 0.4
"""Of the GPU, that has to be free when each of two engines begins."""
SPARE: Final = 1.25
"""Of what a short pool takes: an engine wants room for one request of the longest length, and counts it a little differently."""
MEASURED: Final = ("preemptions", "tokens_s", "e2e_p99_s", "ttft_p99_s", "max_gap_s")
TOLD: Final = ("slo_pct",)
"""Of what is measured, that the engine model is not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is the same for every part."""

    engine: str
    words: tuple[str, ...]
    model: str
    gpu: str
    length: int
    folder: Path
    out: Path
    ready_s: float

    def written(self) -> Path:
        config = catalogue_config(self.model)
        if config is None:
            raise SystemExit(f"{self.model} is not in the catalogue; `plimsoll models` lists it")
        return shaped("model", config).write(self.folder / "model")

    @contextmanager
    def serving(self, *words: str) -> Iterator[EngineOnGpu]:
        said = (f"--max-model-len={self.length}", "--served-model-name=model", *self.words, *words)
        with EngineOnGpu(self.engine, self.folder / "model", *said, ready_s=self.ready_s) as engine:
            say(f"ready after {engine.start_s} s: {engine.said()}")
            yield engine

    def about(self, engine: EngineOnGpu) -> dict[str, Any]:
        return {"model": self.model, "system": self.gpu, "vllm_version": engine.version, "tp": 1}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def started(on: Ground, engine: EngineOnGpu) -> None:
    """One row of an observed start."""
    today = datetime.now(UTC).date()  # noqa: TID251 - when this program ran
    about = {"measured": str(today), "gpu": on.gpu, "max_model_len": on.length, "start_s": engine.start_s}
    append(on.out / STARTS, {**on.about(engine), **about, **engine.said()})


def append(file: Path, row: Mapping[str, Any]) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")


def quick(
    on: Ground, engine: EngineOnGpu, shapes: Sequence[tuple[int, int]], users: Sequence[int], seconds: float
) -> None:
    """A point of each shape and number of users; none begins after so many seconds."""
    until = time.monotonic() + seconds
    with (on.out / POINTS).open("w", newline="") as file:
        points: csv.DictWriter[str] | None = None
        for prompt, answer in shapes:
            for each in users:
                if time.monotonic() > until:
                    say(f"no time is left for {each} users of {prompt}:{answer}")
                    continue
                row = {**on.about(engine), **_point(engine, prompt=prompt, answer=answer, users=each)}
                if points is None:
                    points = csv.DictWriter(file, list(row), lineterminator="\n")
                    points.writeheader()
                points.writerow(row)
                file.flush()
                told(row)


def _point(engine: EngineOnGpu, *, prompt: int, answer: int, users: int) -> dict[str, Any]:
    workload = Workload(
        pattern=ClosedLoop(users),
        input_tokens=Fixed(prompt),
        output_tokens=Fixed(answer),
        seed=prompt + users,
    )
    requests = max(8, ROUNDS * users)
    result = asyncio.run(_asked(engine.url, workload, requests))
    if result.ttft_ms is None or result.tpot_ms is None or result.counts.bad:
        raise SystemExit(f"{users} users: {result.counts.bad} failed: {result.problems}")
    return {
        "precision": "bf16",
        "input_tokens": prompt,
        "output_tokens": answer,
        "concurrency": users,
        "requests": requests,
        "ttft_ms": round(result.ttft_ms.mean, 2),
        "tpot_ms": round(result.tpot_ms.mean, 3),
        "output_tokens_s": round(result.rates.output_tokens),
        "client_late_ms": None if result.lag_ms is None else round(result.lag_ms.p99, 1),
    }


async def _asked(url: str, workload: Workload, requests: int) -> Result:
    async with session(Endpoint(url=url, api=Api.COMPLETIONS), workload.seed) as opened:
        limits = Limits(requests=requests, drain_s=120)
        return await opened.measure(workload, limits, slo=None, stop=asyncio.Event())


def turned(on: Ground, *, pool: int, users: int, seeds: int, requests: int, slo: Slo, crowded: bool) -> None:
    """As it was and with what a retune would keep free, each beside the other on one GPU."""
    kept = watermark(pool)
    words = (
        f"--gpu-memory-utilization={HALVES}",
        # So that none measures what is free while the other one takes it.
        f"--kv-cache-memory-bytes={pool_bytes(on.model, pool)}",
        f"--block-size={BLOCK}",
        f"--num-gpu-blocks-override={pool // BLOCK}",
        f"--max-num-seqs={users}",
    )
    say(f"watermark 0 to {kept} of 1,000 blocks")
    with both(on, words, (*words, f"--watermark={kept / 1000}")) as (before, after):
        about = {**on.about(before), "pool_tokens": pool, "sequences": users, "requests": requests}
        promised = dict(slo.targets())

        def heard(run: dict[str, Any]) -> None:
            told(run)
            mark = kept if run["side"] == "after" else 0
            append(on.out / RUNS, {**about, "watermark": mark, **run, "slo": promised})

        if not crowded:
            in_turns(before.url, after.url, seeds=seeds, users=users, requests=requests, slo=slo, tell=heard)
            return
        sides = Side("before", before.url, slo), Side("after", after.url, slo)
        for side in sides:
            told(side.run(ClosedLoop(users // 2), 0, users // 2))  # what an engine does once for all its time
        by_turns(*sides, ClosedLoop(users), seeds=seeds, requests=requests, tell=heard)


@contextmanager
def both(on: Ground, *words: Sequence[str]) -> Iterator[list[EngineOnGpu]]:
    """They start at the same time, as each takes minutes."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        yield list(pool.map(lambda said: stack.enter_context(on.serving(*said)), words))


def pool_bytes(model: str, tokens: int) -> int:
    """For the cache of one engine, with what it needs beside the pool."""
    if (facts := lookup(model)) is None:
        raise SystemExit(f"{model} is not in the catalogue; `plimsoll models` lists it")
    return round(SPARE * tokens * kv_bytes_per_token(facts.architecture, Layout()))


def watermark(pool: int) -> int:
    """What the ladder would keep free for a tenth of the preemptions to be left; lengths are as they are drawn."""
    prompt, answer = (PROMPTS.low + PROMPTS.high) / 2, ANSWERS.median
    live = sizing.Live(mean=prompt + answer / 2, deviation=answer / 2, output=answer)
    wanted = sizing.watermark(pool, BLOCK, live, preempted=1.0, aim=AIM / 2, now_permille=0)
    return min(sizing.MOST_WATERMARK, wanted)


def compared(folder: Path) -> dict[str, Any]:
    """What was measured, each with what is said of it without a GPU."""
    report: dict[str, Any] = {}
    if (file := folder / STARTS).exists():
        report["start"] = [{**row, **said} for row, said in zip(rows_of(file), caches(file), strict=True)]
    if (file := folder / POINTS).exists():
        with file.open(newline="") as lines:
            report["speed"] = [
                {**row, **latencies(row, int(row["requests"]))} for row in csv.DictReader(lines)
            ]
    if (file := folder / RUNS).exists():
        report["turns"] = [{**row, "played": turn(row)} for row in rows_of(file)]
    return report


def table(report: Mapping[str, Any]) -> Iterator[str]:
    for row in report.get("start", ()):
        yield (
            f"{row['model']} on {row['system']}, vLLM {row['vllm_version']}: {row['kv_tokens']:,.0f} tokens of cache"
            f" measured, {row.get('ledger_predicted', 0):,} said ({row.get('ledger_error_pct', 0):+.2f}%); ready after {row['start_s']} s"
        )
    if report.get("speed"):
        yield "\nusers  prompt  answer   TTFT ms  played  planned   TPOT ms  played  planned  tokens/s  played"
    for row in report.get("speed", ()):
        yield (
            f"{row['concurrency']:>5}{row['input_tokens']:>8}{row['output_tokens']:>8}"
            f"{float(row['ttft_ms']):>10.0f}{row['played_ttft_ms']:>8.0f}{row['planned_ttft_ms']:>9.0f}"
            f"{float(row['tpot_ms']):>10.2f}{row['played_tpot_ms']:>8.2f}{row['planned_tpot_ms']:>9.2f}"
            f"{float(row['output_tokens_s']):>10.0f}{row['played_tokens_s']:>8}"
        )
    if report.get("turns"):
        more = [name for name in TOLD if any(name in row for row in report["turns"])]
        yield "\nload, seed: watermark      " + "".join(f"{name:>22}" for name in (*MEASURED, *more))
        for row in report["turns"]:
            pairs = [f"{row[name]:g} ({row['played'][name]:g})" for name in MEASURED]
            pairs += [f"{row[name]:g}" for name in more if name in row]
            yield f"{row['load']}, {row['seed']}: {row['watermark']:<8}" + "".join(
                f"{pair:>22}" for pair in pairs
            )
        yield "in brackets what the engine model answers to the very same requests"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", type=arguments.gpu, help="what it is, as `plimsoll gpus` names it")
    parser.add_argument("--engine", default="vllm", help="the command that has `serve`")
    parser.add_argument("--words", default="", help="further arguments of it, as in a shell")
    parser.add_argument(
        "--model", type=arguments.model, default="meta-llama/Llama-3.1-8B-Instruct", help="of the catalogue"
    )
    parser.add_argument("--length", type=arguments.count, default=32768, help="of the longest request")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--shapes",
        type=arguments.shape,
        nargs="+",
        default=[(1024, 256), (4096, 128)],
        metavar="PROMPT:ANSWER",
    )
    parser.add_argument("--users", type=arguments.count, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument(
        "--pool", type=arguments.count, default=32768, help="tokens of each engine's cache in turns"
    )
    parser.add_argument(
        "--crowd", type=arguments.count, default=128, help="users in turns, and requests that may run"
    )
    parser.add_argument("--crowded", action="store_true", help="in turns the crowd alone, with each seed")
    parser.add_argument("--slo", type=parse_slo, default=PROMISED, help="in turns, as ttft=1000,itl=50")
    parser.add_argument("--seeds", type=arguments.count, default=3)
    parser.add_argument(
        "--ready", type=arguments.amount, default=READY_SECONDS, help="seconds that an engine may start"
    )
    parser.add_argument(
        "--seconds", type=arguments.amount, default=math.inf, help="after which speed begins no point"
    )
    parser.add_argument("--requests", type=arguments.count, default=224, help="of each run in turns")
    parser.add_argument("--out", type=Path, help="a folder for what is measured")
    parser.add_argument(
        "--kept", type=Path, metavar="FOLDER", help="measure nothing, compare what stands there"
    )
    parser.add_argument("--write", action="store_true", help="keep the errors for `plimsoll simulate`")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    chosen = parser.parse_args()
    if chosen.kept is None and not chosen.gpu:
        parser.error("--gpu says what is measured; --kept FOLDER compares what was")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or an engine would be left
    with tempfile.TemporaryDirectory(prefix="plimsoll-on-gpu-") as name:
        out = chosen.kept or chosen.out or Path(name)
        if chosen.kept is None:
            out.mkdir(parents=True, exist_ok=True)
            measure(chosen, Path(name), out)
        report = compared(out)
    if not report:
        parser.error(f"nothing that was measured stands in {out}")
    if chosen.write:
        if (told := summary(report)) is None:
            parser.error("a start, closed loops and crowded runs are needed to tell errors")
        write_gpu(told)
    print(json.dumps(report, indent=1) if chosen.json else "\n".join(table(report)))
    return 0


def measure(chosen: argparse.Namespace, folder: Path, out: Path) -> None:
    on = Ground(
        engine=chosen.engine,
        words=tuple(shlex.split(chosen.words)),
        model=chosen.model,
        gpu=chosen.gpu,
        length=chosen.length,
        folder=folder,
        out=out,
        ready_s=chosen.ready,
    )
    on.written()
    if {"start", "speed"} & set(chosen.only):
        with on.serving() as engine:
            started(on, engine)
            if "speed" in chosen.only:
                quick(on, engine, chosen.shapes, chosen.users, chosen.seconds)
    if "turns" in chosen.only:
        turned(
            on,
            pool=chosen.pool,
            users=chosen.crowd,
            seeds=chosen.seeds,
            requests=chosen.requests,
            slo=chosen.slo,
            crowded=chosen.crowded,
        )


if __name__ == "__main__":
    sys.exit(main())
