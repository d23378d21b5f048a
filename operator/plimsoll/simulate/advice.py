"""What follows from a simulation: what the law costs beside a constant number, what held it back, and what a user may change.

Sentences on figures that stand in the report; nothing is simulated here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.workload import QUIET_S, Lengths, Observed, better_declaration
from plimsoll.planning.ask.values import counted
from plimsoll.planning.plan import Plan
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import GOAL_PCT, Result
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.tally import Point
from plimsoll.simulate.world import START_P90_S

BOUND, STARTING, OTHER = "bound", "starting", "other"
SHORT_S: Final = 2 * START_P90_S


def conclusions(
    scenario: Scenario, results: Sequence[Result], span_s: float, currency: str = ""
) -> Iterator[str]:
    """Of the headline's router: the answer first, then what may be done about it."""
    by_name: Mapping[str, Result] = {one.policy: one for one in results}
    ours, constant = by_name.get("plimsoll"), by_name.get("static_peak")
    if ours is not None and constant is not None:
        yield _beside(scenario, ours, constant, currency)
    if ours is not None and ours.slo_pct < GOAL_PCT:
        yield from _held_back(scenario, ours)
    if span_s < SHORT_S:
        yield (
            f"the trace lasts {span_s:,.0f} s and one start in ten takes longer than {START_P90_S:.0f} s: this shows how replicas "
            "that are there serve, hardly how their number follows the load; replay hours, better days"
        )


def _beside(scenario: Scenario, ours: Result, constant: Result, currency: str) -> str:
    def said(one: Result) -> str:
        hours = one.outcome.figures.gpu_hours
        price = scenario.price_per_gpu_hour
        money = "" if price is None else f", {hours * price:,.2f} {currency}".rstrip()
        return f"{one.slo_pct:.2f}% with {_hours(hours)} GPU-hours{money}"

    keeps = "keeps slo for" if ours.outcome.figures.slo_pct is not None else "answers"
    replicas, cheapest = round(constant.parameter), constant.outcome.figures.gpu_hours
    if constant.slo_pct < GOAL_PCT:
        return f"plimsoll {keeps} {said(ours)}; even {replicas} replicas all the time, the most there may be, {said(constant)}"
    more = 100 * (ours.outcome.figures.gpu_hours / cheapest - 1) if cheapest else 0.0
    compared = "as many as" if abs(more) < 0.5 else f"{abs(more):.0f}% {'more' if more > 0 else 'fewer'} than"
    return (
        f"plimsoll {keeps} {said(ours)}, {compared} the smallest constant number that keeps {GOAL_PCT:g}%, found in hindsight: "
        f"{counted(replicas, 'replica')}, {said(constant)}"
    )


def _hours(value: float) -> str:
    return f"{value:,.1f}" if value >= 1 else f"{value:.3f}"


def _held_back(scenario: Scenario, ours: Result) -> Iterator[str]:
    """When too few were in time: with nothing left to add, with replicas on their way, or neither."""
    points = ours.outcome.points
    times = [point.at for point in points]
    late = [at for at, share in ours.outcome.served if share < GOAL_PCT / 100]
    if not late or not points:
        return
    # Whoever came in that minute met the replicas of its end, or waited for them.
    met = [points[max(0, bisect_right(times, at + 60.0) - 1)] for at in late]
    counts = Counter(_why(point, scenario.most) for point in met)
    cures = {
        BOUND: f"with all {scenario.most} replicas that there may be: {_more_room(scenario)}",
        STARTING: "while replicas were starting: a higher scaling.min has them there before the load, and a faster start helps as much",
        OTHER: "with every replica that was asked for ready: a lone long prompt, a burst of seconds, or a plan that is too slow for slo",
    }
    parts = [f"{100 * counts[why] / len(late):.0f}% {cures[why]}" for why in cures if counts[why]]
    yield f"of the time in which fewer than 99 of 100 were in time, {'; '.join(parts)}"


def _why(point: Point, most: int) -> str:
    if point.starting:
        return STARTING
    return BOUND if point.told >= most else OTHER


def _more_room(scenario: Scenario) -> str:
    if scenario.fixed:
        return "spec.replicas holds their number: raise it, or leave it out and set scaling.max"
    if scenario.most < scenario.hardware.most:
        return f"raise scaling.max or the budget; the fleet has room for {scenario.hardware.most}"
    return "the fleet has no room for more"


def better_plan(
    arrivals: Arrivals, declared: Workload, plan: Plan, replan: Callable[[Workload], Plan | None]
) -> str | None:
    """What the operator would say of BetterPlanAvailable, had it watched this traffic for as long as it wants to."""

    def lengths(tokens: Sequence[int]) -> Lengths:
        ordered = sorted(tokens)
        p50, p95, p99 = (float(ordered[int(share * (len(ordered) - 1))]) for share in (0.50, 0.95, 0.99))
        return Lengths(p50=p50, p95=p95, p99=p99)

    seen = Observed(
        since=0.0,
        at=max(arrivals.span_s, QUIET_S),
        prompt=lengths(arrivals.inputs),
        output=lengths(arrivals.outputs),
        requests=float(len(arrivals)),
        peak_rate=arrivals.busiest(),
    )
    made: list[Plan] = []

    def kept(workload: Workload) -> Plan | None:
        made[:] = [one for one in (replan(workload),) if one is not None]
        return made[0] if made else None

    told = better_declaration(seen, declared, plan, kept)
    return None if told is None else f"{told.message}{_otherwise(plan, made[0])}"


def _otherwise(plan: Plan, fresh: Plan) -> str:
    """Of two plans that may look alike: what a replica is told, and what it is planned for."""
    now, then = plan.sets[0], fresh.sets[0]
    pairs = [
        (name, getattr(now.settings, name), getattr(then.settings, name))
        for name in ("max_num_seqs", "max_num_batched_tokens", "watermark_permille")
    ]
    said = [f"{name} {new} instead of {old}" for name, old, new in pairs if new != old]
    if now.performance is not None and then.performance is not None:
        old, new = now.performance.requests_per_second, then.performance.requests_per_second
        said.append(f"{new:.2f} requests/s a replica instead of {old:.2f}")
    return f", with {', '.join(said)}" if said else ""
