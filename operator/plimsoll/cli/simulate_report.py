"""A simulation on a terminal: what was replayed, one table a router, what was done and why, and what the figures rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from statistics import median
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, many, short
from plimsoll.cli.simulate_clock import Clock
from plimsoll.control.record import Act
from plimsoll.facts.spans import DAY_S
from plimsoll.load.slo import percent
from plimsoll.simulate.compare import Result, hours_said
from plimsoll.simulate.fidelity import brief_error
from plimsoll.simulate.outcome import Action
from plimsoll.simulate.report import Report
from plimsoll.simulate.router import Routing
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.seeds import seeds_said, spreads
from plimsoll.simulate.several import Played
from plimsoll.simulate.world import START_P90_S, STARTS_S

HEADS: Final = (
    "POLICY",
    "SLO %",
    "MINUTES <99%",
    "GPU-HOURS",
    "REPLICAS",
    "TTFT P50, P99 MS",
    "ITL P99 MS",
    "PREEMPTED/1000",
    "ACTIONS/DAY",
    "REVERSALS/DAY",
    "NOT SERVED",
)
SLEPT: Final = ("POLICY", "SLEPT", "HOURS ASLEEP", "GPU-HOURS SAVED", "WAITED", "WAIT P50, P99, MOST S")
WORLDS: Final = ("POLICY", "BEHIND", "99% KEPT", "SLO % LEAST, MIDDLE, MOST", "GPU-HOURS LEAST, MIDDLE, MOST")
SPENT: Final = (
    "POLICY",
    "GPU-HOURS FOR LOAD",
    "FOR SCALING.MIN",
    "HELD BY WAITS",
    "HELD BY CAUTION",
    "STARTING",
    "DRAINING",
    "NOT KNOWN",
)
SETS: Final = ("POLICY", "SET", "REPLICAS", "GPU-HOURS", "COST", "ANSWERED")
RETUNES: Final = ("AT", "SETTING", "STEP", "WHY")
FEW: Final = 12
LISTED: Final = 500
"""Actions, or steps of retunes, that a page lists and marks; the JSON form has them all."""
RETUNES_FEW: Final = 24
"""Steps; a retune that is kept takes five and more."""
BUSY_S: Final = 600.0
START_P50_S: Final = median(STARTS_S)
BRIEF: Final = 190
"""Characters of a note on a terminal, about two lines; pages and the JSON form have it whole."""
PARTS: Final = (("; ", ". "), (": ",))
"""What stands between the parts of a note, of which the first says what matters most: what leads to a part says nothing without it, so a
note ends there only where it has no other end."""


def router(report: Report, routing: Routing) -> str:
    """A heading."""
    if routing is Routing.POOL:
        return "behind an InferencePool: each request to the least loaded replica"
    if report.scenario.closes:
        return "behind a Service: engines close connections, so each request finds a replica anew, by chance"
    return "behind a Service: connections stay with the replica they found"


def simulation_report(report: Report) -> Iterator[RenderableType]:
    yield Text(report.scenario.name, style="bold")
    yield drawing.facts(about(report), width=9)
    for routing, results in report.results.items():
        yield ""
        yield Text(router(report, routing), style="bold")
        yield drawing.figures(HEADS, (row(one) for one in results))
        for heads, rows in beside(report, results):
            yield ""
            yield drawing.figures(heads, rows)
    if report.several:
        yield ""
        yield Text(over_worlds(report), style="bold")
        yield drawing.figures(WORLDS, world_rows(report))
    if report.conclusions:
        yield ""
        yield drawing.facts((("so", text) for text in report.conclusions), width=4)
    yield ""
    ran = report.results[report.headline]
    yield drawing.facts((("with", f"{one.policy}: {set_to(one)}") for one in ran), width=4)
    clock = Clock(report.began)
    for one in ran:
        if one.outcome.actions:
            yield ""
            yield from _actions(one, clock)
        if one.outcome.acts:
            yield ""
            yield from _retunes(one, clock)
    yield ""
    *others, _ = report.notes
    yield drawing.facts((("note", text) for text in (*map(brief, others), brief_error())), width=4)


def brief(note: str) -> str:
    """As many of a note's parts as two lines hold, from the first on; of one that is too long, as many of its words."""
    if len(note) <= BRIEF:
        return note
    ends = (max(note.rfind(part, 0, BRIEF) for part in parts) for parts in PARTS)
    end = next((one for one in ends if one > 0), 0)
    return f"{note[: end if end > 0 else note.rfind(' ', 0, BRIEF)]} …"


