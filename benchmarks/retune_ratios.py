"""An engine as it was before a retune and as it is after it, in turns on one machine: the same requests, at the same pace.

Both are there all the time and one of them works, so that neither pays for the other's start. Whoever goes first changes from seed to
seed. Counts are of all seeds together; so are percentiles, as a hundred requests have no ninety-ninth percentile to speak of.

They are asked as a service is that has room left: requests come by themselves, four fifths of what the engine as it was finishes at its
best, which is measured first, since no two machines are as fast. Then once more by more users at a time than it has places for, who
wait in front of the first token whatever it is told: that is no load to promise a first token under, and shows what output costs.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import models
from cluster.engine import EngineProcess
from plimsoll.load.bench import session
from plimsoll.load.client import Api, Endpoint
from plimsoll.load.drive import Limits
from plimsoll.load.sketch import Sketch
from plimsoll.load.slo import Slo
from plimsoll.load.tally import Tally
from plimsoll.load.workload import ClosedLoop, OpenLoop, Pattern, Workload
from preempting import SLO, workload

OURS: Final = ("--port", "--host", "--served-model-name", "--load-format", "--shutdown-timeout")
"""Words of a pod, with a value each, that are another's on this machine."""
SHARE: Final = 0.8
"""Of what it finishes at its best, that comes."""
PROMISED: Final = Slo(ttft=SLO["ttftP99Ms"], itl=SLO["itlP99Ms"])
"""Of an engine on CPUs."""
PREEMPTED: Final = re.compile(r"^vllm:num_preemptions_total(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(slots=True)
class Side:
    """One of the two, with all that it has done."""

    name: str
    url: str
    slo: Slo = PROMISED
    e2e: Sketch = field(default_factory=Sketch)
    ttft: Sketch = field(default_factory=Sketch)
    gaps: Sketch = field(default_factory=Sketch)
    longest: list[float] = field(default_factory=list)
    """Gap of each run."""
    tokens: float = 0.0
    seconds: float = 0.0
    good: float = 0.0
    answered: int = 0
    bad: int = 0
    preemptions: float = 0.0

    def run(self, pattern: Pattern, seed: int, requests: int) -> dict[str, Any]:
        seen: list[Tally] = []
        before = self._preempted()
        result = asyncio.run(self._asked(workload(pattern, seed), requests, seen))
        tally = seen[-1]
        self.e2e.join(tally.e2e)
        self.ttft.join(tally.ttft)
        self.gaps.join(tally.longest_gap)
        self.longest.append(tally.longest_gap.longest)
        preempted = self._preempted() - before
        self.tokens += tally.output_tokens
        self.seconds += result.seconds
        # Requests are whole, and their rate is rounded.
        good = round((result.rates.good_requests or 0.0) * result.seconds)
        self.good += good
        self.answered += result.counts.ok
        self.bad += result.counts.bad
        self.preemptions += preempted
        return {
            "load": str(pattern),
            "side": self.name,
            "seed": seed,
            "preemptions": round(preempted),
            "tokens_s": round(result.rates.output_tokens),
            "e2e_p99_s": _s(tally.e2e.quantile(0.99)),
            "ttft_p99_s": _s(tally.ttft.quantile(0.99)),
            "max_gap_s": _s(tally.longest_gap.longest),
            "slo_pct": round(100 * good / max(1, result.counts.ok + result.counts.bad), 1),
            "machine": round(os.getloadavg()[0], 1),
        }

    async def _asked(self, asked: Workload, requests: int, seen: list[Tally]) -> Any:
        endpoint = Endpoint(url=self.url, api=Api.COMPLETIONS)
        # No run finds another one's prompts in a cache.
        salt = zlib.crc32(f"{self.name} {asked.pattern} {asked.seed}".encode())
        async with session(endpoint, asked.seed, salt=salt) as opened:
            return await opened.measure(
                asked,
                Limits(requests=requests, drain_s=600),
                slo=self.slo,
                stop=asyncio.Event(),
                watch=lambda tally, _: seen.append(tally),
            )

    def _preempted(self) -> float:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:  # noqa: S310 - this machine
            page = answer.read().decode()
        return sum(float(one) for one in PREEMPTED.findall(page))


def told(run: dict[str, Any]) -> None:
    print("  ".join(f"{key} {value}" for key, value in run.items()), file=sys.stderr, flush=True)


def ratios(
    before: Sequence[str], after: Sequence[str], folder: Path, *, seeds: int, users: int, requests: int
) -> dict[str, Any]:
    model = models.dense().write(folder / "model")
    environment = {"OMP_NUM_THREADS": "1"}
    with (
        EngineProcess(model, *words_of(before), environment=environment) as old,
        EngineProcess(model, *words_of(after), environment=environment) as new,
    ):
        return in_turns(old.url, new.url, seeds=seeds, users=users, requests=requests)


def in_turns(
    before: str,
    after: str,
    *,
    seeds: int,
    users: int,
    requests: int,
    slo: Slo = PROMISED,
    tell: Callable[[dict[str, Any]], None] = told,
) -> dict[str, Any]:
    """Two engines that stand already, by their addresses. `tell` hears of each run as it ends."""
    at_its_best = Side("before", before, slo)
    for side in (Side("after", after, slo), at_its_best):
        # What an engine does once for all its time is not measured of either.
        tell(side.run(ClosedLoop(users), 0, requests))
    pace = OpenLoop(round(SHARE * at_its_best.answered / at_its_best.seconds, 2))
    compare = partial(_compared, before, after, seeds=seeds, requests=requests, slo=slo, tell=tell)
    return {"load": str(pace), **compare(pace), "crowded": compare(ClosedLoop(users))}


def _compared(
    before: str,
    after: str,
    pattern: Pattern,
    *,
    seeds: int,
    requests: int,
    slo: Slo,
    tell: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    sides = Side("before", before, slo), Side("after", after, slo)
    runs = by_turns(*sides, pattern, seeds=seeds, requests=requests, tell=tell)
    return {**report_of(*sides), "runs": runs}


def by_turns(
    before: Side,
    after: Side,
    pattern: Pattern,
    *,
    seeds: int,
    requests: int,
    tell: Callable[[dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """The runs of both, each with every seed; `tell` hears of one as it ends."""
    runs = []
    for seed in range(1, seeds + 1):
        for side in (before, after) if seed % 2 else (after, before):
            runs.append(side.run(pattern, seed, requests))
            tell(runs[-1])
    return runs


def words_of(argv: Sequence[str]) -> list[str]:
    """Without the program, the model's folder, and what is another's here."""
    words = list(argv[argv.index("serve", argv.index("vllm")) + 2 :])
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in OURS:
            skip = True
        elif word != "--enforce-eager":
            kept.append(word)
    return kept


def report_of(old: Side, new: Side) -> dict[str, Any]:
    return {
        "preemptions_before": round(old.preemptions),
        "preemptions_after": round(new.preemptions),
        "tokens_s_before": round(old.tokens / old.seconds),
        "tokens_s_ratio": round((new.tokens / new.seconds) / (old.tokens / old.seconds), 3),
        "e2e_p99_ratio": round(new.e2e.quantile(0.99) / old.e2e.quantile(0.99), 3),
        "slo_pct_before": round(100 * old.good / max(1, old.answered + old.bad), 2),
        "slo_pct_after": round(100 * new.good / max(1, new.answered + new.bad), 2),
        "ttft_p99_ms": round(1000 * new.ttft.quantile(0.99)),
        "ttft_p99_ms_before": round(1000 * old.ttft.quantile(0.99)),
        "slo": SLO,
        "max_gap_s_before": _s(old.gaps.longest),
        "max_gap_s_after": _s(new.gaps.longest),
        # The worst of all is that of one answer; of each run the worst is as many answers as there are runs.
        "run_max_gap_s_before": [_s(gap) for gap in old.longest],
        "run_max_gap_s_after": [_s(gap) for gap in new.longest],
        "requests": old.answered + new.answered,
        "failed": old.bad + new.bad,
    }


def _s(seconds: float) -> float:
    return round(seconds, 3)
