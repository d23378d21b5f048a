"""What the rungs of a retune do to the longest gap between two tokens, over as many seeds as a real engine has no hours for.

The longest gap of a run is that of one answer, so a few runs of a real engine (`retune.py`) say little of it: whoever is preempted all
the same waits the longer, the more has to be free before it comes back. Here the engine model runs the same short pool and the same
lengths, at a share of what it finishes at its best, once as it was and once a rung; only ratios mean anything, as its steps are no machine's.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "e2e"), str(ROOT / "runtime")]  # programs there find one another by bare name

from arguments import amount, count, from_zero  # noqa: E402
from plimsoll.simulate.engine import Engine  # noqa: E402
from plimsoll.simulate.fidelity import belief_error  # noqa: E402
from plimsoll.simulate.request import Request  # noqa: E402
from plimsoll.simulate.steps import Limits, StepTimes  # noqa: E402
from preempting import ANSWERS, BLOCKS, PROMPTS, SEQUENCES  # noqa: E402

TIMES: Final = StepTimes(
    decode=(0.0, *(0.010 + 0.0012 * running for running in range(1, SEQUENCES + 1))),
    kv_token=1e-7,
    chunk=0.003,
    prompt_token=8e-5,
    seen_token=0.0,
)
"""Those of a slow engine, whose steps grow with who decodes in them."""
BEFORE: Final = Limits(
    blocks=BLOCKS, block_size=128, max_num_seqs=SEQUENCES, max_num_batched_tokens=2048, max_model_len=4096
)
RUNS: Final = 3
"""Of a real comparison, whose longest gap is the worst of so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run."""

    preemptions: int
    tokens_s: float
    gap_s: float
    """The longest of all answers."""
    ttft: tuple[float, ...]
    whole: tuple[float, ...]


def requests_of(rate: float, count: int, seed: int) -> list[Request]:
    chance, at, found = random.Random(seed), 0.0, []  # noqa: S311 - repeatable
    for _ in range(count):
        at += chance.expovariate(rate)
        found.append(Request(at, PROMPTS.draw(chance), ANSWERS.draw(chance)))
    return found


def best(requests: int) -> float:
    """Requests a second that the engine as it was finishes of a queue that never ends."""
    engine = Engine(TIMES, BEFORE)
    for one in requests_of(1e9, requests, 0):
        engine.submit(one, 0.0)
    engine.advance(1e9)
    return requests / engine.now


def run(limits: Limits, rate: float, count: int, seed: int) -> Seen:
    engine, asked = Engine(TIMES, limits), requests_of(rate, count, seed)
    for one in asked:
        engine.submit(one, one.arrival)
    engine.advance(1e9)
    return Seen(
        preemptions=engine.preemptions,
        tokens_s=engine.generation_tokens / (engine.now - asked[0].arrival),
        # Who is never preempted waits for the longest step at most.
        gap_s=max(engine.longest_stall, engine.itl.quantile(1.0) or 0.0),
        ttft=tuple(one.first_at - one.arrival for one in asked),
        whole=tuple(one.finished_at - one.arrival for one in asked),
    )


def compared(before: Sequence[Seen], after: Sequence[Seen]) -> dict[str, Any]:
    pairs = list(zip(_worst_of_each(before), _worst_of_each(after), strict=True))
    return {
        "preemptions_before": sum(one.preemptions for one in before),
        "preemptions_after": sum(one.preemptions for one in after),
        "tokens_s_ratio": round(_mean(after, "tokens_s") / _mean(before, "tokens_s"), 3),
        "ttft_p99_ratio": round(_p99(one.ttft for one in after) / _p99(one.ttft for one in before), 2),
        "e2e_p99_ratio": round(_p99(one.whole for one in after) / _p99(one.whole for one in before), 2),
        "gap_mean_ratio": round(_mean(after, "gap_s") / _mean(before, "gap_s"), 2),
        "shorter_of_three_pct": round(100 * sum(new < old for old, new in pairs) / len(pairs)),
    }


def _worst_of_each(runs: Sequence[Seen]) -> list[float]:
    """The longest gap of each so many runs, as a comparison of real engines tells it."""
    return [
        max(one.gap_s for one in runs[at : at + RUNS]) for at in range(0, len(runs) - len(runs) % RUNS, RUNS)
    ]


def _mean(runs: Sequence[Seen], name: str) -> float:
    return statistics.fmean(getattr(one, name) for one in runs)


def _p99(told: Iterable[tuple[float, ...]]) -> float:
    ordered = sorted(value for one in told for value in one)
    return ordered[int(0.99 * len(ordered))]


def rungs_of(watermarks: Sequence[int], sequences: Sequence[int]) -> Mapping[str, Limits]:
    return {
        **{f"watermark {one}": replace(BEFORE, watermark_blocks=one * BLOCKS // 1000) for one in watermarks},
        **{f"maxSequences {one}": replace(BEFORE, max_num_seqs=one) for one in sequences},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=count, default=120)
    parser.add_argument("--requests", type=count, default=64, help="of each run")
    parser.add_argument(
        "--share", type=amount, default=0.8, help="of what it finishes at its best, that comes"
    )
    parser.add_argument(
        "--watermark",
        type=from_zero,
        nargs="*",
        default=[100, 191, 250, 300],
        help="thousandths of the blocks",
    )
    parser.add_argument("--sequences", type=count, nargs="*", default=[12, 11, 10], help="that run at once")
    parser.add_argument("--json", action="store_true", help="one object on stdout")
    chosen = parser.parse_args()
    if chosen.seeds < RUNS:
        parser.error(f"--seeds has to be {RUNS} at least: of so many runs the worst gap is compared")
    rate = chosen.share * best(400)
    seeds = range(1, chosen.seeds + 1)
    before = [run(BEFORE, rate, chosen.requests, seed) for seed in seeds]
    found = {
        name: compared(before, [run(limits, rate, chosen.requests, seed) for seed in seeds])
        for name, limits in rungs_of(chosen.watermark, chosen.sequences).items()
    }
    if chosen.json:
        print(json.dumps({"rungs": found, "error": belief_error()}))
        return
    print(
        f"{chosen.seeds} runs of {chosen.requests} requests at {chosen.share:.0%} of the best, beside the engine as it was"
    )
    print(
        f"{'':18}{'preempted':>12}{'tokens/s':>10}{'p99 TTFT':>10}{'p99 e2e':>9}{'longest gap':>13}  shorter, the worst of {RUNS} runs"
    )
    for name, each in found.items():
        print(
            f"{name:18}{each['preemptions_before']:>6} {each['preemptions_after']:>5}{each['tokens_s_ratio']:>10.3f}"
            f"{each['ttft_p99_ratio']:>10.2f}{each['e2e_p99_ratio']:>9.2f}{each['gap_mean_ratio']:>13.2f}"
            f"  in {each['shorter_of_three_pct']}%"
        )
    print(belief_error())


if __name__ == "__main__":
    main()
