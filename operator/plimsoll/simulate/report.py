"""A simulation's outcome as data: what was asked, what each policy came to, and what the figures rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from plimsoll.planning import codec
from plimsoll.planning.ask.values import counted
from plimsoll.simulate.advice import conclusions
from plimsoll.simulate.alone import beyond_reach, refused, refused_from
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import Result
from plimsoll.simulate.declared import Better, beside
from plimsoll.simulate.fidelity import belief_error
from plimsoll.simulate.gateway import Wake
from plimsoll.simulate.overlong import overlong
from plimsoll.simulate.policies.registry import KINDS, STATIC
from plimsoll.simulate.router import Routing
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.seeds import Case, InWorld, in_all_worlds, listed
from plimsoll.simulate.world import STARTS_S, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    scenario: Scenario
    world: World
    arrivals: Arrivals
    scale: float
    lengths_from_trace: bool
    from_day: float = 0.0
    days: float | None = None
    """As they were asked for; None: to the trace's end."""
    whole_s: float | None = None
    """How long the trace is that a part may be replayed of; None: no longer than what is replayed."""
    began: datetime | None = None
    """When what is replayed began, in the zone of the trace; None where that has no date."""
    taken: tuple[str, ...] = ()
    """What was taken of the trace's file, as that does not say it."""
    results: Mapping[Routing, tuple[Result, ...]]
    """The first is the headline."""
    currency: str = ""
    better: Better | None = None
    """What the operator would say of a better plan, had it seen this traffic."""
    missing: tuple[Case, ...] = ()
    """What is not done, where somebody stopped it."""
    seeds: tuple[int, ...] = ()
    """Where several worlds are asked for: theirs; `world` is of the first."""
    worlds: tuple[InWorld, ...] = ()
    """What every policy came to in each of several, as far as they are done."""

    @property
    def conclusions(self) -> tuple[str, ...]:
        """The answer, of the headline's router, and what may be done about it."""
        ran = self.results[self.headline]
        said = conclusions(
            self.scenario,
            ran,
            self.arrivals.span_s,
            currency=self.currency,
            pooled=self._pooled,
            worlds=in_all_worlds(
                self.worlds, self.headline, first=self.world.seed, alike=not self.scenario.sets
            ),
        )
        begun = {one.case.seed for one in self.worlds}
        missing = listed(self.missing, begun, several=self.several) if self.missing else None
        return (
            *(() if missing is None else (f"stopped before its end; missing: {missing}",)),
            *said,
            *(() if self.better is None else (beside(self.better, self.scenario, ran),)),
        )

    @property
    def several(self) -> bool:
        return len(self.seeds) > 1

    @property
    def _pooled(self) -> Result | None:
        if self.headline is Routing.POOL:
            return None
        return next((one for one in self.results.get(Routing.POOL, ()) if one.policy == "plimsoll"), None)

    @property
    def headline(self) -> Routing:
        return next(iter(self.results))

    @property
    def begins_with(self) -> int | None:
        """Replicas at the beginning, whatever the policy; a constant number has its own from there on."""
        begun = (
            one.outcome.points[0].ready for one in self.results[self.headline] if one.policy not in STATIC
        )
        return next(begun, None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures has to know; the last says how far the simulator is off."""
        return (*self.taken, *_scenario_notes(self), belief_error())


def _scenario_notes(report: Report) -> Sequence[str]:
    scenario, notes = report.scenario, []
    if not report.lengths_from_trace and not scenario.lengths_declared:
        notes.append(
            f"neither trace nor resource has all lengths: assumed are prompts around {scenario.lengths.input.median:.0f} and answers around "
            f"{scenario.lengths.output.median:.0f} tokens; declare spec.workload.inputTokens and outputTokens"
        )
    if scenario.slo.ttft_p99_s is None and scenario.slo.itl_p99_s is None:
        notes.append(
            "the resource declares no slo, so who was served well is not told, only who was answered; declare slo.ttftP99Ms and "
            "slo.itlP99Ms"
        )
    if not scenario.bounded:
        notes.append(
            f"the resource has no scaling.max; what its devices hold was allowed, {counted(scenario.most, 'replica')}"
        )
    notes += [f"the plan warns: {one}" for one in scenario.warned]
    notes += scenario.left_out
    if scenario.sets:
        notes += _sets_notes(scenario)
    if scenario.zero is not None:
        notes += _sleep_notes(scenario.zero)
    notes += overlong(
        report.arrivals, refused_from(report.world), scenario.ceiling, drawn=not report.lengths_from_trace
    )
    late, asked = beyond_reach(report.arrivals, report.world), len(report.arrivals)
    if 1000 * late >= asked:
        lost = refused(report.arrivals, report.world)
        besides = f", and {lost:,} are refused" if lost else ""
        cached = ", but for those whose beginning is cached" if report.arrivals.prefixes is not None else ""
        notes.append(
            f"{late:,} of {asked:,} prompts take longer than slo.ttftP99Ms to compute even alone{cached}{besides}, so that "
            f"{100 * (1 - (late + lost) / asked):.2f}% is about the most that any number of replicas can keep"
        )
    hindsight = sorted(
        {one.policy for ran in report.results.values() for one in ran if KINDS[one.policy].hindsight}
    )
    if hindsight:
        notes.append(
            f"{', '.join(hindsight)}: found in hindsight on this very trace, for comparison; nobody could run them"
        )
    return notes


def _sets_notes(scenario: Scenario) -> Sequence[str]:
    spread = (
        "which set grows or shrinks is plimsoll's to decide; the numbers of other policies are spread as a plan spreads a number: the "
        "first set's first, up to its room. What a replica carries they know of the first set"
    )
    notes = [spread]
    standing = [one.name for one in scenario.sets if one.stands_by]
    if standing:
        notes.append(
            "not in the plan, but beside it once the sets before find no more devices, as a turn of the operator would put it: "
            f"{', then '.join(standing)}"
        )
    return notes


def _sleep_notes(wake: Wake) -> Sequence[str]:
    told = (
        "zero.wake.query is taken to count them, as of its last scrape"
        if wake.queried
        else "whoever does writes the annotation at the first of them"
    )
    held = (
        f"while no replica is ready, requests are taken to be held in front of them, without a limit; {told}. They are handed on in "
        "their order as fast as the replicas' queues take them. A gateway that refuses them instead serves none of those that waited"
    )
    return held, "policies beside plimsoll keep a replica: what of them can sleep is not simulated"


def data_of(report: Report) -> dict[str, Any]:
    """The JSON form."""
    scenario, world, arrivals = report.scenario, report.world, report.arrivals
    return {
        "deployment": scenario.name,
        "model": scenario.model,
        "gpu": scenario.gpu,
        "layout": scenario.layout,
        "devicesPerReplica": scenario.devices,
        "pricePerGpuHour": scenario.price_per_gpu_hour,
        **_zero_of(scenario),
        **_sets_of(scenario),
        "slo": {"ttftP99S": scenario.slo.ttft_p99_s, "itlP99S": scenario.slo.itl_p99_s},
        "trace": {
            "name": arrivals.trace,
            "requests": len(arrivals),
            "spanS": round(arrivals.span_s, 3),
            "meanRps": round(arrivals.mean_rate, 4),
            "scale": report.scale,
            "fromDay": report.from_day,
            "days": report.days,
            "began": None if report.began is None else report.began.isoformat(),
        },
        "world": {
            "seed": world.seed,
            "blocks": world.limits.blocks,
            "startsS": list(STARTS_S),
            "scrapes": asdict(world.scrapes),
            "clients": asdict(world.clients),
            "hardware": asdict(world.hardware),
        },
        "beginsWith": report.begins_with,
        "headline": str(report.headline),
        "missing": [one.data(several=report.several) for one in report.missing],
        "conclusions": list(report.conclusions),
        "results": [
            {
                "routing": str(routing),
                "policy": one.policy,
                "settings": dict(one.settings),
                "figures": codec.encode(one.outcome.figures),
                "timeline": codec.encode(one.outcome.points),
                "served": [list(row) for row in one.outcome.served],
                "latencies": codec.encode(one.outcome.latencies),
                "actions": codec.encode(one.outcome.actions),
                "spent": codec.encode(one.outcome.spent),
                "retunes": codec.encode(one.outcome.acts),
                **({} if one.outcome.sleep is None else {"sleep": codec.encode(one.outcome.sleep)}),
                **_of_sets(scenario, one),
            }
            for routing, ran in report.results.items()
            for one in ran
        ],
        **({"worlds": [one.data for one in report.worlds]} if report.several else {}),
        "notes": list(report.notes),
    }


def _zero_of(scenario: Scenario) -> dict[str, Any]:
    if scenario.zero is None:
        return {}
    wake = "query" if scenario.zero.queried else "annotation"
    return {"zero": {"afterS": scenario.zero.after_s, "wake": wake}}


def _sets_of(scenario: Scenario) -> dict[str, Any]:
    if not scenario.sets:
        return {}
    return {
        "sets": [
            {
                "gpu": one.gpu,
                "layout": one.layout,
                "devicesPerReplica": one.hardware.devices,
                "pricePerGpuHour": one.price_per_gpu_hour,
                "hardware": asdict(one.hardware),
                "standsBy": one.stands_by,
            }
            for one in scenario.sets
        ]
    }


def _of_sets(scenario: Scenario, one: Result) -> dict[str, Any]:
    if not one.outcome.sets:
        return {}
    found = []
    for played, each in zip(scenario.sets, one.outcome.sets, strict=True):
        price = played.price_per_gpu_hour
        cost = None if price is None else each.gpu_hours * price
        found.append({"set": played.name, "cost": cost, **codec.encode(each)})
    return {"sets": found}
