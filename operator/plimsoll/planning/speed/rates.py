"""What each amount of work costs: fitted constants, one value for all and multipliers for classes of hardware and format.

The constants are in data/performance.yaml, written by `benchmarks/latency_accuracy.py --fit` and never by hand. A class is a
GPU architecture, a weight format, a cache format or a band of engine versions, never a model or a product; a class that
nothing was fitted on has no multiplier and gets the value for all, with a wider interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from pydantic import BaseModel, ConfigDict

from plimsoll.facts.architecture import Part
from plimsoll.facts.engine_versions import release
from plimsoll.facts.engines import EngineFacts
from plimsoll.facts.own_data import own_data
from plimsoll.planning.speed.formats import compute_format, is_native, stored_format
from plimsoll.planning.speed.roofline import Amounts, TimeCost, Work


class Dimension(StrEnum):
    """What constants may depend on."""

    GPU = "gpu"
    DENSE = "dense"
    EXPERTS = "experts"
    CACHE = "cache"
    VERSION = "version"


DEPENDS: Mapping[TimeCost, tuple[Dimension, ...]] = {
    TimeCost.DENSE_WEIGHTS: (Dimension.GPU, Dimension.DENSE),
    TimeCost.EXPERT_WEIGHTS: (Dimension.GPU, Dimension.EXPERTS),
    TimeCost.EXPERT_TILES: (),
    TimeCost.CACHE_READ: (Dimension.CACHE,),
    TimeCost.DECODE_MATH: (),
    TimeCost.UNPACKING: (),
    TimeCost.LAUNCH: (Dimension.GPU,),
    TimeCost.EXPERT_LAYER: (),
    TimeCost.QUANTIZED_INPUT: (Dimension.VERSION,),
    TimeCost.ALL_REDUCE: (),
    TimeCost.ALL_REDUCE_BYTES: (Dimension.GPU,),
    TimeCost.SEQUENCE: (),
    TimeCost.SEQUENCE_LAYER: (),
    TimeCost.PROMPT_DENSE: (Dimension.DENSE,),
    TimeCost.PROMPT_EXPERTS: (Dimension.EXPERTS,),
    TimeCost.PROMPT_ATTENTION: (),
    TimeCost.PROMPT_LINK: (),
    TimeCost.PROMPT_LAUNCH: (Dimension.GPU,),
    TimeCost.REQUEST: (),
    TimeCost.REQUEST_TOKEN: (),
    TimeCost.REQUEST_BESIDE: (),
}

SCALED_KERNELS_FUSED = release("0.18.0")
"""Before it, block-scaled layers took about twice the fixed time (fitted: MiniMax-M2.5 on 0.16 and 0.17 against 0.18, 0.19)."""

Classes = Mapping[Dimension, str]
Key = tuple[TimeCost, Dimension | None, str]


def classes_of(work: Work, engine: EngineFacts) -> Classes:
    found = {
        Dimension.GPU: work.gpu.architecture,
        Dimension.DENSE: format_class(work, Part.FFN if _has_dense(work) else Part.ATTENTION),
        Dimension.CACHE: "narrow" if work.kv_dtype.bits <= 8 else "wide",
    }
    if work.architecture.is_moe:
        found[Dimension.EXPERTS] = format_class(work, Part.EXPERTS)
    if engine.release is not None and engine.release < SCALED_KERNELS_FUSED:
        found[Dimension.VERSION] = f"before {SCALED_KERNELS_FUSED}"
    return found


def _has_dense(work: Work) -> bool:
    return not work.architecture.is_moe


def format_class(work: Work, part: Part) -> str:
    """Bits of the multiplication, or `unpacked` where weights are widened before it."""
    if not is_native(stored_format(work.architecture, part), work.gpu):
        return "unpacked"
    return f"{round(compute_format(work.architecture, part, work.gpu).bits)}-bit"


class Factor(BaseModel):
    """A class's deviation from the value for all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    factor: float
    sd_pct: float
    rows: int
    """Measured points of this class."""


class Constant(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    """Seconds for one of the amount: an inverse efficiency where the amount is in seconds at a peak."""
    sd_pct: float
    """What the points and the prior leave open."""
    by: Mapping[Dimension, Mapping[str, Factor]] = {}


class Spread(BaseModel):
    """Half-widths, as factors, that held 90% of the measured points when their model and hardware were left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tpot: float
    ttft: float
    unfitted_class: float
    """A further factor for each class that nothing was fitted on."""


class Fitted(BaseModel):
    """Where the constants come from, and how far they were from points in and outside of what they were fitted on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...]
    rows: int
    pairs: tuple[str, ...]
    """Models on hardware whose points had a part; for a score of the constants these do not count as unseen."""
    in_sample: Mapping[str, float]
    left_out: Mapping[str, float]


class Constants(BaseModel):
    """The whole of data/performance.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fitted: Fitted
    spread: Spread
    constants: Mapping[TimeCost, Constant]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Constants resolved for one set of classes."""

    seconds_each: Mapping[TimeCost, float]
    tpot_spread: float
    ttft_spread: float
    """Factors around the prediction that hold 90%, already widened for what was not fitted."""
    unfitted: tuple[str, ...]

    def of(self, amounts: Amounts) -> float:
        each, seconds = self.seconds_each, 0.0
        for cost, amount in amounts.items():  # a plain loop: a plan asks tens of thousands of times
            seconds += amount * each[cost]
        return seconds


def keys_of(cost: TimeCost, classes: Classes) -> tuple[Key, ...]:
    """The constants whose product a cost's rate is: the value for all first."""
    depends = ((dimension, classes.get(dimension)) for dimension in DEPENDS[cost])
    return ((cost, None, ""), *((cost, dimension, name) for dimension, name in depends if name is not None))


def rates_for(constants: Constants, classes: Classes) -> Rates:
    unknown = unfitted(constants, classes)
    wider = constants.spread.unfitted_class ** len(unknown)
    return Rates(
        seconds_each={cost: _rate(constants, cost, classes) for cost in TimeCost},
        tpot_spread=constants.spread.tpot * wider,
        ttft_spread=constants.spread.ttft * wider,
        unfitted=unknown,
    )


def _rate(constants: Constants, cost: TimeCost, classes: Classes) -> float:
    constant = constants.constants[cost]
    rate = constant.value
    for _, dimension, name in keys_of(cost, classes):
        if dimension is not None:
            found = constant.by.get(dimension, {}).get(name)
            rate *= found.factor if found else 1.0
    return rate


def unfitted(constants: Constants, classes: Classes) -> tuple[str, ...]:
    """Classes that no measured point had, so that the value for all stands in."""
    known: dict[Dimension, set[str]] = {}
    for constant in constants.constants.values():
        for dimension, names in constant.by.items():
            known.setdefault(dimension, set()).update(names)
    return tuple(
        f"{dimension} {name}"
        for dimension, name in sorted(classes.items())
        if dimension is not Dimension.VERSION and name not in known.get(dimension, set())
    )


@cache
def committed() -> Constants:
    """The constants the product ships with."""
    return Constants.model_validate(own_data("plimsoll.planning.speed", "performance.yaml"))


@cache
def _committed_rates(classes: tuple[tuple[Dimension, str], ...]) -> Rates:
    return rates_for(committed(), dict(classes))


def committed_rates(classes: Classes) -> Rates:
    return _committed_rates(tuple(sorted(classes.items())))
