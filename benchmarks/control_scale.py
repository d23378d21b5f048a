"""What one tick of control costs a fleet: questions to a Prometheus, decisions, retunes, what is told, and the memory they take.

The whole tick of the operator's own loop runs, from resources that changed to turns that are woken. A Prometheus is played by
another process on this machine that has its answers ready, so the time is that of asking, reading and deciding; what a real one
takes to work the answers and the alerts' rules out is its own. Every deployment has two replicas, and one in a hundred may sleep.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path

from arguments import count
from control_fleet import REPLICAS, TICK_S, TURNS, Estate, PlayedPrometheus, played
from plimsoll.handlers.garbage import collect_seldom
from plimsoll.prometheus.client import Prometheus
from plimsoll.prometheus.fleet import FleetMetrics
from plimsoll.prometheus.vocabulary import Vocabulary
from plimsoll.prometheus.wakes import WakeQueries
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.sources import Asked, ByPrometheus, Looked

SIZES = (100, 1000, 5000)
WARM = 3 * TURNS
"""Ticks until windows are full of samples, histograms have had their turns and users' own queries are known to be good."""
TICKS = 8


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--deployments", type=count, nargs="+", default=list(SIZES), help="sizes of the fleet"
    )
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(argv)
    found = {size: measured(size) for size in options.deployments}
    if options.json:
        print(json.dumps({"by_deployments": {str(size): vars(each) for size, each in found.items()}}))
        return
    head = ("deployments", "replicas", "queries", "gather", "ask", "decide", "cpu", "tick", "rss")
    print("{:>11} {:>8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}".format(*head))
    for size, each in found.items():
        print(
            f"{size:>11,} {REPLICAS * size:>8,} {each.queries:>7} {each.gather_s:>5.2f}s {each.ask_s:>5.2f}s "
            f"{each.decide_s:>5.2f}s {each.cpu_s:>5.2f}s {each.tick_s:>5.2f}s {each.rss_mb:>5.0f}MB"
        )


@dataclass(kw_only=True)
class Cost:
    tick_s: float
    """By the clock on the wall, other programs of the machine included."""
    cpu_s: float
    """Of the processor; the parts below are its parts."""
    queries: int
    """The most that a tick sent."""
    rss_mb: float
    gather_s: float
    """Which deployments there are, and what is seen of them."""
    ask_s: float
    """Questions out, answers in, JSON to rows and rows to samples."""
    decide_s: float
    """Samples to signals, signals to decisions, and what follows of these for turns."""


def measured(size: int) -> Cost:
    """The median of the later ticks, in a process of its own, so that one size does not pay for another."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_measure, args=(size, there))
    process.start()
    # The child has its own; while one is open here too, none would end when it dies.
    there.close()
    try:
        found: Cost | None = here.recv()
    except EOFError:
        found = None
    finally:
        process.join()
    if found is None:
        sys.exit(
            f"error: the process that measures {size} deployments ended with {process.exitcode} and told nothing"
        )
    return found


def _measure(size: int, result: Connection) -> None:
    estate = Estate.of(size)
    with played(estate, WARM + TICKS) as prometheus:
        result.send(asyncio.run(ticks(estate, prometheus)))


class Watched(ByPrometheus):
    """With the time of the processor before and after each look."""

    def __init__(self, url: str) -> None:
        client = Prometheus(url, deadline_s=120.0)
        super().__init__(FleetMetrics(client, Vocabulary({})), WakeQueries(client), client)
        self.marks: list[float] = []

    async def look(self, now: float, asked: Sequence[Asked]) -> Looked:
        self.marks.append(time.process_time())
        found = await super().look(now, asked)
        self.marks.append(time.process_time())
        return found


async def ticks(estate: Estate, prometheus: PlayedPrometheus) -> Cost:
    source, rows, queries = Watched(prometheus.url), [], 0
    woken: list[str] = []
    control = Control(estate.world, source, woken.append, interval_s=TICK_S)
    collect_seldom()
    for number in range(WARM + TICKS):
        estate.passed()
        begun, source.marks = time.perf_counter(), [time.process_time()]
        await control.tick()
        source.marks.append(time.process_time())
        took = time.perf_counter() - begun
        estate.turned(woken)
        asked = prometheus.asked()
        if number >= WARM:
            rows.append((took, *(after - before for before, after in pairwise(source.marks))))
            queries = max(queries, asked)
    source.close()
    tick_s, gather_s, ask_s, decide_s = (statistics.median(column) for column in zip(*rows, strict=True))
    gc.collect()
    return Cost(
        tick_s=round(tick_s, 3),
        cpu_s=round(gather_s + ask_s + decide_s, 3),
        queries=queries,
        rss_mb=round(_rss_mb(), 1),
        gather_s=round(gather_s, 3),
        ask_s=round(ask_s, 3),
        decide_s=round(decide_s, 3),
    )


def _rss_mb() -> float:
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
