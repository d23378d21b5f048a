"""The lists below a plan: settings with their reasons, alternatives, what was rejected by which rule, and findings.

They are shortened to about a screen unless everything is asked for, and say what they leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from plimsoll.cli import drawing
from plimsoll.cli.drawing import count, short
from plimsoll.cli.ledgers import inputs_text
from plimsoll.planning.choice.late import PARTLY
from plimsoll.planning.choice.targets import UNATTAINABLE
from plimsoll.planning.plan import (
    Advice,
    Alternative,
    Finding,
    Plan,
    PlanSet,
    Rejected,
    Severity,
    Value,
)
from plimsoll.status.findings import missed_of, sentence, where

_SEVERITY: Final = {
    Severity.ERROR: ("Error", "bold red"),
    Severity.WARNING: ("Warning", "yellow"),
    Severity.INFO: ("Note", "dim"),
}
FEW: Final = 6
"""How many lines of a list are shown where not everything is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a report is printed."""

    everything: bool = False
    colour: bool = False
    currency: str | None = None
    empty: frozenset[str] = frozenset()
    """Pools that have no node yet, so that replicas there wait for one to be made."""

    def money(self, amount: str) -> str:
        return f"{Decimal(amount):,.2f}{f' {self.currency}' if self.currency else ''}"


def generates(chosen: PlanSet | None) -> bool:
    """Whether answers are generated token by token. Embeddings and scores are complete after the prefill."""
    return chosen is None or chosen.load.generates


def missed_target(plan: Plan) -> str:
    """What of the latency target is not kept, as the user's field; empty where all of it is, or none is asked for."""
    said = missed_of(plan)
    if said is not None and said.field:
        return said.field
    return "slo" if any(chosen.meets_slo is False for chosen in plan.sets) else ""


def remarks(plan: Plan, style: Style) -> Iterator[RenderableType]:
    for title, block in (
        ("Settings", _settings(plan.values, style)),
        ("Alternatives", _alternatives(plan, style)),
        ("Rejected", _rejected(plan, style)),
        ("To know", _to_know(plan, style)),
    ):
        if block is not None:
            yield ""
            yield Text(title, style="bold")
            yield block


def _settings(values: Sequence[Value], style: Style) -> RenderableType | None:
    """What was decided and why. The whole computation of a value is shown by --all and `explain`."""
    told = [value for value in values if style.everything or value.name not in _TOLD_ELSEWHERE]
    rows = [(f"  {value.name}", value.value, _because(value, style)) for value in told]
    heads = ("  NAME", "VALUE", "BECAUSE")
    return drawing.table(heads, rows, left=range(3), fold=2, clip=not style.everything) if rows else None


def _because(value: Value, style: Style) -> str:
    why = value.source if value.formula == "as set" else f"{value.source}: {value.formula}"
    return f"{why}{inputs_text(value.inputs)}" if style.everything else why


_TOLD_ELSEWHERE: Final = frozenset(
    {"layout", "replicas", "cpu_millis", "memory_bytes", "shm_bytes", "disk_bytes"}
)


def _alternatives(plan: Plan, style: Style) -> RenderableType | None:
    if not plan.alternatives:
        return None
    tokens = generates(plan.sets[0] if plan.sets else plan.nearest)
    speed = ("TTFT MS", "TPOT MS", "TOKENS/S") if tokens else ("ANSWER MS", "REQUESTS/S")
    rows = [
        (
            f"  {' + '.join(other.sets)}",
            short(other.gpus),
            "?" if other.cost.per_hour is None else f"{Decimal(other.cost.per_hour):,.2f}",
            *_speed(other, tokens=tokens),
            other.reason,
        )
        for other in plan.alternatives
    ]
    heads = ("  LAYOUT", "GPUS", f"{style.currency or 'COST'}/H", *speed, "NOT TAKEN BECAUSE")
    last = len(heads) - 1
    return drawing.table(heads, rows, left=(0, last), fold=last, clip=not style.everything)


def _speed(other: Alternative, *, tokens: bool) -> Iterator[str]:
    yield short(other.ttft_ms.mid) if other.ttft_ms else "?"
    if tokens:
        yield short(other.tpot_ms.mid) if other.tpot_ms else "?"
    yield count(other.output_tokens_per_second) if other.output_tokens_per_second else "?"


def _rejected(plan: Plan, style: Style) -> RenderableType | None:
    """Rejected layouts by rule, each rule with the layout that is most like the chosen one; all of them with --all."""
    if not plan.rejected:
        return None
    if style.everything:
        each = [(f"  {one.layout}", ", ".join(one.hardware), one.rule, one.message) for one in plan.rejected]
        return drawing.table(("  LAYOUT", "ON", "RULE", "BECAUSE"), each, left=range(4), fold=3)
    shown = plan.sets[0] if plan.sets else plan.nearest
    chosen = str(shown.hardware) if shown else ""
    ordered = sorted(plan.rejected, key=lambda one: one.rule)
    grouped = [(rule, list(group)) for rule, group in groupby(ordered, key=lambda one: one.rule)]
    grouped.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    rows = [(f"  {rule}", count(len(group)), _example(group, chosen)) for rule, group in grouped[:FEW]]
    if len(grouped) > FEW:
        rows.append(
            (
                "  ...",
                count(sum(len(group) for _, group in grouped[FEW:])),
                "by other rules; see them with --all",
            )
        )
    return drawing.table(("  RULE", "LAYOUTS", "FOR EXAMPLE"), rows, left=(0, 2), fold=2, clip=True)


def _example(rejected: Sequence[Rejected], chosen: str) -> str:
    one = next((one for one in rejected if chosen in one.hardware), rejected[0])
    where = chosen if chosen in one.hardware else next(iter(one.hardware), "")
    return f"{one.layout}{f' on {where}' if where else ''}: {one.message}"


def _to_know(plan: Plan, style: Style) -> RenderableType | None:
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    findings = sorted(plan.findings, key=lambda finding: order[finding.severity])
    lines = [_finding(finding, style) for finding in findings]
    lines += [("Advice", _advice(advice)) for advice in plan.advice]
    if not lines:
        return None
    hidden = 0 if style.everything else max(0, len(lines) - FEW)
    if hidden:
        lines = [*lines[:FEW], ("", Text(f"{hidden} more with --all"))]
    return drawing.facts(lines, width=8)


def _advice(advice: Advice) -> Text:
    """An advice with what it takes, which a preset's hint says itself."""
    message = advice.message.rstrip(".")
    return Text(message if advice.topic == "preset" else f"{message}. Takes {advice.takes}")


def _finding(finding: Finding, style: Style) -> tuple[str, Text]:
    word, colour = _SEVERITY[finding.severity]
    # Of a warning the remedy is left to --all, but a target that is missed is an answer to what was asked.
    helps = style.everything or finding.severity is Severity.ERROR or finding.reason in (UNATTAINABLE, PARTLY)
    said = sentence(finding) if helps else where(finding)
    return word, Text.assemble((f"{finding.reason}: ", colour), said)
