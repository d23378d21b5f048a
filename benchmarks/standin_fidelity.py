"""How far the stand-in engine is from real vLLM: `standin_fidelity.py [--latencies FILE] [--json] [--write]`.

Real vLLM on the CPU and a tiny model, three loads by two mixes of lengths, each load so many users who ask again as soon as
they are answered. The engine computes with one thread: with two on two cores each layer of a longer context waits for a second
thread whose core the engine's own server and the users have, 5 ms steps become 30 ms ones, and what is measured is the machine. The cells are measured in turns, several times around, so that what else the machine does meets all alike;
its load is printed. The model's constants are fitted on three cells and scored on the other three, and the other way round; then
the stand-in serves the same users over HTTP with these constants. What the real engine differs by from one turn to the next
stands beside: no model can be nearer. Turns of the real engine may be kept in a file and added to later. With a file of measured points of GPUs, the model's closed loop is scored on each
model and hardware with constants fitted without it. `--write` keeps the errors for `plimsoll simulate`, which tells them beside its figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "e2e"))  # programs there find one another by bare name, as those here do

import arguments  # noqa: E402
from cluster.engine import EngineProcess, EngineUnavailable  # noqa: E402
from cluster.images import VLLM_CPU_VERSION  # noqa: E402
from cluster.processes import Ports, Processes  # noqa: E402
from fidelity_fit import Constants, fit, off  # noqa: E402
from fidelity_kept import write  # noqa: E402
from fidelity_pairs import pairs, print_pairs  # noqa: E402
from fidelity_replay import SCRAPE_S, Figures, Seen, replay  # noqa: E402
from fidelity_report import Compared, Measured, print_tables, row, summary  # noqa: E402
from latency_rows import points_file  # noqa: E402
from models import dense  # noqa: E402
from plimsoll.load.answers import Answer, Outcome  # noqa: E402
from plimsoll.load.bench import Session, session  # noqa: E402
from plimsoll.load.client import Api, Endpoint  # noqa: E402
from plimsoll.load.engine import look  # noqa: E402
from plimsoll.load.lengths import Uniform  # noqa: E402
from plimsoll.load.workload import Ask, ClosedLoop, Workload, asks  # noqa: E402
from plimsoll.simulate.steps import Limits  # noqa: E402
from standin.told import write_times  # noqa: E402

LIMITS: Final = Limits(
    blocks=160, block_size=32, max_num_seqs=48, max_num_batched_tokens=2048, max_model_len=2048
)
"""A small pool, so that the highest load fills it."""
WORDS: Final = (
    f"--block-size={LIMITS.block_size}",
    f"--num-gpu-blocks-override={LIMITS.blocks}",
    f"--max-num-seqs={LIMITS.max_num_seqs}",
    f"--max-num-batched-tokens={LIMITS.max_num_batched_tokens}",
    f"--max-model-len={LIMITS.max_model_len}",
)
LOADS: Final = {"low": 2, "middle": 12, "high": 40}
"""Users."""
MIXES: Final = {
    "short": (Uniform(40, 120), Uniform(40, 120)),
    "long": (Uniform(150, 450), Uniform(20, 60)),
}
ENVIRONMENT: Final = {"OMP_NUM_THREADS": "1"}
FOLDS: Final = (
    frozenset({("low", "short"), ("middle", "long"), ("high", "short")}),
    frozenset({("low", "long"), ("middle", "short"), ("high", "long")}),
)
SETTLE_S: Final = 3.0
WEIGHTS: Final = {"ttft_p50": 1.0, "itl_p50": 1.0, "ttft_p99": 0.3, "itl_p99": 0.3}
Key = tuple[str, str]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    turns: int
    span_s: float
    kept: Path | None = None
    """A file of turns of the real engine; those that are there are not measured again."""


def lengths(mix: str) -> Workload:
    given, answered = MIXES[mix]
    return Workload(pattern=ClosedLoop(1), input_tokens=given, output_tokens=answered, seed=7)


def cells() -> list[Key]:
    return [(load, mix) for mix in MIXES for load in LOADS]


class Users:
    """So many of them before one endpoint, for a while."""

    def __init__(self, opened: Session, settings: Settings) -> None:
        self._opened, self._settings = opened, settings

    async def measure(self, key: Key) -> Seen:
        """Requests that began after the settling, gaps and all; what still runs at the end is dropped by its client."""
        load, mix = key
        seen, answers = Seen(), list[Answer]()
        start = asyncio.get_running_loop().time()
        from_, until = start + SETTLE_S, start + SETTLE_S + self._settings.span_s
        with asks(lengths(mix)) as wanted:

            async def user() -> None:
                while asyncio.get_running_loop().time() < until:
                    ask: Ask = next(wanted)
                    prompt = self._opened.prompts.text(ask)
                    answers.append(await self._opened.client.ask(self._opened.known, ask, prompt))

            tasks = [asyncio.create_task(user()) for _ in range(LOADS[load])]
            await asyncio.sleep(SETTLE_S)
            await self._look(seen, until)
            for task in tasks:
                task.cancel()  # the client takes it as the end of the run: what was seen counts
            await asyncio.gather(*tasks, return_exceptions=True)
        for one in answers:
            if one.outcome not in (Outcome.OK, Outcome.UNFINISHED):
                raise RuntimeError(f"a request failed: {one.problem}")
            if one.sent >= from_ and one.arrivals:
                seen.ttfts.append(one.arrivals[0] - one.sent)
                seen.gaps += [
                    after - before for before, after in zip(one.arrivals, one.arrivals[1:], strict=False)
                ]
        return seen

    async def _look(self, seen: Seen, until: float) -> None:
        loop = asyncio.get_running_loop()
        url = f"{self._opened.client.endpoint.root}/metrics"
        first = last = look([await self._opened.client.text(url)])
        while loop.time() < until:
            last = look([await self._opened.client.text(url)])
            if last.running is None or last.waiting is None or last.kv_usage is None:
                raise RuntimeError(f"{url} does not say what runs, waits and is cached")
            seen.looks.append((last.running, last.waiting, last.kv_usage))
            await asyncio.sleep(SCRAPE_S)
        seen.preemptions = round((last.preemptions or 0) - (first.preemptions or 0))
        seen.finished = round((last.finished or 0) - (first.finished or 0))


async def measured(
    url: str,
    settings: Settings,
    say: Say,
    found: dict[Key, Measured],
    done: Callable[[], None] = lambda: None,
) -> None:
    """Adds to what is found until each cell has its turns."""
    for turn in range(settings.turns):
        for key, one in found.items():
            if len(one.turns) > turn:
                continue
            # Texts of their own for each turn, or the cache would answer.
            async with session(Endpoint(url=url, api=Api.COMPLETIONS), 7, salt=time.monotonic_ns()) as opened:
                seen = await Users(opened, settings).measure(key)
            one.turns.append(seen)
            one.loads.append(os.getloadavg()[0])
            done()
            say(
                f"turn {turn + 1}, {' '.join(key)}: {len(seen.ttfts)} first tokens, load average {os.getloadavg()[0]:.1f}"
            )


def real_engine(settings: Settings, say: Say) -> dict[Key, Measured]:
    file = settings.kept
    found = {key: Measured() for key in cells()}
    if file is not None and file.exists():
        for name, kept in json.loads(file.read_text()).items():
            load, mix = name.split()
            found[load, mix] = Measured.read(kept)
    if all(len(one.turns) >= settings.turns for one in found.values()):
        return found

    def keep() -> None:
        if file is not None:
            file.write_text(json.dumps({" ".join(key): one.data() for key, one in found.items()}))

    with tempfile.TemporaryDirectory() as folder:
        model = dense().write(Path(folder) / "dense")
        say("starting the engine")
        with EngineProcess(model, "--served-model-name=dense", *WORDS, environment=ENVIRONMENT) as engine:
            asyncio.run(measured(engine.url, settings, say, found, keep))
    return found


def modelled(constants: Constants, key: Key, settings: Settings) -> Figures:
    load, mix = key
    with asks(lengths(mix)) as wanted:
        asked = ((one.input_tokens, one.output_tokens) for one in islice(wanted, 100_000))
        return replay(
            constants.times(LIMITS.max_num_seqs),
            LIMITS,
            asked,
            users=LOADS[load],
            settle_s=SETTLE_S,
            span_s=settings.span_s,
            interference=constants.interference(),
        ).figures()


def fitted(real: Mapping[Key, Figures], fold: frozenset[Key], settings: Settings) -> Constants:
    def loss(constants: Constants) -> float:
        total = 0.0
        for key in sorted(fold):
            model = modelled(constants, key, settings)
            total += sum(
                weight * off(getattr(model, name), getattr(real[key], name))
                for name, weight in WEIGHTS.items()
            )
        return total

    return fit(loss)[0]


@contextmanager
def standing_in(constants: Constants) -> Iterator[str]:
    """A stand-in engine as a process, with these constants; its address."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-standin-") as folder:
        times = Path(folder) / "times.json"
        times.write_text(
            write_times(constants.times(LIMITS.max_num_seqs), constants.interference()), encoding="utf-8"
        )
        ports, processes = Ports(), Processes(Path(folder))
        port = ports.take()
        ports.release()
        words = [*WORDS, f"--port={port}", "--host=127.0.0.1"]
        argv = [sys.executable, "-m", "standin", f"--times={times}", "serve", "dense", *words]
        url = f"http://127.0.0.1:{port}"
        try:
            processes.start("standin", ["env", f"PYTHONPATH={ROOT / 'e2e'}", *argv])
            processes.wait("standin", lambda: healthy(url), 60.0)
            yield url
        finally:
            processes.stop()


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 - made above
            return bool(answer.status == 200)
    except OSError:
        time.sleep(0.1)
        return False


