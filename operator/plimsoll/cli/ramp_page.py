"""A ramp as one HTML page.

It has three charts over the load: gaps between tokens, first tokens, and answers against requests. Both axes of latencies are
logarithmic, so a proportional rise is a straight line of slope one, and the knee is where the curve leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

from plimsoll.cli.drawing import short
from plimsoll.cli.page import Line, page, table
from plimsoll.cli.page_svg import Sheet
from plimsoll.cli.ramp_report import HEADS, comparison_row, step_row, summary
from plimsoll.load.conclusions import Ramp, Step

SHEET: Final = Sheet(width=560, height=320, left=64, right=16, top=16, bottom=44)
LABEL = 28
"""Width that the label of a load takes."""

_STYLE: Final = """
h2 { font-size: 1rem; margin: 0 0 .3rem; }
figure { margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1.5rem; }
.a { stroke: var(--a); fill: var(--a); } .b { stroke: var(--b); fill: var(--b); }
.line { fill: none; stroke-width: 2; } .even { stroke: var(--dim); stroke-dasharray: 3 4; fill: none; }
.knee { stroke: var(--mark); stroke-dasharray: 6 3; } .target { stroke: var(--dim); stroke-dasharray: 1 3; }
text.knee { fill: var(--mark); stroke: none; } text.a, text.b { stroke: none; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    lines: tuple[Line, ...]
    unit: str
    logarithmic: bool
    target: float | None = None
    even: tuple[float, float] | None = None
    """A point through which the line of a proportional rise is drawn."""


def ramp_page(ramp: Ramp) -> str:
    title = f"{ramp.model}: rising load"
    unit = "requests at once" if ramp.closed_loop else "requests/s"
    charts = "".join(
        f"<figure><h2>{escape(chart.title)}</h2>{_svg(chart, ramp, unit)}</figure>" for chart in _charts(ramp)
    )
    said = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in summary(ramp))
    about = f"{ramp.url}, {unit} of {ramp.input_tokens} + {ramp.output_tokens} tokens"
    body = (
        f"<p>{escape(about)}</p>\n"
        f'<div class="charts">{charts}</div>\n<dl>{said}</dl>\n'
        f"{table(HEADS, [step_row(ramp, step) for step in ramp.steps])}\n{_comparison(ramp)}"
    )
    return page(title, body, _STYLE)


