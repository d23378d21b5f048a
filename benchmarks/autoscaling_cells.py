"""What `autoscaling` scores: traces brought to the size of models on GPUs, tuned baselines, and every policy's figures.

A cell is a trace, a model and a GPU. Each is planned as an operator would plan it, from lengths that the trace has; traffic
is scaled until its busiest ten minutes keep a given number of replicas busy, so that all cells are of one size.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import cos, pi, sin
from pathlib import Path
from random import Random
from typing import Any, Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.cli.fleets import fleet_document
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.learned import NOTHING
from plimsoll.facts.models import lookup
from plimsoll.facts.snapshot import read_snapshot
from plimsoll.facts.spans import DAY_S
from plimsoll.planning.ask.reading import read
from plimsoll.planning.lengths import P99
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.simulate.alone import beyond_reach
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.from_plan import CannotSimulate, lengths_of, scenario_of
from plimsoll.simulate.policies.oracle import work_of
from plimsoll.simulate.policies.registry import KINDS, STATIC, SWEPT, Stage
from plimsoll.simulate.router import Routing
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.stages import Stages
from plimsoll.simulate.traces import RateTrace, RequestTrace, Trace, load_trace

TUNED_S: Final = 10800.0
"""Baselines are tuned on so much of another trace."""
TUNED_SEED: Final = 1000
KNOWN: Final = "Qwen/Qwen3-8B"
"""A model that the catalogue has, as an example."""
RUSH_CV: Final = 1.5
"""Of the rates of minutes: as of code that is completed for few users, where some minutes have ten times the mean and some nothing."""
FULL: Final = 0.6
"""How busy the replicas are that the size of a cell is told by."""
SYNTHETIC: Final = ("synthetic-day", "synthetic-bursts")
LEAPS: Final = "synthetic-leaps"
RUSHES: Final = "synthetic-rushes"
PUBLISHED: Final[Mapping[str, tuple[int, int]]] = {
    "wva-prefill-heavy": (4000, 1000),
    "wva-decode-heavy": (1000, 4000),
}
"""Runs that WVA's authors publish, of Qwen3-32B on H100: tokens of each prompt, and of each answer."""
PUBLISHED_RATE: Final = 20.0
PUBLISHED_S: Final = 600.0
PUBLISHED_MOST: Final = 10
"""Replicas. They begin with one, whatever the policy, have the nodes of all, and keep whoever comes waiting, as nobody was refused there."""
PLANNED_RATE: Final = "20"
"""What is declared to the planner: enough for whole replicas to be compared by what they serve for their GPUs."""
TTFT_MS: Final = ((4096, 2000), (16384, 5000))
"""First tokens are promised by the length of the trace's prompts (p99): a long one alone takes seconds."""
LONG_TTFT_MS: Final = 60000
ITL_MS: Final = 300
RATES_LENGTHS: Final = {
    "inputTokens": {"p50": 1000, "p95": 4000},
    "outputTokens": {"p50": 300, "p95": 1200},
    "contextTokens": 16384,
}
"""Where a trace holds rates only."""