def about(report: Report) -> Iterator[tuple[str, str]]:
    scenario, arrivals = report.scenario, report.arrivals
    least, most = scenario.least if scenario.zero is None else 0, scenario.most
    replicas = (
        f"{least} to {most} replicas" if most > least else f"{many(most, 'replica')}, no more and no fewer"
    )
    sets = " and ".join(_set_said(one) for one in scenario.sets) or f"{scenario.layout} on {scenario.gpu}"
    begun = report.begins_with
    begins = (
        ""
        if begun is None or most == least
        else f"; it begins with {begun}, as the first ten minutes ask for"
    )
    yield "runs", f"{scenario.model}, {sets}, {replicas}{begins}"
    scaled = "" if report.scale == 1 else f", {report.scale:g} times the file's"
    busiest = (
        f", {per_second(arrivals.busiest())} in the busiest ten minutes" if arrivals.span_s > BUSY_S else ""
    )
    traffic = (
        f"{replayed(report)}: {many(len(arrivals), 'request')} in {span(arrivals.span_s)}, {per_second(arrivals.mean_rate)} on "
        f"average{busiest}{scaled}"
    )
    when = Clock(report.began).over(arrivals.span_s)
    traffic += "" if when is None else f"; {when}"
    yield "traffic", traffic
    promised = []
    if scenario.slo.ttft_p99_s is not None:
        promised.append(f"requests have their first token within {1000 * scenario.slo.ttft_p99_s:,.0f} ms")
    if scenario.slo.itl_p99_s is not None:
        promised.append(f"gaps between tokens are at most {1000 * scenario.slo.itl_p99_s:,.0f} ms")
    if promised:
        yield "promised", f"99 of 100 {' and '.join(promised)}"
    yield "planned", f"{_planned(scenario)}; seed {report.world.seed}"
    if report.several:
        yield (
            "worlds",
            f"{seeds_said(report.seeds)}; what is told is of the first, but for the table over all",
        )
    hardware = report.world.hardware
    nodes = f"; a node that is made for it takes {hardware.node_s:,.0f} s more" if hardware.growing else ""
    starts = (
        f"a new replica is ready after {START_P50_S:.0f} s (median), {START_P90_S:.0f} s (one in ten takes longer), "
        f"{max(STARTS_S):,.0f} s at most, as published for a model of 32B{nodes}"
    )
    yield "starts", starts


def _planned(scenario: Scenario) -> str:
    """What a replica carries, and what it answers at the load of the plan where that is less."""
    if scenario.steady_per_second is not None:
        return f"{short(scenario.steady_per_second)} requests/s a replica, of all lengths and as they come"
    at_load, most = short(scenario.requests_per_second), scenario.most_per_second
    if most is None:
        return f"{at_load} typical requests/s a replica at the load that is planned"
    promised = scenario.slo.ttft_p99_s is not None or scenario.slo.itl_p99_s is not None
    within = " within slo" if promised and scenario.attainable else ""
    told = f"up to {short(most)} typical requests/s a replica{within}"
    return told if short(most) == at_load else f"{told}, {at_load} at the load that is planned"


def replayed(report: Report) -> str:
    """The trace by its name; of one that is not replayed from end to end, which part."""
    name, begin_s, lasts_s = report.arrivals.trace, report.from_day * DAY_S, report.arrivals.span_s
    whole_s = lasts_s if report.whole_s is None else report.whole_s
    # A millisecond is what sums of days and seconds may be off by.
    to_end = begin_s + lasts_s > whole_s - 0.001
    if not begin_s and to_end:
        return name
    whole, lasts = f"its {span(whole_s)}", span(lasts_s)
    if not begin_s:
        return f"{name} (the first {lasts} of {whole})"
    if to_end:
        return f"{name} (the last {lasts} of {whole})"
    return f"{name} ({lasts} of {whole}, from {span(begin_s)} into it on)"


def per_second(rate: float) -> str:
    return f"{short(rate)}/s" if rate >= 1 else f"{rate:.2g}/s"


def row(one: Result) -> tuple[str, ...]:
    figures = one.outcome.figures
    return (
        one.policy,
        "-" if figures.slo_pct is None else percent(figures.slo_pct),
        "-" if figures.minutes_over_slo is None else f"{figures.minutes_over_slo:,}",
        hours_said(figures.gpu_hours),
        f"{figures.replicas_mean:.1f} (up to {figures.replicas_most})",
        in_one_cell(_ms(figures.ttft_p50_ms), _ms(figures.ttft_p99_ms)),
        _ms(figures.itl_p99_ms),
        f"{figures.preemptions_per_1000:.1f}",
        f"{figures.actions_per_day:.1f}",
        f"{figures.reversals_per_day:.1f}",
        count(figures.failed + figures.unanswered),
    )


def in_one_cell(*numbers: str) -> str:
    """Without commas within them, which would make two of one."""
    return ", ".join(one.replace(",", "") for one in numbers)


