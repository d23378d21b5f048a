"""What each amount of work costs: fitted constants, each one value for all and multipliers for classes of hardware and format.

The constants are in performance.yaml, which `benchmarks/latency_accuracy.py --fit` writes and nobody edits by hand. A class is a GPU
architecture, a weight format, a cache format or a band of engine versions, and never a model or a product. A class that nothing was
fitted on has no multiplier: it gets the value for all, and a wider interval.
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
    """What the value of a constant may depend on."""

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
"""Before this release, block-scaled layers took about twice the fixed time (fitted: MiniMax-M2.5 on 0.16 and 0.17 against 0.18 and 0.19)."""

Classes = Mapping[Dimension, str]
"""By dimension: the class of a replica."""
Key = tuple[TimeCost, Dimension | None, str]
"""Names one value: of a constant for all (None and an empty text), or its multiplier for a class of a dimension."""


def classes_of(work: Work, engine: EngineFacts) -> Classes:
    """The classes that a model on a layout, a device and an engine version is of."""
    found = {
        Dimension.GPU: work.gpu.architecture,
        Dimension.DENSE: format_class(work, Part.ATTENTION if work.architecture.is_moe else Part.FFN),
        Dimension.CACHE: "narrow" if work.kv_dtype.bits <= 8 else "wide",
    }
    if work.architecture.is_moe:
        found[Dimension.EXPERTS] = format_class(work, Part.EXPERTS)
    if engine.release is not None and engine.release < SCALED_KERNELS_FUSED:
        found[Dimension.VERSION] = f"before {SCALED_KERNELS_FUSED}"
    return found


def format_class(work: Work, part: Part) -> str:
    """The class of a part's format: the bits in which it is multiplied, or `unpacked` where weights are widened before."""
    if not is_native(stored_format(work.architecture, part), work.gpu):
        return "unpacked"
    return f"{round(compute_format(work.architecture, part, work.gpu).bits)}-bit"


class Factor(BaseModel):
    """The multiplier of a constant for one class."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    factor: float
    sd_pct: float
    rows: int
    """Measured points of this class."""


class Constant(BaseModel):
    """What one kind of work costs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    """Seconds for one unit of the amount; where the amount is in seconds at a peak rate, how many times longer it really takes."""
    sd_pct: float
    """Standard deviation in percent that the measured points and the prior leave."""
    by: Mapping[Dimension, Mapping[str, Factor]] = {}


class Spread(BaseModel):
    """Factors around the prediction within which 90% of the measured points lay, when their model and hardware were left out of the fit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tpot: float
    ttft: float
    unfitted_class: float
    """A further factor for each class that nothing was fitted on."""


class Fitted(BaseModel):
    """What the constants were fitted on, and how far predictions were from points that took part in the fit and from others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...]
    rows: int
    pairs: tuple[str, ...]
    """Models on hardware whose points took part in the fit; in a score of the constants these do not count as unseen."""
    in_sample: Mapping[str, float]
    left_out: Mapping[str, float]


class Constants(BaseModel):
    """The whole of performance.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fitted: Fitted
    spread: Spread
    constants: Mapping[TimeCost, Constant]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The constants for one combination of classes."""

    seconds_each: Mapping[TimeCost, float]
    tpot_spread: float
    ttft_spread: float
    """As `tpot_spread`, a factor around the prediction within which 90% lie, widened for each class that was not fitted."""
    unfitted: tuple[str, ...]
    """Classes that nothing was fitted on."""

    def of(self, amounts: Amounts) -> float:
        """Seconds that these amounts of work take."""
        each, seconds = self.seconds_each, 0.0
        for (
            cost,
            amount,
        ) in amounts.items():  # a plain loop is fastest, and a plan comes here tens of thousands of times
            seconds += amount * each[cost]
        return seconds


def keys_of(cost: TimeCost, classes: Classes) -> tuple[Key, ...]:
    """The values whose product is the rate of a kind of work, the one for all first."""
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
    """Classes that no measured point was of, so that the values for all are used for them."""
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
    """The constants that this release ships with."""
    return Constants.model_validate(own_data("plimsoll.planning.speed", "performance.yaml"))


@cache
def _committed_rates(classes: tuple[tuple[Dimension, str], ...]) -> Rates:
    return rates_for(committed(), dict(classes))


def committed_rates(classes: Classes) -> Rates:
    return _committed_rates(tuple(sorted(classes.items())))
