"""A small closed model of replicas under load: enough physics for the law to be judged by, and no more.

One second a step. A replica admits requests while its pool and its slots last; each running request gains tokens at a rate
that falls with the number that run; a pool that overflows throws the youngest out, to begin anew. It publishes what an
engine would: gauges, counters, histograms. Not the simulator, which has iterations, blocks and scrapes.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from plimsoll.control.situation import Capacity, Replica, ReplicaState
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodSample

TTFT = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0, 80.0, math.inf)
ITL = (0.01, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.075, 0.1, 0.15, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
LENGTHS = (50, 100, 200, 500, 1000, 2000, 5000, 10000, math.inf)
PROMPT, OUTPUT = 600, 250
KV_TOKENS, SEQUENCES = 60_000, 128
STEP_S, EACH_S = 0.015, 0.0006
"""A decode step alone, and what each running request adds to it."""
SLO_TTFT, SLO_ITL = 2.0, 0.06
PLANNED = Capacity(
    kv_tokens=KV_TOKENS,
    max_num_seqs=SEQUENCES,
    concurrency=55,
    requests_per_second=55 / (OUTPUT * (STEP_S + 55 * EACH_S)),
    input_tokens=PROMPT,
    output_tokens=OUTPUT,
)


class Counts:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0.0] * len(bounds), 0.0

    def add(self, value: float, times: float = 1.0) -> None:
        self.sum += value * times
        for place in range(len(self.bounds) - 1, -1, -1):
            if value > self.bounds[place]:
                break
            self.counts[place] += times

    def histogram(self) -> Histogram:
        return Histogram(self.bounds, tuple(self.counts), self.sum)


@dataclass(slots=True)
class Request:
    arrived: float
    prompt: int
    output: int
    done: float = 0.0
    first: bool = False


@dataclass(slots=True)
class Engine:
    id: str
    created: float
    ready_at: float
    state: ReplicaState = ReplicaState.STARTING
    slots: int = SEQUENCES
    running: list[Request] = field(default_factory=list)
    waiting: deque[Request] = field(default_factory=deque)
    finished: float = 0
    preempted: float = 0
    ttft: Counts = field(default_factory=lambda: Counts(TTFT))
    itl: Counts = field(default_factory=lambda: Counts(ITL))
    prompts: Counts = field(default_factory=lambda: Counts(LENGTHS))
    outputs: Counts = field(default_factory=lambda: Counts(LENGTHS))
    prompt_tokens: float = 0
    output_tokens: float = 0

    @property
    def used(self) -> float:
        return sum(each.prompt + each.done for each in self.running)

    def step(self, now: float) -> list[tuple[float, bool]]:
        """One second; when the requests that got their first token had arrived, and whether all was within the limits."""
        used = self.used
        while self.waiting and len(self.running) < self.slots and used + self.waiting[0].prompt <= KV_TOKENS:
            request = self.waiting.popleft()
            request.done = 0.0
            used += request.prompt
            self.running.append(request)
        if not self.running:
            return []
        gap = STEP_S + EACH_S * len(self.running)
        firsts, left = [], []
        for request in self.running:
            gained = min(1 / gap, request.output - request.done)
            request.done += gained
            self.output_tokens += gained
            if not request.first:
                request.first = True
                seconds = now - request.arrived + 0.15 + gap
                self.ttft.add(seconds)
                self.prompt_tokens += request.prompt
                self.prompts.add(request.prompt)
                firsts.append((request.arrived, seconds <= SLO_TTFT and gap <= SLO_ITL))
            if request.done >= request.output:
                self.finished += 1
                self.outputs.add(request.output)
            else:
                left.append(request)
        self.itl.add(gap, len(self.running) / gap)
        self.running = left
        while self.used > KV_TOKENS:
            self.waiting.appendleft(self.running.pop())
            self.preempted += 1
        return firsts

    def sample(self, now: float) -> PodSample:
        return PodSample(
            pod=self.id,
            at=now,
            kv_fraction=self.used / KV_TOKENS,
            running=float(len(self.running)),
            waiting=float(len(self.waiting)),
            kv_tokens=KV_TOKENS,
            preemptions=self.preempted,
            finished=self.finished,
            errors=0.0,
            prompt_tokens=self.prompt_tokens,
            generation_tokens=self.output_tokens,
            ttft=self.ttft.histogram(),
            itl=self.itl.histogram(),
            prompt_lengths=self.prompts.histogram(),
            output_lengths=self.outputs.histogram(),
        )

    def replica(self) -> Replica:
        since = self.ready_at if self.state is ReplicaState.READY else self.created
        return Replica(
            id=self.id, state=self.state, since=since, created=self.created, scheduled=self.created
        )


class Cluster:
    """Engines behind a router that sends to the least loaded, under a rate of arrivals that is a function of time."""

    def __init__(
        self,
        *,
        rate: Callable[[float], float],
        replicas: int,
        start_s: float = 120.0,
        seed: int = 0,
        begin: float = 1_000_000.0,
    ) -> None:
        self.rate, self.start_s, self.now, self.begin = rate, start_s, begin, begin
        self.random = random.Random(seed)
        self.engines: list[Engine] = []
        self.served: list[tuple[float, bool]] = []
        self.gpu_s = 0.0
        self.count = 0
        for _ in range(replicas):
            self.add(begin - start_s)
        self._promote()

    def add(self, created: float) -> None:
        self.count += 1
        self.engines.append(
            Engine(id=f"pod-{self.count:04}", created=created, ready_at=created + self.start_s)
        )

    def _promote(self) -> None:
        for engine in self.engines:
            if engine.state is ReplicaState.STARTING and self.now >= engine.ready_at:
                engine.state = ReplicaState.READY

    def advance(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self._promote()
            ready = [engine for engine in self.engines if engine.state is ReplicaState.READY]
            for _ in range(self._arrivals(self.rate(self.now - self.begin))):
                request = Request(
                    self.now,
                    max(20, int(self.random.lognormvariate(math.log(PROMPT) - 0.18, 0.6))),
                    max(5, int(self.random.lognormvariate(math.log(OUTPUT) - 0.18, 0.6))),
                )
                if ready:
                    min(ready, key=lambda engine: len(engine.running) + len(engine.waiting)).waiting.append(
                        request
                    )
            for engine in self.engines:
                if engine.state in {ReplicaState.READY, ReplicaState.LEAVING}:
                    self.served += engine.step(self.now)
            self.engines = [
                each
                for each in self.engines
                if each.state is not ReplicaState.LEAVING or each.running or each.waiting
            ]
            self.gpu_s += len(self.engines)

    def _arrivals(self, rate: float) -> int:
        limit, count, product = math.exp(-min(rate, 500.0)), 0, self.random.random()
        while product > limit:
            count += 1
            product *= self.random.random()
        return count

    def scale(self, wanted: int) -> None:
        there = [engine for engine in self.engines if engine.state is not ReplicaState.LEAVING]
        for _ in range(wanted - len(there)):
            self.add(self.now)
        doomed = sorted(there, key=lambda each: (each.state is ReplicaState.READY, -each.created, each.id))
        for engine in doomed[: max(0, len(there) - wanted)]:
            if engine.state is ReplicaState.READY:
                engine.state = ReplicaState.LEAVING
            else:
                self.engines.remove(engine)

    def samples(self) -> list[PodSample]:
        return [engine.sample(self.now) for engine in self.engines if engine.state is ReplicaState.READY]

    def replicas(self) -> tuple[Replica, ...]:
        return tuple(engine.replica() for engine in self.engines)

    def live(self) -> list[str]:
        return [engine.id for engine in self.engines if engine.state is ReplicaState.READY]

    def attained(self, since: float = 0.0, until: float = math.inf) -> float:
        """Share of the requests that arrived in a time and were answered within the limits."""
        seen = [good for at, good in self.served if since <= at - self.begin < until]
        return sum(seen) / len(seen) if seen else 1.0
