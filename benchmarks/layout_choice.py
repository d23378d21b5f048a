"""How often the product's choice among measured layouts is the best one: `layout_choice.py FILE... [--json]`.

A case is one model, precision, hardware, pair of lengths and concurrency, all as the file states them, with at least two
layouts measured, of which at least one keeps the limits. Of a layout measured twice the first row counts. A choice hits where it
keeps the limits by measurement and its throughput per GPU is the best of those that do, or within 3% of it.

The choice sees predictions only, made with constants fitted without the case's model on its hardware.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from latency_accuracy import left_out, score, spread_of
from latency_rows import Row, points_file, read_rows
from plimsoll.planning.choice.rule import NEAR, LatencyLimits, Predicted, pick
from plimsoll.planning.speed.rates import Constants, rates_for

LIMITS = ((50, 2000), (20, 1000), (15, 500), (10, 500))
"""TPOT and TTFT in milliseconds."""

CaseKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    row: Row
    gpus: int
    value: float
    """Output tokens per second and GPU at the concurrency stated."""

    def keeps(self, tpot_ms: float, ttft_ms: float) -> bool:
        return 1000 * self.row.tpot <= tpot_ms and 1000 * self.row.ttft <= ttft_ms


def cases(rows: Sequence[Row]) -> dict[CaseKey, list[Measured]]:
    """Cases in the order of the file, layouts too: ties between layouts of one size are broken by it."""
    found: dict[CaseKey, dict[CaseKey, Measured]] = defaultdict(dict)
    for row in rows:
        said = row.stated
        layout = tuple(said[field] or "1" for field in ("tp", "pp", "attention_dp", "moe_tp", "moe_ep"))
        fields = ("model", "precision", "system", "input_tokens", "output_tokens", "concurrency")
        case = tuple(said[field] for field in fields)
        gpus = int(layout[0]) * int(layout[1])
        found[case].setdefault(layout, Measured(row, gpus, value(row, gpus, row.ttft, row.tpot)))
    return {case: list(layouts.values()) for case, layouts in found.items() if len(layouts) > 1}


def value(row: Row, gpus: int, ttft: float, tpot: float) -> float:
    output = row.load.output_tokens
    return int(row.stated["concurrency"]) * output / (ttft + output * tpot) / gpus


def by_prediction(
    constants: Mapping[tuple[str, str], Constants],
) -> Callable[[Sequence[Measured], float, float], Measured]:
    def chosen(layouts: Sequence[Measured], tpot_ms: float, ttft_ms: float) -> Measured:
        candidates = []
        for layout in layouts:
            row = layout.row
            answer = row.case.answer(rates_for(constants[row.pair], row.case.classes))
            figure = value(row, layout.gpus, answer.ttft_ms.mid / 1000, answer.tpot_ms.mid / 1000)
            candidates.append(Predicted(ttft_ms=answer.ttft_ms, tpot_ms=answer.tpot_ms, value=figure))
        return layouts[pick(candidates, LatencyLimits(ttft_ms=ttft_ms, tpot_ms=tpot_ms)).index]

    return chosen


def fewest(layouts: Sequence[Measured], _tpot: float, _ttft: float) -> Measured:
    return min(layouts, key=lambda layout: layout.gpus)


def most(layouts: Sequence[Measured], _tpot: float, _ttft: float) -> Measured:
    return max(layouts, key=lambda layout: layout.gpus)


def report(rows: Sequence[Row]) -> dict[str, Any]:
    constants = {}
    for pair, mine in left_out(rows).items():
        # Intervals come from the same points as the constants: how far those are from them.
        seen = score([row for row in rows if row.pair != pair] or rows, mine)
        constants[pair] = mine.model_copy(update={"spread": spread_of(seen)})
    rules = {"plimsoll": by_prediction(constants), "fewest_gpus": fewest, "most_gpus": most}
    found = cases([row for row in rows if row.pair in constants])
    lines = []
    for tpot, ttft in LIMITS:
        hits, count = dict.fromkeys(rules, 0), 0
        for layouts in found.values():
            keeping = [layout for layout in layouts if layout.keeps(tpot, ttft)]
            if not keeping:
                continue
            count += 1
            best = max(layout.value for layout in keeping)
            for name, rule in rules.items():
                taken = rule(layouts, tpot, ttft)
                hits[name] += taken.keeps(tpot, ttft) and taken.value >= (1 - NEAR) * best
        lines.append({"tpot_ms": tpot, "ttft_ms": ttft, "cases": count, **hits})
    return {"limits": lines}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=points_file, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    asked = parser.parse_args(arguments)
    rows, skipped = read_rows(asked.files)
    if not rows:
        print(f"no usable rows: {dict(skipped)}", file=sys.stderr)
        return 1
    result = report(rows) | {"skipped": dict(sorted(skipped.items()))}
    if asked.json:
        print(json.dumps(result, indent=2))
        return 0
    print("hits by limits (TPOT/TTFT in ms); aim: at most half the misses of the better rule")
    print(f"{'limits':>10} {'cases':>6} {'plimsoll':>9} {'fewest':>7} {'most':>6}")
    for line in result["limits"]:
        name = f"{line['tpot_ms']}/{line['ttft_ms']}"
        print(
            f"{name:>10} {line['cases']:6} {line['plimsoll']:9} {line['fewest_gpus']:7} {line['most_gpus']:6}"
        )
    missed = sum(line["cases"] - line["plimsoll"] for line in result["limits"])
    better = sum(line["cases"] - max(line["fewest_gpus"], line["most_gpus"]) for line in result["limits"])
    print(f"misses over the four: {missed}, of the better rule at each: {better}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
