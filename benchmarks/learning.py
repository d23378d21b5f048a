"""What one observed start teaches about others: the error of their KV memory before and after.

    python benchmarks/learning.py FILE... [--json] [--rows]

A pair is a start that teaches and another of the same model, GPU and engine version, with another context, parallelism or
precision, that is predicted before and after, in tokens as its engine printed them. The teacher's residuals go the way they
go in the operator: through the learned object and into the ledger. Rows whose model helped to fit the constants are predicted
with constants that were fitted without that model, as in kv_accuracy.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from arguments import lines_file
from kv_accuracy import without_own_model
from kv_scores import ConstantsFor, Point, from_config, middle, quantile
from observations import Case, read
from plimsoll.facts.gpus import GIB
from plimsoll.facts.learned import Learned, export_learned, import_learned, taught
from plimsoll.planning.memory.constants import fitted_constants
from plimsoll.planning.memory.lessons import Start, lessons

SAME = 0.01
"""Percentage points within which an error counts as unchanged: logs round a pool of 100 GiB to as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    teacher: Case
    before: Point
    after: Point

    @property
    def change(self) -> float:
        return abs(self.after.error_pct) - abs(self.before.error_pct)

    @property
    def differs(self) -> str:
        """In what the pupil differs from its teacher."""
        one, other = self.teacher, self.before.case
        found = []
        if one.layout != other.layout:
            found.append("parallelism")
        if one.model.digest != other.model.digest:
            found.append("precision")
        if one.settings.max_model_len != other.settings.max_model_len:
            found.append("context")
        return ", ".join(found) or "nothing stated"


def lesson_of(case: Case, constants_for: ConstantsFor) -> Learned | None:
    """What an operator that has seen only this start would know; None where its log tells too little."""
    if case.gpu is None or case.device_bytes is None or not case.available or case.available <= 0:
        return None
    start = Start(
        model=case.model,
        gpu=case.gpu,
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
        device_bytes=case.device_bytes,
        kv_bytes=round(case.available * GIB),
        weights_bytes=round(case.weights * GIB) if case.weights else None,
    )
    known = taught(Learned(), lessons(start, constants_for(case)))
    return import_learned(export_learned(known))


def pairs(cases: Sequence[Case], constants_for: ConstantsFor) -> Iterator[Pair]:
    groups: defaultdict[tuple[str, str, str], list[Point]] = defaultdict(list)
    for point in from_config(cases, constants_for)[0]:
        case = point.case
        if case.gpu is not None:
            groups[case.family, case.gpu.name, case.engine.version].append(point)
    for _, points in sorted(groups.items()):
        for one, other in permutations(points, 2):
            known = lesson_of(one.case, constants_for)
            if known is None:
                continue
            after, _ = from_config([other.case], constants_for, known)
            yield Pair(teacher=one.case, before=other, after=after[0])


def report(found: Sequence[Pair]) -> dict[str, Any]:
    """The object that --json prints."""
    before = [abs(pair.before.error_pct) for pair in found]
    after = [abs(pair.after.error_pct) for pair in found]
    return {
        "pairs": len(found),
        "before_median_pct": round(middle(before), 3),
        "after_median_pct": round(middle(after), 3),
        "worse": sum(pair.change > SAME for pair in found),
        "better": sum(pair.change < -SAME for pair in found),
        "before_mean_pct": round(sum(before) / max(1, len(found)), 3),
        "after_mean_pct": round(sum(after) / max(1, len(found)), 3),
        "before_p90_pct": round(quantile(before, 0.9), 3),
        "after_p90_pct": round(quantile(after, 0.9), 3),
        "worst_change_pct": round(max((pair.change for pair in found), default=0.0), 3),
        "in_interval_before_pct": _share([pair.before.inside for pair in found]),
        "in_interval_after_pct": _share([pair.after.inside for pair in found]),
    }


def _share(held: Sequence[bool]) -> float:
    return round(100 * sum(held) / max(1, len(held)), 1)


def table(result: dict[str, Any]) -> Iterator[str]:
    yield f"{result['pairs']} pairs of starts of one model, GPU and engine version: error of the tokens predicted"
    yield f"{'':12}{'median':>9}{'mean':>9}{'90%':>9}{'in interval':>13}"
    for when in ("before", "after"):
        median, mean, p90 = (result[f"{when}_{name}_pct"] for name in ("median", "mean", "p90"))
        inside = result[f"in_interval_{when}_pct"]
        yield f"{when:12}{median:>8.3f}%{mean:>8.3f}%{p90:>8.3f}%{inside:>12.1f}%"
    yield (
        f"{result['better']} better, {result['worse']} worse (by more than {SAME} points), "
        f"the worst by {result['worst_change_pct']:.3f} points"
    )


def rows(found: Sequence[Pair]) -> Iterator[str]:
    for pair in found:
        yield (
            f"{pair.teacher.label} -> {pair.before.case.label}: {pair.before.error_pct:+.3f}% -> "
            f"{pair.after.error_pct:+.3f}%  (differs: {pair.differs})"
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=lines_file, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one object instead of a table")
    parser.add_argument("--rows", action="store_true", help="list every pair")
    args = parser.parse_args(argv)
    cases = [one for one in read(args.files) if isinstance(one, Case)]
    found = list(pairs(cases, without_own_model(fitted_constants())))
    if args.rows:
        print("\n".join(rows(found)))
    result = report(found)
    print(json.dumps(result, indent=2) if args.json else "\n".join(table(result)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
