"""A simulation as one HTML page.

The table of all policies, then for each of the headline's router timelines over the same axis: replicas, cache, queue, how far the
limits were kept, and what users waited for. Each action, and each step of a retune, is a mark that tells its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from math import floor, log10
from typing import Final

from plimsoll.cli.drawing import count, many, short
from plimsoll.cli.page import Line, page, table
from plimsoll.cli.page_svg import Sheet
from plimsoll.cli.simulate_clock import Clock
from plimsoll.cli.simulate_report import (
    HEADS,
    LISTED,
    RETUNES,
    WORLDS,
    about,
    beside,
    over_worlds,
    replayed,
    retune_row,
    router,
    row,
    set_to,
    whole_list,
    world_rows,
)
from plimsoll.simulate.compare import Result
from plimsoll.simulate.fidelity import short_error
from plimsoll.simulate.latencies import Latency
from plimsoll.simulate.outcome import Point
from plimsoll.simulate.report import Report
from plimsoll.simulate.tally import arrivals_over, served_every

SHEET: Final = Sheet(width=1100, height=150, left=52, right=12, top=14, bottom=20)
OF_SETS: Final = "abdc"
"""Colours of sets, the first ones first; grey, which is quiet, comes last."""
CUT: Final = 4
"""How many times a limit the axis of a latency shows."""
LETTER: Final = 7.0
"""Room for one of a curve's name, in capitals of a wide font."""

