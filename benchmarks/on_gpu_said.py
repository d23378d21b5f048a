"""What is said without a GPU of what `on_gpu` measured on one: the ledger's cache, the planner's latencies, and the engine model under
the very same requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from kv_scores import from_config
from latency_rows import Row, row_of
from observations import Case, Skipped, read
from plimsoll.load.lengths import Fixed
from plimsoll.load.workload import ClosedLoop, OpenLoop, Pattern, Workload, asks
from plimsoll.planning.memory.constants import fitted_constants
from plimsoll.planning.speed.rates import committed, rates_for
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits, step_times
from preempting import workload

BLOCK: Final = 16
MOMENT: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One run of the engine model, in seconds."""

    ttft: tuple[float, ...]
    tpot: tuple[float, ...]
    e2e: tuple[float, ...]
    tokens_s: float
    preemptions: int
    gap: float
    """The longest."""


def caches(file: Path) -> Iterator[dict[str, Any]]:
    """Of each start of a file, by model, GPU and flags alone."""
    return map(_cache, read([file]))


def _cache(case: Case | Skipped) -> dict[str, Any]:
    if isinstance(case, Skipped):
        return {"not_judged": case.reason}
    points, skipped = from_config([case], lambda _: fitted_constants())
    if not points:
        return {"not_judged": ", ".join(skipped)}
    told = points[0].as_row()
    return {f"ledger_{name}": told[name] for name in ("predicted", "error_pct", "interval", "inside", "gib")}


def latencies(raw: Mapping[str, Any], requests: int) -> dict[str, Any]:
    """By the planner's formulas, which are of a loop some ten rounds long, and by the engine model as it was asked."""
    row = row_of({name: str(value) for name, value in raw.items()})
    planned = row.case.answer(rates_for(committed(), row.case.classes))
    load = row.load
    asked = Workload(
        pattern=ClosedLoop(load.concurrency),
        input_tokens=Fixed(load.input_tokens),
        output_tokens=Fixed(load.output_tokens),
        seed=1,
    )
    seen = played(row, _limits(row), asked, requests)
    return {
        "planned_ttft_ms": round(planned.ttft_ms.mid, 1),
        "planned_tpot_ms": round(planned.tpot_ms.mid, 2),
        "played_ttft_ms": round(1000 * fmean(seen.ttft), 1),
        "played_tpot_ms": round(1000 * fmean(seen.tpot), 2),
        "played_tokens_s": round(seen.tokens_s),
    }


