"""How far predicted latencies are from measured ones: `latency_accuracy.py FILE... [--json] [--rows] [--fit]`.

Points are scored with constants that never saw their model on their hardware: for every such pair the whole fit is made
again from the other points given. The in-sample score beside it uses all of them. `--fit` writes the constants of the product.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from fitting import Fit, Point
from latency_rows import Row, points_file, read_rows
from plimsoll.planning.load import Performance
from plimsoll.planning.speed.rates import Constants, Fitted, Spread, committed, rates_for

DATA = Path(__file__).parent.parent / "operator/plimsoll/planning/speed/performance.yaml"
UNFITTED_CLASS = 1.25
"""One standard deviation of a class's multiplier is 0.2 in the fit; two constants depend on most classes."""
HELD = 0.9
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Scored:
    row: Row
    answer: Performance

    @property
    def tpot_error(self) -> float:
        return 100 * (self.answer.tpot_ms.mid / 1000 / self.row.tpot - 1)

    @property
    def ttft_error(self) -> float:
        return 100 * (self.answer.ttft_ms.mid / 1000 / self.row.ttft - 1)

    @property
    def tpot_held(self) -> bool:
        return self.answer.tpot_ms.low <= 1000 * self.row.tpot <= self.answer.tpot_ms.high

    @property
    def ttft_held(self) -> bool:
        return self.answer.ttft_ms.low <= 1000 * self.row.ttft <= self.answer.ttft_ms.high


UNKNOWN = Spread(tpot=1.0, ttft=1.0, unfitted_class=1.0)


def fitted(rows: Iterable[Row], spread: Spread = UNKNOWN) -> Constants:
    """Constants from these rows alone."""
    points = [Point(case=row.case, tpot=row.tpot, ttft=row.ttft) for row in rows]
    return Constants(
        fitted=Fitted(files=(), rows=len(points), pairs=(), in_sample={}, left_out={}),
        spread=spread,
        constants=Fit(points).run(),
    )


def score(rows: Sequence[Row], constants: Constants) -> list[Scored]:
    return [scored_with(row, constants) for row in rows]


def scored_with(row: Row, constants: Constants) -> Scored:
    return Scored(row, row.case.answer(rates_for(constants, row.case.classes)))


def left_out(rows: Sequence[Row], spread: Spread = UNKNOWN) -> dict[Pair, Constants]:
    """For each model on each hardware constants that its points had no part in.

    A pair that is alone in what is given has nothing to be fitted on; the product's constants serve if they never saw it.
    """
    pairs = sorted({row.pair for row in rows})
    if len(pairs) > 1:
        return {pair: fitted((row for row in rows if row.pair != pair), spread) for pair in pairs}
    return {pair: committed() for pair in pairs if unseen(pair)}


def unseen(pair: Pair) -> bool:
    return " ".join(pair) not in committed().fitted.pairs


def score_left_out(rows: Sequence[Row], spread: Spread = UNKNOWN) -> list[Scored]:
    constants = left_out(rows, spread)
    return [scored_with(row, constants[row.pair]) for row in rows if row.pair in constants]


def summary(
    scored: Sequence[Scored], error: Callable[[Scored], float], held: Callable[[Scored], bool]
) -> dict[str, Any]:
    if not scored:
        return {"rows": 0, "median_pct": None, "p90_pct": None, "in_interval_pct": None, "by_model": {}}
    errors = [abs(error(item)) for item in scored]
    by_model: dict[str, dict[str, Any]] = {}
    for pair in sorted({item.row.pair for item in scored}):
        mine = [error(item) for item in scored if item.row.pair == pair]
        by_model[" ".join(pair)] = {
            "rows": len(mine),
            "median_pct": round(median(map(abs, mine)), 1),
            "p90_pct": round(quantile(map(abs, mine), 0.9), 1),
            "bias_pct": round(median(mine), 1),
        }
    return {
        "rows": len(errors),
        "median_pct": round(median(errors), 1),
        "p90_pct": round(quantile(errors, 0.9), 1),
        "in_interval_pct": round(100 * sum(map(held, scored)) / len(scored), 1),
        "by_model": by_model,
    }


def quantile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def report(rows: Sequence[Row], skipped: Mapping[str, int]) -> dict[str, Any]:
    spread = committed().spread  # of points that had no part in the product's fit, so it should hold here too
    held, seen = score_left_out(rows, spread), score(rows, fitted(rows, spread))
    product = score([row for row in rows if unseen(row.pair)], committed())
    reasons = dict(skipped)
    if len(held) < len(rows):
        reasons["alone in its file, and the product's constants have seen it"] = len(rows) - len(held)
    return {
        **both(held),
        "in_sample": both(seen),
        **({"product_on_unseen": both(product)} if product else {}),
        "skipped": dict(sorted(reasons.items())),
    }


