"""What the fidelity benchmark says: each cell of the real engine, what it differs by from turn to turn, and who is how far off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final

from fidelity_replay import Figures, Seen

TIMES: Final = ("ttft_p50", "ttft_p99", "itl_p50", "itl_p99")


@dataclass(slots=True)
class Measured:
    """Of one cell, turn by turn."""

    turns: list[Seen] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    """Of the machine."""

    def data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Measured:
        turns = [Seen(**{**one, "looks": [tuple(look) for look in one["looks"]]}) for one in data["turns"]]
        return cls(turns=turns, loads=list(data["loads"]))

    def all(self) -> Figures:
        whole = Seen()
        for one in self.turns:
            whole.ttfts += one.ttfts
            whole.gaps += one.gaps
            whole.looks += one.looks
            whole.preemptions += one.preemptions
            whole.finished += one.finished
        return whole.figures()

    def noise(self, name: str) -> float | None:
        """Median distance of a turn from the others' median, in percent."""
        values: list[float] = [
            value for one in self.turns if (value := getattr(one.figures(), name)) is not None
        ]
        if len(values) < 2:
            return None
        return median(
            100 * abs(value / median(values[:at] + values[at + 1 :]) - 1) for at, value in enumerate(values)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One cell of the real engine and what stands beside it."""

    real: Measured
    left_out: Figures
    """Of the model, with constants of other cells; the others with its own, and over HTTP with the first."""
    fitted: Figures
    stand_in: Figures


def row(cell: Compared) -> dict[str, Any]:
    """The keys at the top are those of the model with constants of other cells."""
    real = cell.real.all()
    named = (("left_out", cell.left_out), ("in_sample", cell.fitted), ("stand_in", cell.stand_in))
    errors = {
        name: {f"{one}_err_pct": error(getattr(figures, one), getattr(real, one)) for one in TIMES}
        | {
            "running_err": round(figures.running - real.running, 1),
            "waiting_err": round(figures.waiting - real.waiting, 1),
            "kv_err_pp": round(100 * (figures.kv - real.kv), 1),
            "preemptions_per_100": _hundredth(figures),
            "preemptions_err": _preemptions_off(figures, real),
        }
        for name, figures in named
    }
    return {
        **errors["left_out"],
        "preemptions_real": round(real.preemptions / len(cell.real.turns), 1),
        "preemptions_model": cell.left_out.preemptions,
        "real": {name: _rounded(value) for name, value in asdict(real).items()}
        | {"preemptions_per_100": _hundredth(real)},
        "noise_pct": {name: _rounded(cell.real.noise(name)) for name in TIMES},
        "load_average": [round(one, 1) for one in cell.real.loads],
        "in_sample": errors["in_sample"],
        "stand_in": errors["stand_in"],
    }


def error(model: float | None, real: float | None) -> float | None:
    return None if model is None or not real else round(100 * (model / real - 1), 1)


def _hundredth(figures: Figures) -> float | None:
    return round(100 * figures.preemptions / figures.finished, 1) if figures.finished else None


def _preemptions_off(model: Figures, real: Figures) -> float | None:
    """For 100 finished; None where neither preempts, which would make a median of all cells look good."""
    ours, theirs = _hundredth(model), _hundredth(real)
    if ours is None or theirs is None or not (model.preemptions or real.preemptions):
        return None
    return round(ours - theirs, 1)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def summary(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, float | None]:
    """Medians over the cells of what is off, whatever the direction."""
    found: dict[str, float | None] = {}
    for figure in (*(f"{one}_err_pct" for one in TIMES), "kv_err_pp", "preemptions_err"):
        values = [
            abs(value)
            for one in rows
            if (value := (one if name == "left_out" else one[name])[figure]) is not None
        ]
        found[figure] = round(median(values), 1) if values else None
    return found


def print_tables(result: Mapping[str, Any]) -> None:
    print(
        "\nreal vLLM on the CPU; off in % for times, in percentage points for the cache; preemptions for 100 finished"
    )
    print(
        f"{'cell':13} {'':9} {'TTFT p50':>9} {'p99':>9} {'ITL p50':>8} {'p99':>8} {'running':>8} {'waiting':>8} {'KV':>6} "
        f"{'preempted':>9}"
    )
    for one in result["cells"]:
        real, noise = one["real"], one["noise_pct"]
        name = f"{one['load']} {one['mix']}"
        print(
            f"{name:13} {'measured':9} {_cell(real['ttft_p50']):>9} {_cell(real['ttft_p99']):>9} {_cell(real['itl_p50']):>8} "
            f"{_cell(real['itl_p99']):>8} {real['running']:8.1f} {real['waiting']:8.1f} {100 * real['kv']:5.0f}% "
            f"{_cell(real['preemptions_per_100']):>9}   load average {one['load_average']}"
        )
        print(
            f"{'':13} {'noise':9} "
            + " ".join(
                f"{_cell(noise[key]):>{width}}" for key, width in zip(TIMES, (9, 9, 8, 8), strict=True)
            )
        )
        for label, errors in (("left out", one), ("fitted", one["in_sample"]), ("stand-in", one["stand_in"])):
            times = " ".join(
                f"{_signed(errors[f'{key}_err_pct']):>{width}}"
                for key, width in zip(TIMES, (9, 9, 8, 8), strict=True)
            )
            print(
                f"{'':13} {label:9} {times} {errors['running_err']:+8.1f} {errors['waiting_err']:+8.1f} "
                f"{errors['kv_err_pp']:+6.1f} {_cell(errors['preemptions_per_100']):>9}"
            )
    for one in result["constants"]:
        print("constants", json.dumps(one))
    for name, found in result["summary"].items():
        print(f"median off, {name}: {json.dumps(found)}")


def _cell(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.0f}%"
