"""A measurement as text for people: what was answered, how fast, which targets were kept, and notes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, many, short
from plimsoll.load.result import Result
from plimsoll.load.sketch import Spread
from plimsoll.load.slo import Promise, percent

HEADS = ("", "MEAN", "P50", "P90", "P95", "P99", "MAX", "OF")


def bench_report(result: Result) -> Iterator[RenderableType]:
    ended = ", interrupted" if result.interrupted else ""
    yield Text.assemble(
        (result.model, "bold"),
        f" at {result.url}: {result.pattern}, {short(result.seconds)} s measured{ended}",
    )
    yield drawing.facts(_facts(result))
    rows = [
        (name, *_row(spread), of)
        for name, spread, of in (
            ("TTFT ms", result.ttft_ms, "requests"),
            ("ITL ms", result.itl_ms, "gaps"),
            ("TPOT ms", result.tpot_ms, "requests"),
            ("Whole answer ms", result.e2e_ms, "requests"),
            ("Longest gap ms", result.longest_gap_ms, "requests"),
            ("Client lag ms", result.lag_ms, "looks at the clock"),
        )
        if spread is not None
    ]
    if rows:
        yield ""
        yield drawing.table(HEADS, [(f"  {row[0]}", *row[1:]) for row in rows], left=(0, 7))
    if result.promises:
        yield ""
        yield from (_promise(one, whole=not result.counts.not_sent) for one in result.promises)
    remarks = [("Problem", f"{one.message} ({many(one.times, 'time')})") for one in result.problems]
    remarks += [("Note", one) for one in result.notes]
    if remarks:
        yield ""
        yield drawing.facts(remarks)


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    counts, rates, lengths = result.counts, result.rates, result.lengths
    others = [
        f"{count(number)} {name}"
        for name, number in (
            ("failed", counts.failed),
            ("cut off", counts.cut),
            ("refused", counts.refused),
            ("timed out", counts.timed_out),
            ("unfinished", counts.unfinished),
            ("not sent", counts.not_sent),
        )
        if number
    ]
    yield "Requests", ", ".join([f"{count(counts.sent)} sent, {count(counts.ok)} ok", *others])
    good = (
        "" if rates.good_requests is None else f", {short(rates.good_requests)} of them within every target"
    )
    yield "Rate", f"{short(rates.requests)} requests/s{good}"
    prompt = "" if rates.input_tokens is None else f", {short(rates.input_tokens)} prompt tokens/s"
    yield "Tokens", f"{short(rates.output_tokens)} output tokens/s{prompt}"
    yield "In flight", f"{short(rates.in_flight_mean)} on average, {count(rates.in_flight_max)} at most"
    if lengths.output_asked is not None and lengths.output_mean is not None:
        yield "Lengths", _lengths(result)


def _lengths(result: Result) -> str:
    lengths = result.lengths
    asked = f"{short(lengths.input_asked or 0)} + {short(lengths.output_asked or 0)} asked"
    if lengths.input_mean is None:
        return f"{asked}, {short(lengths.output_mean or 0)} answered, prompts not counted by the server"
    off = lengths.input_error_percent
    error = "" if off is None else f"; prompts off by {off:.1f}%"
    return f"{asked}, {short(lengths.input_mean)} + {short(lengths.output_mean or 0)} delivered{error}"


def _row(spread: Spread) -> tuple[str, ...]:
    figures = (spread.mean, spread.p50, spread.p90, spread.p95, spread.p99, spread.max)
    return tuple(short(value) for value in figures)


def _promise(promise: Promise, *, whole: bool) -> Text:
    """Of a load that was not sent whole none is known to be kept."""
    kept = {True: ("KEPT  ", "bold green"), False: ("MISSED", "bold red"), None: ("?     ", "bold yellow")}[
        promise.kept if whole or not promise.kept else None
    ]
    what = "gaps" if promise.name == "itl" else "requests"
    said = (
        "nothing to judge by"
        if promise.within is None
        else f"{percent(100 * promise.within)}% of {what} within; 99% were promised"
    )
    return Text.assemble("  ", kept, f" {promise.name} {promise.target_ms:g} ms: {said}")
