"""Fits the constants of the memory formulas to observed starts: medians, one constant after another, a few rounds.

Every model family has one voice for each constant, however many rows it has, so that no one model's habits become the
rule. A constant without rows keeps what it had. The spread of what stays unexplained is measured on families that the
fit did not see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median

from kv_scores import ledger_of
from observations import Case
from plimsoll.facts.gpus import GIB, Vendor
from plimsoll.planning.memory import overheads, profile_run
from plimsoll.planning.memory.constants import MemoryConstants
from plimsoll.planning.memory.rank_weights import rank_weight_bytes
from plimsoll.planning.memory.situation import Situation

LEAST_SLOPE = 0.03
GUESS = 0.2
"""How far a constant that no start has shown may be off, as a share of it."""
ROUNDING = 1.02
"""Logs round GiB to two digits, and blocks round what they are worth; the interval must hold that too."""


def _single(case: Case) -> bool:
    return case.layout.gpus == 1


def _nvidia(case: Case) -> bool:
    return case.gpu is not None and case.gpu.vendor is Vendor.NVIDIA


def _any_case(_: Case) -> bool:
    return True


SPREADS = {
    "unexplainedPlain": 0.4,
    "unexplainedDense": 1.0,
    "unexplainedMoe": 1.2,
    "unexplainedMoeMulti": 1.0,
    "unexplainedRocm": 1.5,
    "unexplainedRocmMoe": 2.5,
    "unexplainedSmall": 0.8,
    "unexplainedSmallPlain": 0.6,
    "unexplainedFirst": 1.0,
}
"""GiB below which a spread is not believed, however well the few models seen so far are met."""
# Each constant is fitted where all others that matter are known already, in this order; so one pass is enough.
FITTED: Mapping[str, Callable[[Case], bool]] = {
    "contextSingle": lambda case: _single(case) and _nvidia(case),
    "samplerCopiesSort": lambda case: _single(case) and _nvidia(case) and not case.engine.whole_prompts,
    "samplerCopiesTriton": lambda case: _single(case) and _nvidia(case) and not case.engine.graphs_in_budget,
    "graphsPerLayer": lambda case: _single(case) and _nvidia(case),
    "graphsPerLayerSecond": lambda case: _single(case) and _nvidia(case),
    "samplerCopiesLean": lambda case: _single(case) and _nvidia(case),
    "samplerCopiesFull": lambda case: _single(case) and _nvidia(case),
    "contextMulti": lambda case: case.layout.tensor > 1,
    "contextMultiFused": lambda case: case.layout.tensor > 1,
    "contextMultiPcie": lambda case: case.layout.tensor > 1,
    "contextPipeline": lambda case: case.layout.pipeline > 1,
    "contextSingleRocm": _any_case,
    "contextMultiRocm": _any_case,
    "contextFirst": _any_case,
    "contextFirstMulti": _any_case,
}
PRIORS = {
    "contextSingle": 0.13,
    "contextSingleRocm": 1.2,
    "contextPipeline": 1.0,
    "contextMulti": 0.6,
    "contextMultiFused": 2.0,
    "contextMultiPcie": 0.5,
    "contextMultiRocm": 1.6,
    "contextFirst": 1.2,
    "contextFirstMulti": 2.0,
    "samplerCopiesSort": 9.5,
    "samplerCopiesTriton": 4.0,
    "samplerCopiesLean": 1.2,
    "samplerCopiesFull": 2.5,
    "graphsPerLayer": 0.0115,
    "graphsPerLayerSecond": 0.02,
}
"""What counting buffers in the engine's code and its own notes suggest; each has one voice beside the models'."""
BOUNDS = {"samplerCopies": (1.0, 12.0), "context": (0.0, 4.0), "graphs": (0.0, 0.08)}


@dataclass(frozen=True, slots=True)
class Seen:
    """A case and what its log says the terms beside weights and cache took, in bytes."""

    case: Case
    overhead: float


def situation(case: Case, constants: MemoryConstants) -> Situation:
    if case.gpu is None or case.device_bytes is None:
        raise ValueError(f"row {case.line} names no GPU, so nothing can be fitted to it")
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
        if case.device_bytes is None or case.available is None or case.weights is None:
            continue
        if case.failure is not None and not case.engine.whole_prompts:
            continue
        if case.engine.whole_prompts and case.model.architecture.vision:
            continue  # the first engine encoded an image for every sequence it might run
        budget = case.settings.utilization * case.device_bytes
        found.append(Seen(case, budget - (case.weights + case.available) * GIB))
    return found


def fit(cases: Sequence[Case], start: MemoryConstants) -> MemoryConstants:
    seen = usable(cases)
    constants = _fit_logged(cases, start)
    for name, speaks in FITTED.items():
        constants = _fit_one(name, [one for one in seen if speaks(one.case)], constants)
    return constants


def predicted_overhead(case: Case, constants: MemoryConstants) -> float:
    now = situation(case, constants)
    terms = [
        profile_run.activation(now),
        profile_run.encoder(now),
        overheads.context(now),
        overheads.lora(now),
    ]
    if overheads.graphs_counted(now):
        terms.append(overheads.graphs(now))
    return sum(term.bytes for term in terms)


def _fit_one(name: str, seen: Sequence[Seen], constants: MemoryConstants) -> MemoryConstants:
    """The median over families of what the constant would have to be for each row; the formulas are linear around it."""
    prior = PRIORS[name]
    base = _with(constants, name, value=prior)
    step = 0.1 * prior
    above = _with(constants, name, value=prior + step)
    low, high = next(bounds for prefix, bounds in BOUNDS.items() if name.startswith(prefix))
    plain: dict[str, list[float]] = {}
    others: dict[str, list[float]] = {}
    for one in seen:
        at_prior = predicted_overhead(one.case, base)
        slope = (predicted_overhead(one.case, above) - at_prior) / step
        printed = one.case.row.get("non_torch_gib")
        if name == "contextSingle" and printed is None:
            continue  # where the log prints it, it need not be what is left of everything else
        # A row speaks only where the constant moves it; the sampler moves nothing where another pass is the peak.
        if slope > LEAST_SLOPE * GIB:
            heard = plain if _is_plain(one.case) else others
            voice = (
                float(printed)
                if name == "contextSingle" and printed
                else prior + (one.overhead - at_prior) / slope
            )
            heard.setdefault(one.case.family, []).append(voice)
    # Experts, states and encoders bring unknowns of their own; such models speak only where no plain one does.
    families = plain or others
    if not families:
        return _with(
            constants, name, value=prior, spread=GUESS * prior, rows=0, fitted_on="the engine's code"
        )
    voices = [median(values) for _, values in sorted(families.items())]
    value = min(high, max(low, median([*voices, prior])))
    rows = sum(map(len, families.values()))
    note = f"{rows} starts of {len(voices)} {'plain' if plain else 'mixed'} models, and the engine's code"
    spread = _quantile([abs(voice - value) for voice in voices], 0.9)
    return _with(constants, name, value=round(value, 4), spread=round(spread, 4), rows=rows, fitted_on=note)


def _is_plain(case: Case) -> bool:
    arch = case.model.architecture
    return not (arch.is_moe or arch.is_hybrid or arch.is_latent or arch.vision)


def _fit_logged(cases: Sequence[Case], constants: MemoryConstants) -> MemoryConstants:
    plain: dict[str, list[float]] = {}
    experts: dict[str, list[float]] = {}
    graphs: dict[str, list[float]] = {}
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
        printed = case.row.get("cuda_graph_gib")
        if now.rocm and printed and printed > 0:
            graphs.setdefault(case.family, []).append(printed / len(case.model.architecture.layers))
    for name, families in (
        ("weightsLoaded", plain),
        ("weightsRocmExperts", experts),
        ("graphsPerLayerRocm", graphs),
    ):
        if families:
            voices = [median(values) for _, values in sorted(families.items())]
            # 126.7 GiB of a 400B model's rank on ROCm against 93.8 elsewhere was published, and has a voice.
            published = [1.366] if name == "weightsRocmExperts" else []
            value = median([*voices, *published])
            spread = _quantile([abs(voice - value) for voice in voices], 0.9)
            rows = sum(map(len, families.values()))
            note = f"{rows} starts of {len(voices)} models"
            constants = _with(
                constants, name, value=round(value, 4), spread=round(spread, 4), rows=rows, fitted_on=note
            )
    return constants


def left_out(cases: Sequence[Case], start: MemoryConstants) -> dict[str, MemoryConstants]:
    """Constants for each family, fitted without any of its rows."""
    families = sorted({case.family for case in cases})
    return {family: fit([case for case in cases if case.family != family], start) for family in families}


def fit_spreads(
    cases: Sequence[Case], constants: MemoryConstants, without: dict[str, MemoryConstants]
) -> MemoryConstants:
    """Half-widths that hold nine of ten starts of families the fit did not see, a class at a time."""
    errors: dict[str, list[float]] = {name: [] for name in SPREADS}
    for case in cases:
        if case.available is None or case.device_bytes is None or (case.failure and case.available <= 0):
            continue
        if case.engine.whole_prompts and case.model.architecture.vision:
            continue
        pool = ledger_of(case, without.get(case.family, constants)).left.mid
        name = profile_run.unexplained_name(situation(case, constants))
        errors[name].append(abs(pool - case.available * GIB) / GIB)
    for name, found in errors.items():
        if found:
            note = f"{len(found)} starts, each predicted without its model; at least {SPREADS[name]:g}"
            constants = _with(
                constants,
                name,
                value=0.0,
                spread=round(max(SPREADS[name], ROUNDING * _quantile(found, 0.9)), 3),
                rows=len(found),
                fitted_on=note,
            )
    return constants


def _with(constants: MemoryConstants, name: str, **changes: object) -> MemoryConstants:
    return MemoryConstants(named={**constants.named, name: replace(constants[name], **changes)})  # type: ignore[arg-type]


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share, and one more for the sample's size, do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, ceil(share * (len(ordered) + 1)) - 1)]


def as_yaml(constants: MemoryConstants) -> str:
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