_STYLE: Final = """
.chart svg { min-width: 52rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; } h3 { font-size: .9rem; margin: .8rem 0 0; }
.line { fill: none; stroke-width: 1.6; } .a { stroke: var(--a); } .b { stroke: var(--b); } .c { stroke: var(--c); } .d { stroke: var(--ink); }
text.a { fill: var(--a); stroke: none; } text.b { fill: var(--b); stroke: none; } text.c { fill: var(--dim); stroke: none; } text.d { fill: var(--ink); stroke: none; }
.act { stroke: var(--mark); stroke-width: 2; } .tune { stroke: var(--mark); stroke-dasharray: 1 3; } .target { stroke: var(--dim); stroke-dasharray: 2 3; }
td:first-child, th:first-child, .actions td, .actions th { text-align: left; } .actions td { vertical-align: top; } .actions td:last-child { white-space: normal; min-width: 20rem; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    title: str
    lines: tuple[Line, ...]
    top: float | None = None
    """The end of the axis; None: by the values, which are counts."""
    low: float = 0.0
    target: float | None = None
    steps: bool = False
    """Counts stay until they change; all else is drawn from point to point."""
    every_s: float | None = None
    """Each value is of so many seconds, and there is no curve where nothing was to be valued; None: values are there all the time."""


def simulation_page(report: Report) -> str:
    title = f"{report.scenario.name}: replayed {replayed(report)}"
    said = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in about(report))
    tables = "".join(
        f"<h2>{escape(router(report, routing))}</h2>{_tables(report, results)}"
        for routing, results in report.results.items()
    )
    if report.several:
        tables += f"<h2>{escape(over_worlds(report))}</h2>{table(WORLDS, list(world_rows(report)))}"
    so = "".join(f"<p><strong>{escape(text)}</strong></p>" for text in report.conclusions)
    *others, longest = report.notes
    folded = f"<details><summary>{escape(short_error())}</summary><p>{escape(longest)}</p></details>"
    notes = "".join(f"<p>{escape(text)}</p>" for text in others) + folded
    stories = "".join(_story(report, one) for one in report.results[report.headline])
    return page(title, f"\n<dl>{said}</dl>\n{so}\n{tables}\n{notes}\n{stories}", _STYLE)


def _tables(report: Report, results: Sequence[Result]) -> str:
    further = (table(heads, rows) for heads, rows in beside(report, results))
    return table(HEADS, [row(one) for one in results]) + "".join(further)


def _story(report: Report, one: Result) -> str:
    clock = Clock(report.began)
    charts = "".join(
        f"<h3>{escape(chart.title)}</h3>{_svg(chart, report.arrivals.span_s, one, clock)}"
        for chart in _charts(report, one)
    )
    heading = f"{one.policy} ({set_to(one)}), {router(report, report.headline)}"
    return f"<h2>{escape(heading)}</h2>{charts}{_actions(one, clock)}{_retunes(one, clock)}"


def _charts(report: Report, one: Result) -> Iterator[Timeline]:
    points = one.outcome.points

    def line(name: str, style: str, figure: Callable[[Point], float]) -> Line:
        return Line(name, style, tuple((point.at, figure(point)) for point in points))

    rates = [point.arrivals_per_s for point in points]
    most = max(rates, default=0.0)
    replicas = max((point.told for point in points), default=1)
    scale = replicas / most if most else 0.0
    # Of days this is longer than the ten minutes that are told to be the busiest.
    minutes = arrivals_over(points[1].at - points[0].at) if len(points) > 1 else 1
    yield Timeline(
        title=f"Replicas: asked for, ready; arrivals in grey, {short(most)}/s at their highest over {many(minutes, 'minute')}",
        lines=(
            line("arrivals", "c", lambda point: point.arrivals_per_s * scale),
            line("asked for", "b", lambda point: float(point.told)),
            line("ready", "a", lambda point: float(point.ready)),
        ),
        steps=True,
    )
    if one.outcome.sets:
        yield Timeline(
            title="Replicas that are ready, by set",
            lines=tuple(
                Line(
                    played.device,
                    OF_SETS[min(place, len(OF_SETS) - 1)],
                    tuple((at, float(ready)) for at, ready in each.ready),
                )
                for place, (played, each) in enumerate(
                    zip(report.scenario.sets, one.outcome.sets, strict=True)
                )
            ),
            steps=True,
        )
    yield Timeline(
        title="KV cache in use, %: mean and the fullest replica",
        lines=(
            line("fullest", "b", lambda point: 100 * point.kv_most),
            line("mean", "a", lambda point: 100 * point.kv),
        ),
        top=100.0,
    )
    yield Timeline(
        title="Requests waiting, over all replicas"
        + ("" if one.outcome.sleep is None else ", and held while none is ready"),
        lines=(line("waiting", "a", lambda point: float(point.waiting)),),
    )
    every_s = 60.0 * served_every(int(report.arrivals.span_s // 60) + 1)
    if one.outcome.figures.slo_pct is not None:
        served = tuple((at, 100 * share) for at, share in one.outcome.served)
        low = min(90.0, *(10 * int(share / 10) for _, share in served)) if served else 0.0
        yield Timeline(
            title="Within the limits, %: of first tokens or of gaps between tokens, whichever is less",
            lines=(Line("within", "a", served),),
            low=low,
            top=100.0,
            target=99.0,
            every_s=every_s,
        )
    seen, slo = one.outcome.latencies, report.scenario.slo
    yield waits("First token, ms: p99 of those answered", seen, "ttft_p99_ms", slo.ttft_p99_s, every_s)
    yield waits("Between tokens, ms: p99 of all gaps", seen, "itl_p99_ms", slo.itl_p99_s, every_s)


def waits(
    title: str, seen: Sequence[Latency], figure: str, limit_s: float | None, every_s: float
) -> Timeline:
    """A latency over time. What is promised is seen beside it however far above it lies, so a curve ends at some times the limit."""
    values = ((one.at, getattr(one, figure)) for one in seen)
    points = tuple((at, value) for at, value in values if value is not None)
    highest = max((value for _, value in points), default=0.0)
    target = None if limit_s is None else 1000 * limit_s
    top = most_of(max(highest, target or 0.0))
    if target is not None and highest > CUT * target:
        top = most_of(CUT * target)
        title += f", up to {count(highest)}, of which the axis shows {count(top)}"
    return Timeline(title=title, lines=(Line("p99", "a", points),), top=top, target=target, every_s=every_s)


def _svg(chart: Timeline, span_s: float, one: Result, clock: Clock) -> str:
    top = chart.top
    if top is None:
        top = most_of(max((value for line in chart.lines for _, value in line.points), default=0.0))

    def across(at: float) -> float:
        return SHEET.left + at / span_s * (SHEET.end - SHEET.left)

    def up(value: float) -> float:
        share = (min(value, top) - chart.low) / (top - chart.low)
        return SHEET.floor - share * (SHEET.floor - SHEET.top)

    parts = [*_grid(chart.low, top, clock.ticks(span_s), across, up)]
    if chart.target is not None:
        parts.append(SHEET.level("target", up(chart.target)))
    begins = names_begin([line.name for line in chart.lines])
    for line, left in zip(chart.lines, begins, strict=True):
        if line.points:
            path = _path(chart, line, span_s, across, up)
            parts.append(f'<path class="line {line.style}" d="{path}"/>')
            parts.append(
                f'<text class="{line.style}" x="{left:.0f}" y="{SHEET.top - 4}">{escape(line.name)}</text>'
            )
    for action in one.outcome.actions[:LISTED]:
        said = f"{clock.tell(action.at)} {action.before} → {action.after}: {action.reason}: {action.message}"
        parts.append(_mark("act", across(action.at), SHEET.floor + 6, said))
    for act in one.outcome.acts[:LISTED]:
        at, change, step, why = retune_row(act, clock)
        parts.append(_mark("tune", across(act.at), SHEET.top, f"{at} {change}: {step}: {why}"))
    return f'<div class="scroll chart">{SHEET.picture(chart.title, parts)}</div>'


def _path(
    chart: Timeline, line: Line, span_s: float, across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    if chart.every_s is not None:
        parts, end = [], -1.0
        for at, value in line.points:
            parts.append(f"V{up(value):.1f}" if at == end else f"M{across(at):.1f} {up(value):.1f}")
            end = at + chart.every_s
            parts.append(f"H{across(min(end, span_s)):.1f}")
        return "".join(parts)
    places = [(f"{across(at):.1f}", f"{up(value):.1f}") for at, value in line.points]
    path = "".join(f"H{x}V{y}" if chart.steps else f"L{x} {y}" for x, y in places)
    # The last value holds to the end, so that the line of a single point is seen too.
    last = f"H{across(span_s):.1f}" if len(places) == 1 or chart.steps else ""
    return f"M{' '.join(places[0])}{path}{last}"


def names_begin(names: Sequence[str]) -> list[float]:
    """Of each curve, from the left: what is scrolled on a narrow screen is seen there first."""
    widths = (LETTER * len(name) + 16 for name in names[:-1])
    return list(accumulate(widths, initial=float(SHEET.left)))


def _mark(style: str, x: float, up_to: float, said: str) -> str:
    """From the axis to there; it tells what was done then."""
    line = f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{SHEET.floor}" y2="{up_to}">'
    return f"{line}<title>{escape(said)}</title></line>"


def most_of(value: float) -> float:
    """The next number that four parts of an axis divide into readable ones; what is counted has no halves."""
    step = 4 * 10.0 ** floor(log10(max(value, 4.0) / 4))
    between = 3.0 if step < 40 else 2.5
    return next(one for one in (step, 2 * step, between * step, 5 * step, 10 * step) if one >= value)


def _grid(
    low: float,
    top: float,
    ticks: Sequence[tuple[float, str]],
    across: Callable[[float], float],
    up: Callable[[float], float],
) -> Iterator[str]:
    for part in range(5):
        value = low + (top - low) * part / 4
        yield from SHEET.graded(up(value), value)
    for at, text in ticks:
        x, anchor = across(at), "start" if not at else "middle"
        yield f'<text x="{x:.1f}" y="{SHEET.height - 4}" text-anchor="{anchor}">{text}</text>'


def _actions(one: Result, clock: Clock) -> str:
    rows = [
        (clock.tell(each.at), f"{each.before} → {each.after}", each.reason, each.message)
        for each in one.outcome.actions
    ]
    return _listed(many(len(rows), "action"), ("at", "replicas", "reason", "why"), rows)


def _retunes(one: Result, clock: Clock) -> str:
    rows = [retune_row(act, clock) for act in one.outcome.acts]
    return _listed(f"{many(len(rows), 'step')} of retunes", RETUNES, rows, shown=True)


def _listed(summary: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, shown: bool = False) -> str:
    """What was done, under a line that opens it; nothing where nothing was."""
    if not rows:
        return ""
    more = f"<p>and {len(rows) - LISTED} more; {whole_list(len(rows))}</p>" if len(rows) > LISTED else ""
    listed = table(heads, rows[:LISTED], style="actions")
    return f"<details{' open' if shown else ''}><summary>{summary}</summary>{listed}{more}</details>"
