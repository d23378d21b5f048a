"""How many requests a second a plan says that one replica carries, beside what the simulator finds: the most at which 99 of 100 keep slo.

Requests come by chance, each of its own length, as behind a Service. `typical` is what it would answer if all requests were typical and
somebody came only when somebody else is done. Engines are simulated as the planner believes them, so what is compared is the planner's
formulas for queues with the queues themselves; how far steps are from real ones is `latency_accuracy`'s. Plans take steps to be as slow as
they are likely to be at most, so they are meant to be below.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from random import Random
from typing import Any, Final

from arguments import count
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.cli.fleets import fleet_document
from plimsoll.facts.learned import NOTHING
from plimsoll.facts.models import lookup
from plimsoll.facts.snapshot import read_snapshot
from plimsoll.planning.ask.reading import read
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.simulate.engine import Engine
from plimsoll.simulate.fidelity import belief_error
from plimsoll.simulate.from_plan import scenario_of
from plimsoll.simulate.request import Request
from plimsoll.simulate.scenario import Scenario

FLEETS: Final = (
    ("Qwen/Qwen3-8B", "64xA100-80GB"),
    ("Qwen/Qwen3-32B", "64xH100"),
    ("Qwen/Qwen3-30B-A3B", "64xH100"),
    ("meta-llama/Llama-3.3-70B-Instruct", "64xH200"),
)
SLOS: Final = ((2000, 60), (2000, 300), (5000, None))
LENGTHS: Final = (((1000, 4000), (200, 600)), ((200, 800), (400, 1200)), ((3000, 6000), (100, 300)))
"""p50 and p95 of prompts and of answers."""
RATE: Final = "20"
REQUESTS: Final = 3000
HALVINGS: Final = 8
GOOD: Final = 0.99


@dataclass(frozen=True, kw_only=True)
class Row:
    model: str
    gpu: str
    layout: str
    ttft_ms: int | None
    itl_ms: int | None
    prompts: tuple[int, int]
    answers: tuple[int, int]
    typical: float
    planned: float
    simulated: float
    told_late: bool
    """Whether the plan says that not all of the target can be kept."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seeds", type=count, default=2, help="of arrivals and lengths; all have to keep slo"
    )
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(argv)
    rows = []
    if not options.json:
        print(
            _line(
                "model", "layout", "TTFT, ITL ms", "prompts, answers", "typical", "planned", "simulated", ""
            )
        )
    for row in _rows(options.seeds):
        rows.append(row)
        if not options.json:
            print(_told(row), flush=True)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "error": belief_error()}))
        return
    kept = [row for row in rows if not row.told_late and row.simulated]
    for name in ("typical", "planned"):
        ratios = sorted(getattr(row, name) / row.simulated for row in kept)
        print(
            f"{name} / simulated, {len(kept)} plans: {ratios[0]:.2f} to {ratios[-1]:.2f}, median {statistics.median(ratios):.2f}"
        )
    print(f"{len(rows) - len(kept)} plans say that not all of slo can be kept")
    print(belief_error())


def _rows(seeds: int) -> Iterator[Row]:
    for (model, fleet), (ttft, itl), (prompts, answers) in product(FLEETS, SLOS, LENGTHS):
        asked = _deployment(model, ttft, itl, prompts, answers)
        facts, there = (
            PlanFacts(model=lookup(model)),
            read_snapshot(json.dumps(fleet_document(fleet))).inventory(),
        )
        made = plan(asked, there, facts)
        (one,) = made.sets
        scenario = scenario_of(made, read(asked, there, facts, NOTHING, OperatorConfig()))
        if one.steady_per_second is None or one.most_per_second is None:
            raise SystemExit(f"{model}: nothing is predicted for a rate")
        yield Row(
            model=model,
            gpu=scenario.gpu,
            layout=scenario.layout,
            ttft_ms=ttft,
            itl_ms=itl,
            prompts=prompts,
            answers=answers,
            typical=one.most_per_second,
            planned=one.steady_per_second,
            simulated=most_kept(scenario, range(1, seeds + 1), most=4 * one.most_per_second),
            told_late=one.meets_slo is False,
        )


def _deployment(
    model: str, ttft: int, itl: int | None, prompts: tuple[int, int], answers: tuple[int, int]
) -> LLMDeployment:
    spec: dict[str, Any] = {
        "model": {"source": model},
        "slo": {"ttftP99Ms": ttft} | ({} if itl is None else {"itlP99Ms": itl}),
        "workload": {
            "contextTokens": 16384,
            "inputTokens": {"p50": prompts[0], "p95": prompts[1]},
            "outputTokens": {"p50": answers[0], "p95": answers[1]},
            "requestsPerSecond": RATE,
        },
    }
    return LLMDeployment.model_validate({"metadata": {"name": "benchmark"}, "spec": spec})


def most_kept(scenario: Scenario, seeds: Sequence[int], most: float, requests: int = REQUESTS) -> float:
    """Requests a second of one replica up to which all seeds keep slo."""
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        kept = all(_keeps(scenario, middle, Random(f"rates {seed}"), requests) for seed in seeds)  # noqa: S311
        low, high = (middle, high) if kept else (low, middle)
    return low


def _keeps(scenario: Scenario, rate: float, chance: Random, requests: int) -> bool:
    """Whether one replica keeps slo while requests come at a rate."""
    engine, times, limit = (
        Engine(scenario.times, scenario.limits),
        scenario.times,
        scenario.limits.max_model_len,
    )
    came, at = [], 0.0
    for _ in range(requests):
        at += chance.expovariate(rate)
        prompt, answer = scenario.lengths.within(scenario.lengths.draw(chance), limit, chance)
        one = Request(at, max(1, prompt), max(1, answer))
        if not engine.submit(one, at):
            one.first_at = float("inf")
        came.append(one)
        one.outside = times.request + times.request_token * prompt + times.request_beside * engine.in_flight
    engine.advance(float("inf"))
    slo, gaps = scenario.slo, engine.itl
    promised = slo.ttft_p99_s
    early = sum(promised is None or one.first_at + one.outside - one.arrival <= promised for one in came)
    short = slo.itl_p99_s is None or gaps.within(slo.itl_p99_s) >= GOOD * gaps.count
    return short and early >= GOOD * requests


def _told(row: Row) -> str:
    gap = "-" if row.itl_ms is None else str(row.itl_ms)
    return _line(
        row.model.rpartition("/")[2],
        f"{row.layout} {row.gpu}",
        f"{row.ttft_ms}, {gap}",
        f"{row.prompts[0]}..{row.prompts[1]}, {row.answers[0]}..{row.answers[1]}",
        f"{row.typical:.2f}",
        f"{row.planned:.2f}",
        f"{row.simulated:.2f}",
        "not all kept" if row.told_late else "",
    )


def _line(*cells: str) -> str:
    widths = (22, 26, 12, 22, 8, 8, 10, 12)
    return " ".join(
        f"{cell:<{width}}" if place < 4 else f"{cell:>{width}}"
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()


if __name__ == "__main__":
    main()
