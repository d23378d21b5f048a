"""Fits the constants of the memory formulas to observed starts: medians, one constant after another, a few rounds.

Every model family has one voice for each constant, however many rows it has, so that no one model's habits become the
rule. A constant without rows keeps what it had. The spread of what stays unexplained is measured on families that the
fit did not see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median

from observations import GIB, Case
from plimsoll.planning import overheads
from plimsoll.planning.constants import Constant, Constants
from plimsoll.planning.ledger import build_ledger
from plimsoll.planning.overheads import Situation
from plimsoll.planning.rank_weights import rank_weight_bytes

ROUNDS = 3
SPREADS = ("unexplainedDense", "unexplainedMoe", "unexplainedRocm", "unexplainedSmall")
FITTED = (
    "contextSingle",
    "samplerCopiesSort",
    "samplerCopiesTriton",
    "samplerCopiesLean",
    "samplerCopiesFull",
    "graphsPerLayer",
    "contextMulti",
    "contextMultiFused",
    "contextMultiPcie",
    "contextSingleRocm",
    "contextMultiRocm",
)
BOUNDS = {"samplerCopies": (1.0, 12.0), "context": (0.0, 4.0), "graphs": (0.0, 0.08)}


@dataclass(frozen=True, slots=True)
class Seen:
    """A case and what its log says the terms beside weights and cache took, in bytes."""

    case: Case
    overhead: float


def situation(case: Case, constants: Constants) -> Situation:
    assert case.gpu is not None and case.device_bytes is not None
    return Situation(
        model=case.model,
        gpu=case.gpu,
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
        constants=constants,
        device_bytes=case.device_bytes,
    )


def usable(cases: Iterable[Case]) -> list[Seen]:
    """Cases whose log gives weights and what was left, so that the rest is known."""
    found = []
    for case in cases:
        if (
            case.device_bytes is None
            or case.available is None
            or case.weights is None
            or case.layout.pipeline > 1
        ):
            continue
        if case.row.get("engine") == "V0" or case.failure is not None:
            continue
        budget = case.settings.utilization * case.device_bytes
        found.append(Seen(case, budget - (case.weights + case.available) * GIB))
    return found


def fit(cases: Sequence[Case], start: Constants) -> Constants:
    seen = usable(cases)
    constants = _fit_weights(cases, start)
    for _ in range(ROUNDS):
        for name in FITTED:
            constants = _fit_one(name, seen, constants)
    return constants


def predicted_overhead(case: Case, constants: Constants) -> float:
    now = situation(case, constants)
    terms = [overheads.activation(now), overheads.context(now), overheads.lora(now)]
    if case.engine.graphs_in_budget:
        terms.append(overheads.graphs(now))
    return sum(term.bytes for term in terms)


def _fit_one(name: str, seen: Sequence[Seen], constants: Constants) -> Constants:
    """The median over families of what the constant would have to be for each row; the formulas are linear in it."""
    base = _with(constants, name, value=0.0)
    unit = _with(constants, name, value=constants.value(name) or 1.0)
    low, high = next(bounds for prefix, bounds in BOUNDS.items() if name.startswith(prefix))
    by_family: dict[str, list[float]] = {}
    for one in seen:
        at_zero = predicted_overhead(one.case, base)
        slope = (predicted_overhead(one.case, unit) - at_zero) / unit.value(name)
        # A row speaks only where the constant moves it; the sampler moves nothing where another pass is the peak.
        if slope > 0.01 * GIB:
            by_family.setdefault(one.case.family, []).append((one.overhead - at_zero) / slope)
    if not by_family:
        return constants
    voices = [median(values) for _, values in sorted(by_family.items())]
    value = min(high, max(low, median(voices)))
    spread = _quantile([abs(voice - value) for voice in voices], 0.9)
    rows = sum(len(values) for values in by_family.values())
    note = f"{rows} starts of {len(voices)} models"
    return _with(constants, name, value=round(value, 4), spread=round(spread, 4), rows=rows, fitted_on=note)


def _fit_weights(cases: Sequence[Case], constants: Constants) -> Constants:
    plain: dict[str, list[float]] = {}
    experts: dict[str, list[float]] = {}
    for case in cases:
        if case.weights is None or case.gpu is None or case.layout.pipeline > 1:
            continue
        ranks = rank_weight_bytes(case.model, case.layout)
        now = situation(case, constants)
        factor = overheads.expert_factor(now)
        logged = case.weights * GIB
        if now.rocm and factor is constants["weightsRocmExperts"]:
            others = ranks.largest - ranks.experts[0]
            experts.setdefault(case.family, []).append((logged - others) / ranks.experts[0])
        elif not now.rocm:
            size = ranks.largest + ranks.experts[0] * (factor.value - 1)
            plain.setdefault(case.family, []).append(logged / size)
    for name, families in (("weightsLoaded", plain), ("weightsRocmExperts", experts)):
        if families:
            voices = [median(values) for _, values in sorted(families.items())]
            value = median(voices)
            spread = _quantile([abs(voice - value) for voice in voices], 0.9)
            rows = sum(map(len, families.values()))
            note = f"{rows} starts of {len(voices)} models"
            constants = _with(
                constants, name, value=round(value, 4), spread=round(spread, 4), rows=rows, fitted_on=note
            )
    return constants


def left_out(cases: Sequence[Case], start: Constants) -> dict[str, Constants]:
    """Constants for each family, fitted without any of its rows."""
    families = sorted({case.family for case in cases})
    return {family: fit([case for case in cases if case.family != family], start) for family in families}


def fit_spreads(cases: Sequence[Case], constants: Constants, without: dict[str, Constants]) -> Constants:
    """Half-widths that hold nine of ten starts of families the fit did not see, a class at a time."""
    errors: dict[str, list[float]] = {name: [] for name in SPREADS}
    for case in cases:
        if (
            case.available is None
            or case.device_bytes is None
            or case.failure
            or case.row.get("engine") == "V0"
        ):
            continue
        pool = left_bytes(case, without.get(case.family, constants))
        name = overheads.unexplained_name(situation(case, constants))
        errors[name].append(abs(pool - case.available * GIB) / GIB)
    for name, found in errors.items():
        if found:
            note = f"{len(found)} starts, each predicted without its model"
            constants = _with(
                constants,
                name,
                value=0.0,
                spread=round(_quantile(found, 0.9), 3),
                rows=len(found),
                fitted_on=note,
            )
    return constants


def left_bytes(case: Case, constants: Constants) -> float:
    """What the ledger says is left for the cache, even where that is less than nothing."""
    assert case.gpu is not None
    ledger = build_ledger(
        model=case.model,
        gpu=case.gpu,
        layout=case.layout,
        engine=case.engine,
        settings=case.settings,
        device_bytes=case.device_bytes,
        constants=constants,
    )
    return ledger.left.mid


def _with(constants: Constants, name: str, **changes: object) -> Constants:
    return Constants(named={**constants.named, name: replace(constants[name], **changes)})  # type: ignore[arg-type]


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share, and one more for the sample's size, do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, ceil(share * (len(ordered) + 1)) - 1)]


def as_yaml(constants: Constants) -> str:
    lines = [
        "# Written by `benchmarks/kv_accuracy.py --fit`; change the fit, not this file.",
        "# samplerCopies: float32 copies of the logits; weights: factors; all others GiB. spread: 90% of the",
        "# measurements lay within it. rows 0: read from the engine's code or taken from a neighbour, not measured.",
        "constants:",
    ]
    for name, constant in sorted(constants.named.items()):
        lines.append(f"  {name}:")
        lines.append(
            f"    {{value: {constant.value:g}, spread: {constant.spread:g}, rows: {constant.rows}, fittedOn: {constant.fitted_on!r}}}"
        )
    return "\n".join(lines) + "\n"


Scored = Callable[[Case], Constants]
__all__ = ["Constant", "Scored", "as_yaml", "fit", "fit_spreads", "left_bytes", "left_out", "situation"]
