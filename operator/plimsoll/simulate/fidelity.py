"""How far the engine model is from what was measured: it stands beside every claim of a simulation.

The figures are in fidelity.yaml, written by `--write` of `benchmarks/standin_fidelity.py` and `on_gpu.py` and never by hand. Beside them stands what the model
itself answered to a few fixed loads then: a test asks it again, so that figures of another model than the one that runs are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from plimsoll.facts.own_data import own_data
from plimsoll.planning.speed.rates import committed


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Loops(_Kept):
    """Closed loops on GPUs that others measured: errors of means, each with constants that had not seen its model on its hardware."""

    measured: date
    """When they were compared."""
    file: str
    sha256: str
    rows: int
    """Of the file that could be read; some of each model and hardware are played."""
    points: int
    ttft_median_pct: float
    ttft_p90_pct: float
    tpot_median_pct: float
    tpot_p90_pct: float


class OnGpu(_Kept):
    """A real engine on a GPU that no constant was fitted on, and the model's answers to the very same requests."""

    measured: date
    gpu: str
    model: str
    engine: str
    points: int
    """Closed loops with room in the cache."""
    ttft_median_pct: float
    ttft_most_pct: float
    tpot_median_pct: float
    tpot_most_pct: float
    output_most_pct: float
    """Tokens a second, of the crowded runs too."""
    crowded: int
    """Runs whose pool was too small."""
    preemptions_most_pct: float


class Real(_Kept):
    """Cells of a real engine on CPUs, each with constants of other cells: medians of the cells' errors."""

    measured: date
    engine: str
    cells: int
    turns: int
    ttft_p50_err_pct: float
    ttft_p99_err_pct: float
    itl_p50_err_pct: float
    itl_p99_err_pct: float
    kv_err_pp: float
    preemptions_err: float | None = None
    """For 100 finished requests, of the cells in which the engine or its model preempts; None where neither did in any."""
    preempting_cells: int = 0
    noise_pct: tuple[float, float]
    """The least and the most that the real engine is from itself, of one figure from one turn to the others."""
    load_average: tuple[float, float]
    """Of the machine meanwhile."""


class Fidelity(_Kept):
    loops: Loops
    gpu: tuple[OnGpu, ...] = Field(min_length=1)
    """Each model on each GPU once, the latest that was measured."""
    real: Real
    answers: Mapping[str, tuple[float, ...]]
    """Of the model to fixed loads."""


def _preemptions(real: Real) -> str:
    if real.preemptions_err is None:
        return "preemptions were not measured"
    return (
        f"preemptions by {real.preemptions_err:g} for 100 requests (cells with any: {real.preempting_cells})"
    )


def _on_gpu(gpu: OnGpu) -> str:
    return (
        f"from vLLM {gpu.engine} with {gpu.model.rpartition('/')[2]} on {gpu.gpu}, a pair that nothing was fitted on, it is off by "
        f"{gpu.ttft_median_pct:.0f}% (median) and {gpu.ttft_most_pct:.0f}% (most) for TTFT, {gpu.tpot_median_pct:.0f}% and "
        f"{gpu.tpot_most_pct:.0f}% for TPOT, at most {gpu.output_most_pct:.0f}% for output and {gpu.preemptions_most_pct:.0f}% for preemptions "
        f"({gpu.points} closed loops, and {gpu.crowded} runs that a short pool crowds, measured on {gpu.measured})"
    )


@cache
def kept() -> Fidelity:
    return Fidelity.model_validate(own_data("plimsoll.simulate", "fidelity.yaml"))


def short_error() -> str:
    """The same in a few words, for where the long sentence opens under them."""
    loops = kept().loops
    return (
        f"how far the simulator is off: {loops.tpot_median_pct:g}% for TPOT and {loops.ttft_median_pct:g}% for TTFT, medians of measured "
        "loops"
    )


def brief_error() -> str:
    """The same on two lines, with the worst that was measured, where there is nothing to open."""
    loops, gpus = kept().loops, kept().gpu
    return (
        f"the simulator is off by {loops.tpot_median_pct:g}% (median) and {loops.tpot_p90_pct:g}% (p90) for TPOT, {loops.ttft_median_pct:g}% and "
        f"{loops.ttft_p90_pct:g}% for TTFT, and up to {max(one.tpot_most_pct for one in gpus):.0f}% and "
        f"{max(one.ttft_most_pct for one in gpus):.0f}% from vLLM on GPUs; -o json and docs/evaluation.md have it all"
    )


def belief_error() -> str:
    """How far the planner's step times, and the engine model that goes by them, are from measurements that they had not seen."""
    fitted, loops, real = committed().fitted, kept().loops, kept().real
    errors = fitted.left_out
    return (
        f"step times are the planner's, off by {errors['tpot_median_pct']:g}% (median) and {errors['tpot_p90_pct']:g}% (p90) "
        f"for TPOT and {errors['ttft_median_pct']:g}% and {errors['ttft_p90_pct']:g}% for TTFT on measured points left out "
        f"of the fit ({fitted.rows} points); the engine model then answers closed loops of such points within "
        f"{loops.tpot_median_pct:g}% (median) and {loops.tpot_p90_pct:g}% (p90) for TPOT and {loops.ttft_median_pct:g}% and "
        f"{loops.ttft_p90_pct:g}% for TTFT ({loops.points} points, compared on {loops.measured}; how a loop begins was chosen on such "
        f"points); {'; '.join(map(_on_gpu, kept().gpu))}; from a real engine on CPUs its p50 and p99 are "
        f"{real.ttft_p50_err_pct:.0f}% and {real.ttft_p99_err_pct:.0f}% off for TTFT, {real.itl_p50_err_pct:.0f}% and "
        f"{real.itl_p99_err_pct:.0f}% for ITL, and the cache in use by {real.kv_err_pp:g} points, {_preemptions(real)} ({real.cells} cells of vLLM "
        f"{real.engine}, measured on {real.measured} on a machine at a load average of {real.load_average[0]:g} to "
        f"{real.load_average[1]:g}, where that engine is {real.noise_pct[0]:.0f} to {real.noise_pct[1]:.0f}% from itself); "
        "the simulated world draws its own times within 20% of them"
    )
