"""One GPU's memory ledger as text for people: the bar, the verdict, the terms, and what the cache will hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, gib, many, short, spread
from plimsoll.planning.memory.ledger import Ledger


def memory_report(ledger: Ledger, *, colour: bool, everything: bool) -> Iterator[RenderableType]:
    drawn = drawing.bar(ledger, colour=colour, width=drawing.bar_width())
    drawn.append(f"  {gib(ledger.budget_bytes)} of {gib(ledger.device_bytes)} GiB for the engine")
    yield drawing.facts([("Memory", drawn), ("", drawing.legend(ledger, colour=colour))])
    style = drawing.VERDICT_STYLE[ledger.verdict]
    verdict = Text.assemble(
        (ledger.verdict.value, style), f", risk of running out {ledger.risk.value}: {ledger.reason}"
    )
    yield drawing.facts([("Verdict", verdict)])
    if everything:
        rows = [
            (
                f"  {term.name}",
                gib(term.bytes.mid, 2),
                f"{gib(term.bytes.low, 2)} to {gib(term.bytes.high, 2)}",
                term.certainty.value,
                f"{term.formula}{inputs_text(term.inputs)}",
            )
            for term in ledger.terms
            if term.bytes.high > 0 or term.name == "headroom"
        ]
        yield ""
        heads = ("  TERM", "GIB", "90% WITHIN", "KNOWN", "FORMULA")
        yield drawing.table(heads, rows, left=(0, 3, 4), fold=4)
        yield ""


def inputs_text(inputs: Mapping[str, str]) -> str:
    listed = ", ".join(f"{name} {value}" for name, value in inputs.items())
    return f"  [{listed}]" if listed else ""


def cache_report(ledger: Ledger) -> Iterator[tuple[str, str]]:
    capacity = ledger.capacity
    if capacity is None:
        return
    if not capacity.blocks.high:
        yield "KV cache", "none: this model keeps nothing from one request to the next"
        return
    tokens = spread(capacity.tokens, show=count)
    blocks = spread(capacity.blocks, show=count)
    yield "KV cache", f"{tokens} tokens in {blocks} blocks of {capacity.block_size}"
    longest, usual = capacity.concurrency_at_max_len.mid, capacity.concurrency_at_workload.mid
    usually = f", {short(usual)} at the workload's" if usual != longest else ""
    yield "", f"{many(longest, 'request', short)} at full length{usually}"