def turn(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run of `retune_ratios` by the engine model: the same requests before the same short pool."""
    stated = {"tp": 1, "precision": "bf16", "concurrency": 1, "input_tokens": 1, "output_tokens": 1, **run}
    row = row_of({**{name: str(value) for name, value in stated.items()}, "ttft_ms": "1", "tpot_ms": "1"})
    blocks = run["pool_tokens"] // BLOCK
    limits = replace(
        _limits(row),
        blocks=blocks,
        max_num_seqs=run["sequences"],
        watermark_blocks=run["watermark"] * blocks // 1000,
    )
    seen = played(row, limits, workload(pattern_of(run["load"]), run["seed"]), run["requests"])
    return {
        "preemptions": seen.preemptions,
        "tokens_s": round(seen.tokens_s),
        "e2e_p99_s": round(_p99(seen.e2e), 3),
        "ttft_p99_s": round(_p99(seen.ttft), 3),
        "max_gap_s": round(seen.gap, 3),
    }


def pattern_of(said: str) -> Pattern:
    """As it was printed."""
    number, _, what = said.partition(" ")
    return ClosedLoop(int(number)) if what == "at once" else OpenLoop(float(number))


def _limits(row: Row) -> Limits:
    return Limits(
        blocks=max(1, int((row.kv_tokens or 0) / BLOCK)),
        block_size=BLOCK,
        max_num_seqs=row.settings.max_num_seqs,
        max_num_batched_tokens=row.settings.max_num_batched_tokens,
        max_model_len=1 << 20,
        steps_ahead=row.engine.steps_ahead,
    )


def played(row: Row, limits: Limits, asked: Workload, count: int) -> Played:
    """The requests of a workload, each user of a closed loop from the first moment on, those of an open loop when they come."""
    with asks(asked) as wanted:
        drawn = list(islice(wanted, count))
    lengths = [one.input_tokens + (one.output_tokens or 0) / 2 for one in drawn]
    settings = replace(row.settings, max_num_seqs=max(row.settings.max_num_seqs, limits.max_num_seqs))
    times = step_times(
        replace(row.replica, settings=settings),
        prompt_tokens=round(fmean(one.input_tokens for one in drawn)),
        context=fmean(lengths),
        rates=rates_for(committed(), row.case.classes),
    )
    engine, done = Engine(times, limits), list[Request]()
    requests = [Request(one.at or 0.0, one.input_tokens, one.output_tokens or 1) for one in drawn]
    if isinstance(asked.pattern, ClosedLoop):
        _looped(engine, requests, asked.pattern.concurrency, done)
    else:
        for each in requests:
            engine.submit(each, each.arrival)
        engine.advance(1e9)
        done = requests
    return _seen(engine, done)


def _looped(engine: Engine, requests: Iterable[Request], users: int, done: list[Request]) -> None:
    left = iter(requests)
    for each in islice(left, users):
        engine.submit(each, 0.0)
    while engine.in_flight:
        engine.advance(engine.now + MOMENT)
        for ended in engine.finished:
            done.append(ended)
            if (following := next(left, None)) is not None:
                following.arrival = ended.finished_at
                engine.submit(following, engine.now)
        engine.finished.clear()


def _seen(engine: Engine, done: Sequence[Request]) -> Played:
    begun = min(one.arrival for one in done)
    return Played(
        ttft=tuple(one.first_at - one.arrival for one in done),
        tpot=tuple((one.finished_at - one.first_at) / max(1, one.output_tokens - 1) for one in done),
        e2e=tuple(one.finished_at - one.arrival for one in done),
        tokens_s=sum(one.output_tokens for one in done) / (max(one.finished_at for one in done) - begun),
        preemptions=engine.preemptions,
        gap=max(engine.longest_stall, engine.itl.quantile(1.0) or 0.0),
    )


def summary(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """How far the engine model is from all that was measured; None where a part is missing."""
    speed, crowded = report.get("speed"), [run for run in report.get("turns", ()) if run["preemptions"]]
    if not report.get("start") or not speed or not crowded:
        return None
    start = report["start"][0]
    off = {
        name: [_off(point[f"played_{name}"], float(point[measured])) for point in speed]
        for name, measured in (
            ("ttft_ms", "ttft_ms"),
            ("tpot_ms", "tpot_ms"),
            ("tokens_s", "output_tokens_s"),
        )
    }
    output = [
        *off["tokens_s"],
        *(_off(run["played"]["tokens_s"], run["tokens_s"]) for run in report["turns"]),
    ]
    return {
        "measured": date.fromisoformat(start["measured"]),
        "gpu": start["system"],
        "model": start["model"],
        "engine": start["vllm_version"],
        "points": len(speed),
        "ttft_median_pct": round(median(off["ttft_ms"]), 1),
        "ttft_most_pct": round(max(off["ttft_ms"]), 1),
        "tpot_median_pct": round(median(off["tpot_ms"]), 1),
        "tpot_most_pct": round(max(off["tpot_ms"]), 1),
        "output_most_pct": round(max(output), 1),
        "crowded": len(crowded),
        "preemptions_most_pct": round(
            max(_off(run["played"]["preemptions"], run["preemptions"]) for run in crowded), 1
        ),
    }


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(0.99 * len(values))]


def _off(said: float, measured: float) -> float:
    return 100 * abs(said / measured - 1)


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]