def both(scored: Sequence[Scored]) -> dict[str, Any]:
    return {
        "tpot": summary(scored, lambda item: item.tpot_error, lambda item: item.tpot_held),
        "ttft": summary(scored, lambda item: item.ttft_error, lambda item: item.ttft_held),
    }


def print_tables(result: Mapping[str, Any]) -> None:
    for name, aim in (("tpot", "median 6, p90 15"), ("ttft", "median 20")):
        whole, seen = result[name], result["in_sample"][name]
        if not whole["rows"]:
            continue
        print(
            f"\n{name.upper()} error in % of the measured value, model and hardware left out of the fit (aim: {aim})"
        )
        print(
            f"{'model and hardware':48} {'rows':>5} {'median':>7} {'p90':>7} {'bias':>7} | in sample {'median':>7} {'p90':>7}"
        )
        for pair, line in whole["by_model"].items():
            inside = seen["by_model"][pair]
            print(
                f"{pair:48} {line['rows']:5} {line['median_pct']:7} {line['p90_pct']:7} {line['bias_pct']:+7} |"
                f"           {inside['median_pct']:7} {inside['p90_pct']:7}"
            )
        print(
            f"{'all':48} {whole['rows']:5} {whole['median_pct']:7} {whole['p90_pct']:7} {'':7} |"
            f"           {seen['median_pct']:7} {seen['p90_pct']:7}"
        )
        print(
            f"inside the product's interval: {whole['in_interval_pct']}% of the rows left out (it means to hold 90)"
        )
    for name, whole in result.get("product_on_unseen", {}).items():
        print(
            f"\nthe product's own constants on the {whole['rows']} rows of pairs they never saw: "
            f"{name.upper()} median {whole['median_pct']}, p90 {whole['p90_pct']}"
        )
    print("\nskipped:", ", ".join(f"{n} {why}" for why, n in result["skipped"].items()) or "none")


def print_rows(scored: Sequence[Scored]) -> None:
    print(
        "model system precision version layout in/out concurrency running: TTFT measured predicted %, TPOT measured predicted %"
    )
    for item in scored:
        row, load = item.row, item.row.load
        print(
            f"{row.model_name} {row.system} {row.precision or '-'} {row.version or '-'} {row.layout} "
            f"{load.input_tokens}/{load.output_tokens} {load.concurrency} {row.case.loop.running:.0f}: "
            f"{1000 * row.ttft:.0f} {item.answer.ttft_ms.mid:.0f} {item.ttft_error:+.0f}%, "
            f"{1000 * row.tpot:.1f} {item.answer.tpot_ms.mid:.1f} {item.tpot_error:+.0f}%"
        )


def write_fit(rows: Sequence[Row], names: Sequence[str]) -> None:
    constants, held = fitted(rows), score_left_out(rows)
    seen = score(rows, constants)
    whole = constants.model_copy(
        update={
            "fitted": Fitted(
                files=tuple(names),
                rows=len(rows),
                pairs=tuple(sorted({" ".join(row.pair) for row in rows})),
                in_sample=_medians(seen),
                left_out=_medians(held),
            ),
            "spread": spread_of(held),
        }
    )
    header = "# Written by benchmarks/latency_accuracy.py --fit; planning/speed/rates.py says what the numbers mean.\n"
    DATA.write_text(
        header + yaml.safe_dump(whole.model_dump(mode="json"), sort_keys=False, default_flow_style=None),
        encoding="utf-8",
    )


def spread_of(scored: Sequence[Scored]) -> Spread:
    """Factors around the prediction that hold 90% of these points."""
    tpot = quantile((abs(math.log1p(item.tpot_error / 100)) for item in scored), HELD)
    ttft = quantile((abs(math.log1p(item.ttft_error / 100)) for item in scored), HELD)
    return Spread(tpot=round(math.exp(tpot), 3), ttft=round(math.exp(ttft), 3), unfitted_class=UNFITTED_CLASS)


def _medians(scored: Sequence[Scored]) -> dict[str, float]:
    return {
        f"{name}_{key}": whole[key]
        for name, whole in both(scored).items()
        for key in ("median_pct", "p90_pct")
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=points_file, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    parser.add_argument("--rows", action="store_true", help="every row with predicted, measured and error")
    parser.add_argument("--fit", action="store_true", help="write the product's constants from these points")
    asked = parser.parse_args(arguments)
    rows, skipped = read_rows(asked.files)
    if not rows:
        print(f"no usable rows: {dict(Counter(skipped))}", file=sys.stderr)
        return 1
    if asked.fit:
        write_fit(rows, [path.name for path in asked.files])
    result = report(rows, skipped)
    if asked.json:
        print(json.dumps(result, indent=2))
        return 0
    if asked.rows:
        print_rows(score_left_out(rows))
    print_tables(result)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