def run(settings: Settings, say: Say) -> dict[str, Any]:
    real = real_engine(settings, say)
    figures = {key: one.all() for key, one in real.items()}
    say("fitting")
    # Each cell is scored with the constants of the fold that it is no part of.
    constants = [fitted(figures, fold, settings) for fold in FOLDS]
    stand_in: dict[Key, Figures] = {}
    for fold, found in zip(FOLDS, constants, strict=True):
        seen = {key: Measured() for key in cells() if key not in fold}
        with standing_in(found) as url:
            asyncio.run(measured(url, replace(settings, turns=1), say, seen))
        stand_in |= {key: one.all() for key, one in seen.items()}
    rows = []
    for key in cells():
        own = next(place for place, fold in enumerate(FOLDS) if key in fold)
        compared = Compared(
            real=real[key],
            left_out=modelled(constants[1 - own], key, settings),
            fitted=modelled(constants[own], key, settings),
            stand_in=stand_in[key],
        )
        load, mix = key
        rows.append({"load": load, "users": LOADS[load], "mix": mix, **row(compared)})
    return {
        "cells": rows,
        "constants": [
            {"fitted_on": sorted(map(" ".join, fold)), **one.data()}
            for fold, one in zip(FOLDS, constants, strict=True)
        ],
        "summary": {name: summary(rows, name) for name in ("left_out", "in_sample", "stand_in")},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument(
        "--latencies", type=points_file, metavar="FILE", help="measured points of GPUs, as CSV"
    )
    parser.add_argument("--no-engine", action="store_true", help="the points of --latencies alone")
    parser.add_argument(
        "--turns", type=arguments.count, default=3, help="times around the cells (default: %(default)s)"
    )
    parser.add_argument(
        "--kept",
        type=arguments.kept_file,
        metavar="FILE",
        help="keep turns of the real engine there, and go on from those",
    )
    parser.add_argument(
        "--span", type=arguments.amount, default=8.0, metavar="SECONDS", help="of a cell in a turn"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="keep what was measured for `plimsoll simulate`")
    chosen = parser.parse_args()

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    began = time.monotonic()
    result: dict[str, Any] = {}
    try:
        if chosen.no_engine:
            result = {"cells": None, "missing": {"cells": "not asked for"}}
        else:
            result = run(Settings(turns=chosen.turns, span_s=chosen.span, kept=chosen.kept), say)
    except EngineUnavailable as why:
        result = {"cells": None, "missing": {"cells": str(why).partition("\n")[0]}}
    if chosen.latencies is not None:
        say("the closed loop on measured points")
        result["pairs"] = pairs(chosen.latencies)
    result["seconds"] = round(time.monotonic() - began)
    if chosen.write:
        today = datetime.now(UTC).date()  # noqa: TID251 - when this program ran
        write(result, chosen.latencies, engine=VLLM_CPU_VERSION, today=today)
    if chosen.json:
        print(json.dumps(result, indent=1))
        return 0
    if result["cells"] is not None:
        print_tables(result)
    else:
        print(f"no real engine: {result['missing']['cells']}")
    if "pairs" in result:
        print_pairs(result["pairs"])
    print(f"{result['seconds']} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
