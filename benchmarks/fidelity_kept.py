"""What of the fidelity benchmark is kept for `plimsoll simulate`, and by which a model that is another one since then is known.

The model is asked a few fixed loads: closed loops of models and GPUs by the planner's constants, and users before a pool that is too
small, on a machine that has other things to do. Deterministic, so that other answers are another model's; no measured point is in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, Final

import yaml

from fidelity_fit import Constants
from fidelity_pairs import played
from fidelity_replay import replay
from fidelity_report import TIMES
from latency_rows import row_of
from plimsoll.load.lengths import Uniform
from plimsoll.load.workload import ClosedLoop, Workload, asks
from plimsoll.planning.speed.rates import committed
from plimsoll.simulate.fidelity import Fidelity
from plimsoll.simulate.steps import Limits

FILE: Final = Path(__file__).parent.parent / "operator" / "plimsoll" / "simulate" / "fidelity.yaml"
HEAD: Final = "# Written by benchmarks/standin_fidelity.py and on_gpu.py with --write; simulate/fidelity.py says what the numbers mean.\n"
DIGITS: Final = 4
LOOPS: Final = (
    ("meta-llama/Llama-3.1-8B", "h100_sxm", 1, 1024, 128, 16),
    ("meta-llama/Llama-3.1-70B", "h200_sxm", 4, 3000, 256, 64),
    ("openai/gpt-oss-120b", "b200_sxm", 2, 512, 512, 128),
)
"""Model, hardware, GPUs, tokens of prompts and of answers, users."""
CROWDED: Final = Limits(
    blocks=160, block_size=32, max_num_seqs=48, max_num_batched_tokens=2048, max_model_len=2048
)
USERS: Final = 40
POOL: Final = "crowded"
"""As the cells of a real engine on CPUs; the other loads are loops on GPUs, as the points of others are."""


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        """One day that stands twice is written twice."""
        return True


def answers() -> dict[str, tuple[float, ...]]:
    """What the engine model says now: mean TTFT and TPOT of the loops in milliseconds, and all that is seen of the crowded pool."""
    return {**dict(map(_loop, LOOPS)), POOL: _crowded()}


def _loop(load: tuple[str, str, int, int, int, int]) -> tuple[str, tuple[float, ...]]:
    model, system, tensor, given, asked, users = load
    raw = {
        "model": model,
        "system": system,
        "tp": tensor,
        "input_tokens": given,
        "output_tokens": asked,
        "concurrency": users,
    }
    # Times are those that it would be held against; here nobody does.
    row = row_of({name: str(value) for name, value in raw.items()} | {"ttft_ms": "1", "tpot_ms": "1"})
    point = played(row, committed())
    return f"{model} {system} {users}", (_rounded(1000 * point.ttft), _rounded(1000 * point.tpot))


def _crowded() -> tuple[float, ...]:
    constants = Constants()
    lengths = Workload(
        pattern=ClosedLoop(USERS), input_tokens=Uniform(150, 450), output_tokens=Uniform(20, 60), seed=7
    )
    with asks(lengths) as wanted:
        seen = replay(
            constants.times(CROWDED.max_num_seqs),
            CROWDED,
            ((one.input_tokens, one.output_tokens) for one in islice(wanted, 100_000)),
            users=USERS,
            settle_s=3.0,
            span_s=20.0,
            interference=constants.interference(),
        ).figures()
    figures = [getattr(seen, name) or 0.0 for name in TIMES]
    return tuple(
        map(_rounded, (*figures, seen.running, seen.waiting, seen.kv, seen.preemptions, seen.finished))
    )


def write(
    result: Mapping[str, Any], latencies: Path | None, *, engine: str, today: date, file: Path = FILE
) -> None:
    """What this run measured, beside what stays of an earlier one: of which the model answers as it did then."""
    before = yaml.safe_load(file.read_text("utf-8")) if file.exists() else {}
    found: dict[str, Any] = {
        "loops": before.get("loops") if latencies is None else _loops(result["pairs"], latencies, today),
        "gpu": before.get("gpu"),
        "real": before.get("real") if result["cells"] is None else _real(result, engine, today),
        "answers": {name: list(values) for name, values in answers().items()},
    }
    kept, now = before.get("answers") or {}, found["answers"]
    others = {name for name in kept.keys() | now.keys() if kept.get(name) != now.get(name)}
    needed = {
        "--latencies FILE": latencies is None and others - {POOL},
        "a real engine": result["cells"] is None and POOL in others,
    }
    if missing := [what for what, lacks in needed.items() if lacks]:
        raise SystemExit(
            f"the engine model is another one since: to be measured again with {' and '.join(missing)}"
        )
    _put(found, file)


def write_gpu(told: Mapping[str, Any], file: Path = FILE) -> None:
    """What was measured of a model on a GPU, beside all the rest: in place of what was kept of that pair, else after the others."""
    before = yaml.safe_load(file.read_text("utf-8"))
    pairs = {(one["gpu"], one["model"]): one for one in (*before["gpu"], dict(told))}
    _put({**before, "gpu": list(pairs.values())}, file)


def _put(found: Mapping[str, Any], file: Path) -> None:
    Fidelity.model_validate(found)
    text = yaml.dump(dict(found), Dumper=_Plain, sort_keys=False, default_flow_style=None, width=110)
    file.write_text(HEAD + text, encoding="utf-8")


def _loops(pairs: Mapping[str, Any], file: Path, today: date) -> dict[str, Any]:
    names = ("points", "ttft_median_pct", "ttft_p90_pct", "tpot_median_pct", "tpot_p90_pct")
    return {
        "measured": today,
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "rows": pairs["rows"],
        **{name: pairs["all"][name] for name in names},
    }


def _real(result: Mapping[str, Any], engine: str, today: date) -> dict[str, Any]:
    cells = result["cells"]
    noise = [value for cell in cells for value in cell["noise_pct"].values() if value is not None]
    loads = [load for cell in cells for load in cell["load_average"]]
    return {
        "measured": today,
        "engine": engine,
        "cells": len(cells),
        "turns": min(len(cell["load_average"]) for cell in cells),
        **result["summary"]["left_out"],
        "preempting_cells": sum(cell["preemptions_err"] is not None for cell in cells),
        "noise_pct": [round(min(noise), 1), round(max(noise), 1)],
        "load_average": [min(loads), max(loads)],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
