"""What one tick of control costs a fleet: questions to a Prometheus, decisions, retunes, and the memory they take.

A Prometheus is played by another process on this machine that has its answers ready, so the time is that of asking,
reading and deciding; what a real one takes to work the answers out is its own. Every deployment has two replicas.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from plimsoll.api.config import Restarts
from plimsoll.control.fleet import EMPTY, Fleet, decide_fleet
from plimsoll.control.joining import joined
from plimsoll.control.latencies import Spreads, latencies_of
from plimsoll.control.memory import Memory
from plimsoll.control.retune import Knobs, RetuneMemory, Scene, advance
from plimsoll.control.samples import Window
from plimsoll.control.signals import Signals, signals_of
from plimsoll.control.situation import (
    Bounds,
    Capacity,
    Replica,
    ReplicaState,
    Role,
    ServingSet,
    Situation,
    Slo,
)
from plimsoll.control.workload import Observed, observe
from plimsoll.facts.engines import engine_facts
from plimsoll.handlers.garbage import settled
from plimsoll.prometheus.client import Prometheus
from plimsoll.prometheus.fleet import FleetMetrics
from plimsoll.prometheus.queries import queries
from plimsoll.prometheus.vocabulary import HISTOGRAMS, vocabulary

SIZES = (100, 1000, 5000)
REPLICAS, TICKS, TICK_S = 2, 12, 15.0
"""Enough ticks for windows to be full of samples and for every histogram to have had its turns."""
SLOWER = 4
"""Ticks between two looks at a deployment's traffic and settings: those change by the minute."""
RULES = Restarts()
NOW = 1_800_000_000.0
BUCKETS = tuple(str(0.001 * 2**power) for power in range(22))
CAPACITY = Capacity(
    kv_tokens=200_000,
    max_num_seqs=128,
    concurrency=60,
    requests_per_second=6.0,
    input_tokens=900,
    output_tokens=250,
)
WORDS = vocabulary(engine_facts("vllm", version).metrics for version in ("0.20.2", "0.33.0"))
PodKey = tuple[str, str]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, nargs="+", default=list(SIZES), help="sizes of the fleet")
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(argv)
    found = {size: measured(size) for size in options.deployments}
    if options.json:
        print(json.dumps({"by_deployments": {str(size): vars(each) for size, each in found.items()}}))
        return
    head = ("deployments", "replicas", "queries", "ask", "read", "decide", "cpu", "tick", "rss")
    print("{:>11} {:>8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}".format(*head))
    for size, each in found.items():
        print(
            f"{size:>11,} {REPLICAS * size:>8,} {each.queries:>7} {each.ask_s:>5.2f}s {each.read_s:>5.2f}s "
            f"{each.decide_s:>5.2f}s {each.cpu_s:>5.2f}s {each.tick_s:>5.2f}s {each.rss_mb:>5.0f}MB"
        )


@dataclass(kw_only=True)
class Cost:
    tick_s: float
    """By the clock on the wall, other programs of the machine included."""
    cpu_s: float
    """Of the processor; the parts below are its parts."""
    queries: int
    rss_mb: float
    ask_s: float
    """Questions out, answers in, JSON to rows and rows to samples."""
    read_s: float
    """Samples to signals."""
    decide_s: float


