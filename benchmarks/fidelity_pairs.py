"""The engine model's closed loop against measured points of GPUs: each model and hardware with constants fitted without it.

So many users who ask again at once, all with the same lengths; TTFT and TPOT are means, as the points' are. Measured loops begin
with all users at the same moment and last some ten rounds, so a share of the first tokens, the one that the planner counts with,
is of such a volley, the rest of users who are out of step with one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from latency_accuracy import left_out, quantile
from latency_rows import Row, read_rows
from plimsoll.planning.speed.closed_loop import START_SHARE
from plimsoll.planning.speed.rates import Constants, rates_for
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.request import Request
from plimsoll.simulate.steps import Limits, step_times

ROWS_EACH = 10
"""Of a model on its hardware, evenly over its points: some hundred runs of the model are enough."""
ROUNDS, COUNTED = 5, 2
"""Answers of each user; those before the counted ones bring them out of step."""


@dataclass(frozen=True, slots=True)
class Point:
    row: Row
    ttft: float
    tpot: float

    @property
    def ttft_error(self) -> float:
        return 100 * (self.ttft / self.row.ttft - 1)

    @property
    def tpot_error(self) -> float:
        return 100 * (self.tpot / self.row.tpot - 1)


def pairs(file: Path) -> dict[str, Any]:
    rows, skipped = read_rows([file])
    constants = left_out(rows)
    by_pair: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_pair[row.pair].append(row)
    found = {
        " ".join(pair): [played(row, constants[pair]) for row in _some(by_pair[pair])]
        for pair in sorted(by_pair)
        if pair in constants
    }
    return {
        "by_model": {name: scored(points) for name, points in found.items()},
        "all": scored([point for points in found.values() for point in points]),
        "rows": len(rows),
        "skipped": dict(sorted(skipped.items())),
    }


def _some(rows: Sequence[Row]) -> Sequence[Row]:
    ordered = sorted(rows, key=lambda row: (row.load.concurrency, row.load.input_tokens, str(row.layout)))
    step = max(1.0, len(ordered) / ROWS_EACH)
    return [ordered[int(place * step)] for place in range(min(len(ordered), ROWS_EACH))]


def scored(points: Sequence[Point]) -> dict[str, Any]:
    ttft, tpot = [abs(one.ttft_error) for one in points], [abs(one.tpot_error) for one in points]
    return {
        "points": len(points),
        "ttft_median_pct": round(median(ttft), 1),
        "ttft_p90_pct": round(quantile(ttft, 0.9), 1),
        "ttft_bias_pct": round(median(one.ttft_error for one in points), 1),
        "tpot_median_pct": round(median(tpot), 1),
        "tpot_p90_pct": round(quantile(tpot, 0.9), 1),
        "tpot_bias_pct": round(median(one.tpot_error for one in points), 1),
    }


def played(row: Row, constants: Constants) -> Point:
    load, ranks = row.load, row.layout.data
    times = step_times(
        row.replica,
        prompt_tokens=load.input_tokens,
        context=load.input_tokens + load.output_tokens / 2,
        rates=rates_for(constants, row.case.classes),
    )
    block = 16
    limits = Limits(
        blocks=max(1, int((row.kv_tokens or 0) * ranks / block)),
        block_size=block,
        max_num_seqs=row.settings.max_num_seqs * ranks,
        max_num_batched_tokens=row.settings.max_num_batched_tokens * ranks * row.layout.pipeline,
        max_model_len=row.settings.max_model_len + 1,
        steps_ahead=row.engine.steps_ahead,
    )
    users, given, asked = load.concurrency, load.input_tokens, load.output_tokens
    volley = _volley(Engine(times, limits), users, given, asked)
    seen = list(_looped(Engine(times, limits), users, given, asked))
    steady = fmean(one.first_at - one.arrival for one in seen)
    ttft = START_SHARE * volley + (1 - START_SHARE) * steady
    tpot = fmean((one.finished_at - one.first_at) / max(1, one.output_tokens - 1) for one in seen)
    return Point(row, ttft, tpot)


def _volley(engine: Engine, users: int, given: int, asked: int) -> float:
    """Mean time to the first token where all ask at once."""
    requests = [Request(0.0, given, asked) for _ in range(users)]
    for one in requests:
        engine.submit(one, 0.0)
    while any(one.first_at < 0 for one in requests):
        engine.advance(engine.now + 1e-9)
    return fmean(one.first_at for one in requests)


def _looped(engine: Engine, users: int, given: int, asked: int) -> Iterator[Request]:
    """The last answers of each user."""
    chance = Random(users)  # noqa: S311 - repeatable
    left = dict.fromkeys(range(users), ROUNDS)
    whose: dict[Request, int] = {}
    for user in left:
        # The first answer ends anywhere in its length, so that not all ask at the same time ever after.
        request = Request(0.0, given, chance.randint(1, asked))
        engine.submit(request, 0.0)
        whose[request] = user
    while whose:
        engine.advance(engine.now + 1e-9)
        done, engine.finished = engine.finished, []
        for request in done:
            user = whose.pop(request)
            left[user] -= 1
            if left[user] < COUNTED:
                yield request
            if left[user] > 0:
                again = Request(request.finished_at, given, asked)
                engine.submit(again, max(engine.now, again.arrival))
                whose[again] = user


def print_pairs(result: Mapping[str, Any]) -> None:
    print(
        "\nthe model's closed loop on measured points, constants fitted without the model on its hardware: off in %"
    )
    print(
        f"{'model and hardware':52} {'points':>6} {'TTFT':>7} {'p90':>7} {'bias':>7} {'TPOT':>7} {'p90':>7} {'bias':>7}"
    )
    for name, one in (*result["by_model"].items(), ("all", result["all"])):
        print(
            f"{name:52} {one['points']:6} {one['ttft_median_pct']:7} {one['ttft_p90_pct']:7} {one['ttft_bias_pct']:+7} "
            f"{one['tpot_median_pct']:7} {one['tpot_p90_pct']:7} {one['tpot_bias_pct']:+7}"
        )
