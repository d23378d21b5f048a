"""A ramp as text for people: its steps, the knee, what holds the engine back, and how right the plan's figures were."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import short
from plimsoll.load.compare import Compared, Comparison, Range
from plimsoll.load.conclusions import Ramp, Step

HEADS = (
    "LOAD",
    "SENT/S",
    "DONE/S",
    "TOKENS/S",
    "IN FLIGHT",
    "TTFT P50",
    "P99",
    "ITL P50",
    "P99",
    "BAD",
    "KV",
    "WAITING",
    "PREEMPTED",
    "LAG P95",
    "",
)


def ramp_report(ramp: Ramp) -> Iterator[RenderableType]:
    lengths = f"{ramp.input_tokens} + {ramp.output_tokens} tokens"
    ended = ", interrupted" if ramp.interrupted else ""
    yield Text.assemble((ramp.model, "bold"), f" at {ramp.url}: rising {_unit(ramp)} of {lengths}{ended}")
    yield ""
    rows = [step_row(ramp, step) for step in ramp.steps]
    yield drawing.table(HEADS, rows, left=(len(HEADS) - 1,))
    yield ""
    yield drawing.facts(summary(ramp))
    if ramp.comparison is not None:
        yield ""
        yield from _comparison(ramp.comparison)


def summary(ramp: Ramp) -> Iterator[tuple[str, str]]:
    """The sentences below the table, which are also on the HTML page."""
    if ramp.knee is not None:
        at = "below the first step" if ramp.knee.load is None else f"{ramp.knee.load:g} {_unit(ramp)}"
        yield "Knee", f"{at}: {ramp.knee.explanation}"
    elif ramp.tried is not None:
        yield "Knee", f"none up to {ramp.tried:g} {_unit(ramp)}"
    elif ramp.steps:
        yield "Knee", "not known: no load was sent whole and measured to its end"
    if ramp.tried is not None and any(step.result.promises for step in ramp.steps):
        kept = "at no step" if ramp.keeps_targets is None else f"up to {ramp.keeps_targets:g} {_unit(ramp)}"
        targets = ", ".join(f"{one.name} {one.target_ms:g} ms" for one in ramp.steps[0].result.promises)
        yield "Targets", f"kept {kept} ({targets}, for 99 of 100)"
    if ramp.judged_at is not None:
        at = f"at {ramp.judged_at:g} {_unit(ramp)}"
        if ramp.bottleneck is not None:
            yield "Bottleneck", f"{ramp.bottleneck.word} {at}: {ramp.bottleneck.evidence}"
            yield "", f"helps: {ramp.bottleneck.remedy}"
        else:
            yield "Bottleneck", f"none of the five that are known shows {at}"
        for one in ramp.judgements:
            if one is not ramp.bottleneck:
                verdict = {True: "too", False: "no", None: "not judged"}[one.holds]
                yield "", f"{one.word}: {verdict}; {one.evidence}"
    for problem in {one.message: one for step in ramp.steps for one in step.result.problems}.values():
        yield "Problem", problem.message
    for note in ramp.notes:
        yield "Note", note


def step_row(ramp: Ramp, step: Step) -> tuple[str, ...]:
    """A row of the table; ? stands for what no engine exported."""
    result, engine = step.result, step.engine
    ttft, itl = result.ttft_ms, result.itl_ms
    return (
        f"{step.load:g}",
        short(result.counts.sent / result.seconds),
        short(result.rates.requests),
        short(result.rates.output_tokens),
        short(result.rates.in_flight_mean),
        short(ttft.p50) if ttft else "-",
        short(ttft.p99) if ttft else "-",
        short(itl.p50) if itl else "-",
        short(itl.p99) if itl else "-",
        f"{result.counts.bad}",
        "?" if engine is None or engine.kv_usage_max is None else f"{engine.kv_usage_max:.0%}",
        "?" if engine is None or engine.waiting_mean is None else short(engine.waiting_mean),
        "?" if engine is None or engine.preemptions is None else f"{engine.preemptions:g}",
        short(result.lag_ms.p95) if result.lag_ms else "-",
        _mark(ramp, step),
    )


def comparison_row(row: Compared) -> tuple[str, str, str, str]:
    verdict = {True: "within its range", False: "OUTSIDE its range", None: ""}[row.within]
    return (
        row.what,
        _range(row.expected),
        "not reached" if row.measured is None else short(row.measured),
        "" if row.off_percent is None else f"{row.off_percent:+.0f}%{', ' if verdict else ''}{verdict}",
    )


def _comparison(comparison: Comparison) -> Iterator[RenderableType]:
    expected = comparison.expected
    yield Text(f"Plan {expected.plan}, {drawing.many(expected.replicas, 'replica')}", style="bold")
    rows = [(f"  {what}", *rest) for what, *rest in map(comparison_row, comparison.rows)]
    yield drawing.table(
        (f"  AT {expected.in_flight} IN FLIGHT", "PLANNED", "MEASURED", "OFF"), rows, left=(0, 3)
    )
    if comparison.notes:
        yield drawing.facts(("Note", note) for note in comparison.notes)


def _mark(ramp: Ramp, step: Step) -> str:
    said = []
    if ramp.knee is not None and step.load == ramp.knee.load:
        said.append("< knee")
    if step.result.interrupted:
        said.append("interrupted")
    if step.away is not None:
        said.append("its endpoint went away")
    if step.result.kept is False:
        said.append("target missed")
    return ", ".join(said)


def _range(expected: Range) -> str:
    if expected.low == expected.high:
        return short(expected.mid)
    return f"{short(expected.mid)} ({short(expected.low)} to {short(expected.high)})"


def _unit(ramp: Ramp) -> str:
    return "at once" if ramp.closed_loop else "requests/s"