Setting = dict[str, float]
"""A policy's main parameter by its name, and after it the second one where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    replicas: int
    """That the busiest ten minutes keep FULL of the time busy."""
    days: float | None
    """Of a longer trace; None is all of it."""
    routing: Routing
    closes: bool = True
    """Whether engines close connections after each answer, as they do unless an admin says otherwise."""
    begin: int | None = None
    """Replicas that a published run begins with, in place of one."""

    def span_s(self, trace: Trace) -> float:
        return trace.span_s if self.days is None else min(trace.span_s, self.days * DAY_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    trace: str
    model: str
    gpu: str


@cache
def trace_of(name: str) -> Trace:
    if name in (*SYNTHETIC, LEAPS, RUSHES):
        return synthetic(name)
    if name in PUBLISHED:
        return published(name)
    return load_trace(Path(name))


@cache
def content_of(name: str) -> str:
    """A digest of what a trace holds, as a file of the same name may hold another one later; a synthetic one is told by this program."""
    file = Path(name)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else name


def synthetic(name: str) -> RateTrace:
    """Traces that need no file: two hours of a day in small with a step in it, or of short bursts on a low level; four hours in which the
    load leaps between two levels every ten minutes, as batches make it; or a day of which each minute is a rush or a lull, by chance."""
    step_s, cv = 300.0, 1.5
    if name == RUSHES:
        drawn, step_s, cv = Random(1), 60.0, 1.0  # noqa: S311 - repeatable
        means = [2 - cos(step / 720 * pi) for step in range(1440)]
        rates = [mean * drawn.gammavariate(1 / RUSH_CV**2, RUSH_CV**2) for mean in means]
    elif name == LEAPS:
        rates = [2.0 if step % 4 < 2 else 16.0 for step in range(48)]
    elif name == SYNTHETIC[0]:
        rates = [3 + 2 * sin((step - 6) / 4) + (3 if 14 <= step < 17 else 0) for step in range(24)]
    else:
        rates = [2.0 + (4 if step % 5 == 3 else 0) for step in range(24)]
    return RateTrace(
        name=name,
        at=tuple(step_s * step for step in range(len(rates))),
        rates=tuple(rates),
        cvs=(cv,) * len(rates),
        last_s=step_s,
    )


def published(name: str) -> RequestTrace:
    """Requests of one length that come by chance from the first second on. They are played at their own size, not brought to another."""
    drawn, at, now = Random(1), array("d"), 0.0  # noqa: S311 - repeatable
    while (now := now + drawn.expovariate(PUBLISHED_RATE)) < PUBLISHED_S:
        at.append(now)
    given, asked = (array("q", [tokens]) * len(at) for tokens in PUBLISHED[name])
    return RequestTrace(name=name, at=at, inputs=given, outputs=asked, prefixes=None)


class Unknown(ValueError):
    """A model or a GPU of the command line that nobody knows: a sentence for the user."""


def unplannable(cells: Sequence[Cell], size: Size) -> dict[Cell, str]:
    """Why the cells cannot be played that cannot be, as a trace may have longer prompts than a model is made for. Raises Unknown."""
    found: dict[Cell, str] = {}
    for cell in cells:
        if lookup(cell.model) is None:
            raise Unknown(
                f"--models: the catalogue knows no model {cell.model}; name one as its hub does, as {KNOWN}"
            )
        try:
            _scenario(cell, size)
        except SpecError as error:
            raise Unknown(f"--gpus: {error}") from None
        except CannotSimulate as error:
            found[cell] = str(error)
    return found


@cache
def scenario_for(cell: Cell, size: Size) -> tuple[Scenario, float]:
    """The planned scenario, and the scale of its trace."""
    scenario = _scenario(cell, size)
    return scenario, 1.0 if cell.trace in PUBLISHED else _scale(trace_of(cell.trace), scenario, size)


@cache
def _scenario(cell: Cell, size: Size) -> Scenario:
    workload, ttft = _workload(trace_of(cell.trace))
    is_published = cell.trace in PUBLISHED
    most = PUBLISHED_MOST if is_published else 5 * size.replicas
    spec: dict[str, Any] = {
        "model": {"source": f"hf://{cell.model}"},
        "workload": {**workload, "requestsPerSecond": PLANNED_RATE},
        "slo": {"ttftP99Ms": ttft, "itlP99Ms": ITL_MS},
        "scaling": {"min": 1, "max": most},
        # The number of replicas is compared: engines keep the settings that all policies begin with.
        "tuning": {"mode": "off"},
    }
    fleet = json.dumps(fleet_document(f"{16 * most}x{cell.gpu}"))
    inventory = read_snapshot(fleet).inventory()
    scenario = _planned(cell, spec, inventory)
    ready = most if is_published else size.replicas * 3 // 2
    if is_published:
        scenario = replace(scenario, limits=replace(scenario.limits, max_queued=None))
    hardware = replace(scenario.hardware, ready=ready, growing=scenario.most - ready)
    return replace(scenario, hardware=hardware, closes=size.closes)


def _planned(cell: Cell, spec: dict[str, Any], inventory: Inventory) -> Scenario:
    deployment = LLMDeployment.model_validate({"metadata": {"name": "benchmark"}, "spec": spec})
    facts = PlanFacts(model=lookup(cell.model))
    reading = read(deployment, inventory, facts, NOTHING, OperatorConfig())
    return scenario_of(plan(deployment, inventory, facts), reading)


def _workload(trace: Trace) -> tuple[dict[str, Any], int]:
    if not isinstance(trace, RequestTrace):
        return dict(RATES_LENGTHS), _ttft(
            round(lengths_of(Workload.model_validate(RATES_LENGTHS)).input.at(P99))
        )
    given, asked = sorted(trace.inputs), sorted(trace.outputs)
    longest = max(one + other for one, other in zip(trace.inputs, trace.outputs, strict=True))
    prompts = _percentiles(given)
    workload = {
        "inputTokens": prompts,
        "outputTokens": _percentiles(asked),
        "contextTokens": min(131072, -(-longest // 1024) * 1024),
    }
    return workload, _ttft(prompts["p99"])


def _ttft(prompt: int) -> int:
    return next((ms for longest, ms in TTFT_MS if prompt <= longest), LONG_TTFT_MS)


def _percentiles(ordered: Sequence[int]) -> dict[str, int]:
    return {
        f"p{share}": ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)
    }


def _scale(trace: Trace, scenario: Scenario, size: Size) -> float:
    span = size.span_s(trace)
    first = 2.0 / max(trace.rates) if isinstance(trace, RateTrace) else 1.0
    sample = Stages(scenario=scenario, trace=trace, scale=first, span_s=span).arrivals(0)
    world = replace(scenario.world(0), times=scenario.times, limits=scenario.limits)
    bins = work_of(sample, world)
    busiest = max(sum(bins[at : at + 10]) for at in range(0, len(bins), 10)) / 600
    return first * size.replicas * FULL / busiest


def stage_of(cell: Cell, size: Size, seed: int, span_s: float | None = None) -> Stage:
    scenario, scale = scenario_for(cell, size)
    trace = trace_of(cell.trace)
    span = size.span_s(trace) if span_s is None else min(span_s, size.span_s(trace))
    return Stages(scenario=scenario, trace=trace, scale=scale, span_s=span).stage(seed)


def _comparison(stage: Stage, cell: Cell, size: Size) -> Comparison:
    return Comparison(
        stage, routing=size.routing, begin=(size.begin or 1) if cell.trace in PUBLISHED else None
    )


def tuned(cell: Cell, size: Size, names: Sequence[str] = SWEPT) -> dict[str, Setting]:
    """Each baseline's cheapest setting that keeps the goal on a part of `cell`'s trace, else its best."""
    comparison = _comparison(stage_of(cell, size, TUNED_SEED, TUNED_S), cell, size)
    found = {name: comparison.cheapest(name) for name in names}
    return {name: KINDS[name].named(one.parameter, one.second) for name, one in found.items()}


def scored(
    cell: Cell, size: Size, seed: int, settings: dict[str, Setting], names: Sequence[str], *, sweep: bool
) -> list[dict[str, Any]]:
    """A row a policy; with `sweep`, further rows for other values of each main parameter, marked as such; the second one stays.

    Of those, only what is needed to read a baseline's attainment at our own GPU-hours: the nearest cheaper and dearer value.
    """
    stage = stage_of(cell, size, seed)
    comparison = _comparison(stage, cell, size)
    rows: list[dict[str, Any]] = []
    ours = None
    for name in names:
        chosen = comparison.run(name, *settings[name].values()) if name in settings else comparison.best(name)
        rows.append(row_of(cell, seed, chosen, swept=False))
        if name == "plimsoll":
            ours = chosen.outcome.figures.gpu_hours
        elif sweep and ours is not None and name not in {"oracle", "static_mean"}:
            rows += [row_of(cell, seed, one, swept=True) for one in _around(comparison, chosen, ours)]
    # Of what is left nobody could keep more.
    reach = 100 * (1 - beyond_reach(stage.arrivals, stage.world) / max(1, len(stage.arrivals)))
    told = {
        "reachable_pct": round(reach, 4),
        "span_s": stage.arrivals.span_s,
        "content": content_of(cell.trace),
    }
    return [{**row, **told} for row in rows]


def _around(comparison: Comparison, chosen: Result, hours: float) -> list[Result]:
    """Runs of a baseline with the values of its main parameter between which it costs so many GPU-hours, and those on the way."""
    name, second = chosen.policy, chosen.second
    tried = KINDS[name].tried
    if name in STATIC:
        span_h = comparison.stage.arrivals.span_s / 3600
        fits = int(hours / span_h / comparison.stage.scenario.hardware.devices)
        tried = tuple(float(one) for one in (fits, fits + 1) if one >= 1)
    seen = {}
    low, high = 0, len(tried)
    while low < high:
        middle = (low + high) // 2
        seen[middle] = comparison.run(name, tried[middle], second)
        dearer = seen[middle].gpu_hours >= hours
        low, high = (low, middle) if dearer else (middle + 1, high)
    for place in (low - 1, low):
        if 0 <= place < len(tried) and place not in seen:
            seen[place] = comparison.run(name, tried[place], second)
    return [seen[place] for place in sorted(seen)]


def row_of(cell: Cell, seed: int, result: Result, *, swept: bool) -> dict[str, Any]:
    figures = result.outcome.figures
    return {
        "trace": Path(cell.trace).name,
        "model": cell.model,
        "gpu": cell.gpu,
        "policy": result.policy,
        "seed": seed,
        "slo_pct": round(result.slo_pct, 4),
        "gpu_hours": round(figures.gpu_hours, 3),
        "ttft_p99_ms": _rounded(figures.ttft_p99_ms),
        "itl_p99_ms": _rounded(figures.itl_p99_ms),
        "preemptions_per_1000": round(figures.preemptions_per_1000, 3),
        "actions_per_day": round(figures.actions_per_day, 2),
        "reversals_per_day": round(figures.reversals_per_day, 2),
        "requests": figures.requests,
        "failed": figures.failed,
        "unanswered": figures.unanswered,
        "replicas_mean": round(figures.replicas_mean, 3),
        "replicas_most": figures.replicas_most,
        "longest_stall_ms": round(figures.longest_stall_ms),
        "parameter": result.parameter,
        "second": result.second,
        "settings": dict(result.settings),
        "swept": swept,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