def measured(size: int) -> Cost:
    """The median of the later ticks, in a process of its own, so that one size does not pay for another."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_measure, args=(size, there))
    process.start()
    try:
        found: Cost = here.recv()
    finally:
        process.join()
    return found


def _measure(size: int, result: Connection) -> None:
    with played(size) as url:
        result.send(asyncio.run(_ticks(size, url)))


async def _ticks(size: int, url: str) -> Cost:
    source = Prometheus(url, deadline_s=120.0)
    metrics, estate = FleetMetrics(source, WORDS), Estate.of(size)
    rows = []
    settled()
    for tick in range(TICKS):
        now, begun = NOW + TICK_S * tick, time.perf_counter()
        marks = [time.process_time()]
        seen, reachable = await metrics.look(now)
        marks.append(time.process_time())
        estate.read(now, seen.samples, seen.histograms, reachable)
        marks.append(time.process_time())
        estate.decide(now)
        marks.append(time.process_time())
        rows.append((time.perf_counter() - begun, *(after - before for before, after in pairwise(marks))))
    source.close()
    tick_s, ask_s, read_s, decide_s = (
        statistics.median(column) for column in zip(*rows[TICKS // 2 :], strict=True)
    )
    gc.collect()
    return Cost(
        tick_s=round(tick_s, 3),
        cpu_s=round(ask_s + read_s + decide_s, 3),
        queries=max(len(queries(WORDS, tick)) for tick in range(9)),
        rss_mb=round(_rss_mb(), 1),
        ask_s=round(ask_s, 3),
        read_s=round(read_s, 3),
        decide_s=round(decide_s, 3),
    )


@dataclass
class Estate:
    """All deployments, and what is remembered of each between ticks."""

    sets: Mapping[str, ServingSet]
    live: Mapping[str, Mapping[PodKey, str]]
    memories: dict[str, Memory]
    retunes: dict[str, RetuneMemory]
    observed: dict[str, Observed]
    window: Window
    signals: dict[str, Signals]
    spreads: Spreads = field(default_factory=Spreads)
    tick: int = 0

    @classmethod
    def of(cls, size: int) -> Estate:
        sets = {f"team-{i % 50}/chat-{i}": _set(i) for i in range(size)}
        live = {
            name: {(name.partition("/")[0], replica.id): replica.id for replica in each.replicas}
            for name, each in sets.items()
        }
        names = list(sets)
        return cls(
            sets=sets,
            live=live,
            memories=dict.fromkeys(names, EMPTY),
            retunes=dict.fromkeys(names, RetuneMemory()),
            observed=dict.fromkeys(names, Observed()),
            window=Window(),
            signals={},
        )

    def read(self, now: float, samples: Mapping, histograms: Mapping, reachable: bool) -> None:  # type: ignore[type-arg]
        pods = {key: uid for live in self.live.values() for key, uid in live.items()}
        self.window = self.window.add(now, joined(samples, pods))
        for name, each in self.sets.items():
            found = histograms.get((name.partition("/")[0], each.name))
            self.signals[name] = signals_of(
                self.window,
                now=now,
                live=self.live[name].values(),
                reachable=reachable,
                latencies=latencies_of([found] if found else [], self.spreads),
            )
        self.spreads.over()

    def decide(self, now: float) -> None:
        slo = Slo(ttft_p99_s=2.0, itl_p99_s=0.1)
        situations = [
            Situation(
                name=name,
                roles=(Role(sets=(each,), signals=self.signals[name], bounds=Bounds(min=1, max=8)),),
                slo=slo,
            )
            for name, each in self.sets.items()
        ]
        self.tick += 1
        fleet = Fleet(free={"h100": 500.0})
        decisions = decide_fleet(now=now, situations=situations, memories=self.memories, fleet=fleet)
        for place, decision in enumerate(decisions):
            name = decision.name
            self.memories[name] = decision.memory
            if (place + self.tick) % SLOWER:
                continue
            burstiness = decision.memory.of("serve").load.burstiness
            self.observed[name] = observe(self.observed[name], self.signals[name], now, burstiness=burstiness)
            scene = Scene(
                now=now,
                name=name,
                knobs=Knobs(max_sequences=128),
                serving=self.sets[name],
                signals=self.signals[name],
                slo=slo,
                fleet_gpus=10_000.0,
                restarts=RULES,
            )
            self.retunes[name] = advance(scene, self.retunes[name]).memory


def _set(number: int) -> ServingSet:
    name = f"chat-{number}-{number:08x}"
    replicas = tuple(
        Replica(id=f"{name}-7d9f-{place}", state=ReplicaState.READY, since=NOW - 9000, created=NOW - 9200)
        for place in range(REPLICAS)
    )
    return ServingSet(name=name, pool="h100", capacity=CAPACITY, replicas=replicas)


def _rss_mb() -> float:
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def played(size: int) -> Iterator[str]:
    """The address of a Prometheus of so many deployments."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_play, args=(size, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def _play(size: int, address: Connection) -> None:
    texts = {text: about for tick in range(9) for about, text in queries(WORDS, tick).items()}
    moving = {"ages", "counters"}
    ready = {
        about: [_answer(about, size, tick) for tick in range(TICKS if about in moving else 1)]
        for about in set(texts.values())
    }
    asked = dict.fromkeys(ready, 0)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            about = texts[parse_qs(urlparse(self.path).query)["query"][0]]
            data = ready[about][min(asked[about], len(ready[about]) - 1)]
            asked[about] += 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address.send(server.server_address[1])
    server.serve_forever()


def _answer(about: str, size: int, tick: int) -> bytes:
    rows = [
        {"metric": labels, "value": [NOW, value]}
        for number in range(size)
        for labels, value in _rows(about, number, tick)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


def _rows(about: str, number: int, tick: int) -> Iterator[tuple[dict[str, str], str]]:
    each, space = _set(number), f"team-{number % 50}"
    if about in HISTOGRAMS:
        labels = {"namespace": space, "set": each.name}
        for place, bound in enumerate((*BUCKETS, "+Inf")):
            yield {**labels, "le": bound}, str(13.5 * place + number % 7)
        yield labels, "512.25"
        return
    for replica in each.replicas:
        pod = {"namespace": space, "pod": replica.id}
        match about:
            case "ages":
                yield pod, str(NOW + TICK_S * tick)
            case "pools":
                yield {**pod, "num_gpu_blocks": "12500", "block_size": "16"}, "1"
            case _:
                words = {
                    "kv": ("kvUsage",),
                    "load": ("running", "waiting"),
                    "errors": ("requestSuccess",),
                    "counters": (
                        "preemptions",
                        "requestSuccess",
                        "promptTokens",
                        "generationTokens",
                        "prefixQueries",
                        "prefixHits",
                    ),
                }[about]
                for name in WORDS.of(*words):
                    yield (
                        {"__name__": name, **pod},
                        "0.45" if about == "kv" else str(number % 40 + 500 * tick),
                    )


if __name__ == "__main__":
    main()