def _charts(ramp: Ramp) -> Iterator[Chart]:
    def line(name: str, style: str, figure: Callable[[Step], float | None]) -> Line:
        points = ((step.load, figure(step)) for step in ramp.steps)
        return Line(name, style, tuple((load, value) for load, value in points if value is not None))

    targets = {one.name: one.target_ms for step in ramp.steps[:1] for one in step.result.promises}
    itl = line("p99", "a", lambda step: step.result.itl_ms.p99 if step.result.itl_ms else None)
    at_knee = next((point for point in itl.points if ramp.knee and point[0] == ramp.knee.load), None)
    yield Chart(
        title="Gap between tokens (ITL)",
        lines=(itl, line("p50", "b", lambda step: step.result.itl_ms.p50 if step.result.itl_ms else None)),
        unit="ms",
        logarithmic=True,
        target=targets.get("itl"),
        even=at_knee,
    )
    yield Chart(
        title="First token (TTFT)",
        lines=(
            line("p99", "a", lambda step: step.result.ttft_ms.p99 if step.result.ttft_ms else None),
            line("p50", "b", lambda step: step.result.ttft_ms.p50 if step.result.ttft_ms else None),
        ),
        unit="ms",
        logarithmic=True,
        target=targets.get("ttft"),
    )
    yield Chart(
        title="Answers",
        lines=(
            line("answered", "a", lambda step: step.result.rates.requests),
            line("sent", "b", lambda step: step.result.counts.sent / step.result.seconds),
        ),
        unit="requests/s",
        logarithmic=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The positions of things in a chart."""

    across: Callable[[float], float]
    up: Callable[[float], float]
    top: float
    """The highest value on the axis."""
    ticks: Sequence[float]
    unit: str
    """Unit of the load."""


def _above_nothing(line: Line) -> Line:
    return replace(line, points=tuple(point for point in line.points if point[1] > 0))


def _svg(chart: Chart, ramp: Ramp, unit: str) -> str:
    # A logarithmic axis has no place for 0, as of gaps that are shorter than the clock can tell.
    chart = (
        replace(chart, lines=tuple(_above_nothing(line) for line in chart.lines))
        if chart.logarithmic
        else chart
    )
    values = [value for line in chart.lines for _, value in line.points]
    if not any(values):
        return "<p>nothing was measured</p>"
    values += [] if chart.target is None else [chart.target]
    low, top = min(values) / 1.3 if chart.logarithmic else 0.0, max(values) * 1.2
    frame = Frame(
        across=_scale([step.load for step in ramp.steps], SHEET.left, SHEET.end, logarithmic=True),
        up=_scale([low, top], SHEET.floor, SHEET.top, logarithmic=chart.logarithmic),
        top=top,
        ticks=_ticks(low, top, logarithmic=chart.logarithmic),
        unit=unit,
    )
    parts = [
        *_axes(chart, ramp, frame),
        *_marks(chart, ramp, frame),
        *(part for line in chart.lines for part in _curve(line, chart, frame)),
    ]
    return SHEET.picture(chart.title, parts)


def _axes(chart: Chart, ramp: Ramp, frame: Frame) -> Iterator[str]:
    for tick in frame.ticks:
        yield from SHEET.graded(frame.up(tick), tick)
    last = -math.inf
    for step in ramp.steps:
        x = frame.across(step.load)
        if x - last < LABEL:
            continue
        last = x
        yield f'<text x="{x:.1f}" y="{SHEET.floor + 16}" text-anchor="middle">{step.load:g}</text>'
    yield f'<text x="{(SHEET.left + SHEET.width) / 2:.0f}" y="{SHEET.height - 6}" text-anchor="middle">{escape(frame.unit)}</text>'
    yield f'<text x="4" y="{SHEET.top - 4}">{escape(chart.unit)}</text>'


def _marks(chart: Chart, ramp: Ramp, frame: Frame) -> Iterator[str]:
    if ramp.knee is not None and ramp.knee.load is not None:
        x = frame.across(ramp.knee.load)
        yield f'<line class="knee" x1="{x:.1f}" x2="{x:.1f}" y1="{SHEET.top}" y2="{SHEET.floor}"/>'
        yield f'<text class="knee" x="{x + 4:.1f}" y="{SHEET.top + 10}">knee</text>'
    if chart.target is not None:
        y = frame.up(chart.target)
        yield SHEET.level("target", y)
        yield f'<text x="{SHEET.left + 4}" y="{y - 4:.1f}">target</text>'
    if chart.even is not None:
        load, value = chart.even
        most = min(ramp.steps[-1].load, load * frame.top / value)
        yield (
            f'<path class="even" d="M{frame.across(load):.1f} {frame.up(value):.1f}'
            f'L{frame.across(most):.1f} {frame.up(value * most / load):.1f}">'
            "<title>in proportion to the load</title></path>"
        )


def _curve(line: Line, chart: Chart, frame: Frame) -> Iterator[str]:
    if not line.points:
        return
    placed = [(frame.across(load), frame.up(value)) for load, value in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
    yield f'<path class="line {line.style}" style="fill:none" d="M{path}"/>'
    for (load, value), (x, y) in zip(line.points, placed, strict=True):
        said = f"{line.name} {short(value)} {chart.unit} at {load:g} {frame.unit}"
        yield f'<circle class="{line.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(said)}</title></circle>'
    x, y = placed[-1]
    yield f'<text class="{line.style}" x="{x - 6:.1f}" y="{y - 8:.1f}" text-anchor="end">{escape(line.name)}</text>'


def _scale(
    values: Sequence[float], start: float, end: float, *, logarithmic: bool
) -> Callable[[float], float]:
    def shape(value: float) -> float:
        return math.log(value) if logarithmic else value

    low, high = shape(min(values)), shape(max(values))
    if low == high:
        return lambda _: (start + end) / 2
    return lambda value: start + (shape(value) - low) / (high - low) * (end - start)


def _ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    if logarithmic:
        marks = [digit * 10.0**power for power in range(-3, 9) for digit in (1, 2, 5)]
        return [mark for mark in marks if low <= mark <= high]
    step = 10.0 ** math.floor(math.log10(high))
    step = next(one for one in (step / 5, step / 2, step, 2 * step) if high / one <= 6)
    return [step * count for count in range(int(high / step) + 1)]


def _comparison(ramp: Ramp) -> str:
    if ramp.comparison is None:
        return ""
    expected = ramp.comparison.expected
    heads = (f"at {expected.in_flight} in flight", "planned", "measured", "off")
    notes = "".join(f"<p>{escape(note)}</p>" for note in ramp.comparison.notes)
    return f"<h2>Plan {escape(expected.plan)}</h2>{table(heads, [comparison_row(row) for row in ramp.comparison.rows])}{notes}\n"