def _set_said(one: Played) -> str:
    ready, growing = one.hardware.ready, one.hardware.growing
    made = (
        f", {growing} of them on nodes that take {one.hardware.node_s:,.0f} s to be made" if growing else ""
    )
    return f"{one.name} (room for {ready + growing}{made}{'; stands by' if one.stands_by else ''})"


def beside(
    report: Report, results: Sequence[Result]
) -> Iterator[tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Further tables of a router: heads and rows, where there is anything to tell."""
    for heads, rows in (
        (SPENT, list(spent_rows(report, results))),
        (SETS, list(set_rows(report, results))),
        (SLEPT, list(slept_rows(results))),
    ):
        if rows:
            yield heads, rows


def over_worlds(report: Report) -> str:
    return f"over {len(report.seeds)} worlds, of {seeds_said(report.seeds)}"


def world_rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Of every policy behind every router, how it does in all worlds that are done."""
    for one in spreads(report.worlds):
        yield (
            one.policy,
            str(one.routing),
            f"{one.kept} of {one.worlds}",
            "-" if one.slo_pct is None else in_one_cell(*map(percent, one.slo_pct)),
            in_one_cell(*map(hours_said, one.gpu_hours)),
        )


def spent_rows(report: Report, results: Iterable[Result]) -> Iterator[tuple[str, ...]]:
    """Of the policies that tell it, where their GPU-hours went. A number that a person fixed went where the person said."""
    for one in results:
        hours, spent = one.gpu_hours, one.outcome.spent
        if spent is not None and hours and not report.scenario.fixed:
            yield one.policy, *(f"{hours_said(part)} ({100 * part / hours:.0f}%)" for part in astuple(spent))


def set_rows(report: Report, results: Iterable[Result]) -> Iterator[tuple[str, ...]]:
    """Of every set of several, what a policy made of it."""
    for one in results:
        for played, each in zip(report.scenario.sets, one.outcome.sets, strict=False):
            price = played.price_per_gpu_hour
            yield (
                one.policy,
                played.name,
                f"{each.replicas_mean:.1f} (up to {each.replicas_most})",
                f"{each.gpu_hours:,.2f}",
                "-" if price is None else f"{each.gpu_hours * price:,.2f} {report.currency}".rstrip(),
                count(each.answered),
            )


def slept_rows(results: Iterable[Result]) -> Iterator[tuple[str, ...]]:
    """Of those that slept, or whose requests had to wait for a replica."""
    for one in results:
        sleep = one.outcome.sleep
        if sleep is not None and (sleep.times or sleep.waited):
            waits = (sleep.wait_p50_s, sleep.wait_p99_s, sleep.wait_most_s)
            yield (
                one.policy,
                many(sleep.times, "time"),
                f"{sleep.hours:,.2f}",
                f"{sleep.gpu_hours_saved:,.2f}",
                count(sleep.waited),
                in_one_cell(*("-" if wait is None else f"{wait:.0f}" for wait in waits)),
            )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def span(seconds: float) -> str:
    for unit, size in (("day", DAY_S), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return many(round(seconds / size, 1), unit, lambda number: f"{number:,g}")
    return many(round(seconds), "second")


def set_to(one: Result) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in one.settings.items())


def _actions(one: Result, clock: Clock) -> Iterator[RenderableType]:
    actions = one.outcome.actions
    yield Text(f"what {one.policy} did", style="bold")
    shown: list[Action] = list(actions[:FEW])
    yield drawing.table(
        ("AT", "REPLICAS", "REASON", "WHY"),
        ((clock.tell(each.at), f"{each.before} → {each.after}", each.reason, each.message) for each in shown),
        left=(0, 1, 2, 3),
        fold=3,
    )
    if len(actions) > FEW:
        yield f"  and {len(actions) - FEW} more; {whole_list(len(actions))}"


def _retunes(one: Result, clock: Clock) -> Iterator[RenderableType]:
    acts = one.outcome.acts
    yield Text(f"what {one.policy} retuned", style="bold")
    yield drawing.table(
        RETUNES, (retune_row(act, clock) for act in acts[:RETUNES_FEW]), left=(0, 1, 2, 3), fold=3
    )
    if len(acts) > RETUNES_FEW:
        yield f"  and {many(len(acts) - RETUNES_FEW, 'more step')}; {whole_list(len(acts))}"


def whole_list(count: int) -> str:
    """Where so many actions or steps stand one by one."""
    return f"{'-o json and --html have' if count <= LISTED else '-o json has'} them all"


def retune_row(act: Act, clock: Clock) -> tuple[str, ...]:
    return clock.tell(act.at), f"{act.what} {act.before} → {act.after}", act.reason, act.message
