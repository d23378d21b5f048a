"""A fleet that is played: thousands of deployments that were planned and serve, and a Prometheus of another process that has its
answers about them ready.

What is played is what the loop stands on (resources, pinned plans, pods that were seen, answers of a Prometheus); all that a
tick does with it is the operator's own.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any, Final, cast
from urllib.parse import parse_qs

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.gpus import gpu_named
from plimsoll.facts.inventory import Inventory, Pool
from plimsoll.facts.models import lookup
from plimsoll.facts.resolve import Resolver
from plimsoll.facts.serving import PodSeen, Serving, SetSeen, Stage
from plimsoll.kube.child import Child
from plimsoll.objects import Ref
from plimsoll.planning.plan import Plan
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.prometheus.queries import queries
from plimsoll.prometheus.vocabulary import HISTOGRAMS, Vocabulary, vocabulary
from plimsoll.prometheus.wakes import TOGETHER
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.loop.subject import subject_of
from plimsoll.reconcile.models import Models
from plimsoll.reconcile.resources import Resources
from plimsoll.reconcile.world import Cluster, World
from plimsoll.render.shared import plan_ref
from plimsoll.status.told import News

REPLICAS: Final = 2
NOW: Final = 1_800_000_000.0
TICK_S: Final = 15.0
SPACES: Final = 50
SLEEPS: Final = 100
"""One of so many may sleep, and is woken by a query of its own."""
BUCKETS: Final = tuple(str(0.001 * 2**power) for power in range(22))
MOVING: Final = frozenset({"ages", "counters"})
"""Questions that each tick has another answer."""
TURNS: Final = 9
"""After so many ticks every question has been asked."""
COUNTED: Final = (
    "preemptions",
    "requestSuccess",
    "promptTokens",
    "generationTokens",
    "prefixQueries",
    "prefixHits",
)
SPEC: Final[Mapping[str, Any]] = {
    "model": {"source": "meta-llama/Llama-3.1-8B-Instruct"},
    "scaling": {"min": 1, "max": 8},
    "tuning": {"mode": "auto"},
    "slo": {"ttftP99Ms": 2000, "itlP99Ms": 100},
}


Pods = Sequence[tuple[str, str, tuple[str, ...]]]
"""Namespace, set and pods of each deployment."""


@dataclass
class PlayedCluster:
    """What the operator sees of all deployments; nothing in it changes but what is told to it."""

    fleet: Inventory
    plans: dict[str, Mapping[str, str]] = field(default_factory=dict)
    there: dict[str, dict[Ref, Child]] = field(default_factory=dict)
    serves: dict[str, Serving] = field(default_factory=dict)
    told: int = 0

    def children(self, key: str) -> Mapping[Ref, Child]:
        return self.there[key]

    async def read(self, ref: Ref) -> Mapping[str, Any]:
        data = self.plans[f"{ref.namespace}/{ref.name}"]
        return {"data": data, "metadata": {"uid": "u", "resourceVersion": "1"}}

    def serving(self, key: str, *_: object) -> Serving:
        return self.serves[key]

    def inventory(self, *_: object) -> Inventory:
        return self.fleet

    def announce(self, _: object, news: Iterable[News]) -> None:
        self.told += len(tuple(news))


@dataclass
class Estate:
    """All deployments, and a clock that only `passed` moves."""

    world: World
    cluster: PlayedCluster
    words: Vocabulary
    pods: Pods
    clock: list[float]

    def passed(self) -> None:
        self.clock[0] += TICK_S

    def turned(self, woken: list[str]) -> None:
        """Turns of theirs are over, and have done what control said."""
        for key in woken:
            self.world.directed[key] = self.world.directions[key]
        woken.clear()

    @classmethod
    def of(cls, size: int) -> Estate:
        clock = [NOW]
        fleet, config = _inventory(REPLICAS * size), OperatorConfig()
        cluster, resources = PlayedCluster(fleet), Resources()
        made = _plan(fleet, config)
        data = {**Kept(plan=made).beside(), names.PLAN_KEY: made.to_bytes().decode()}
        pods = []
        for number in range(size):
            key, name = _put(resources, number, made, config)
            space = key.partition("/")[0]
            ref = plan_ref(space, f"chat-{number}")
            cluster.plans[f"{space}/{ref.name}"] = data
            cluster.there[key] = {ref: _child(ref, key)}
            cluster.serves[key] = Serving(sets=(_seen(name),))
            pods.append((space, name, tuple(pod.name for pod in cluster.serves[key].sets[0].pods)))
        world = World(
            cluster=cast(Cluster, cluster),
            resources=resources,
            models=Models(Resolver(), lambda: clock[0]),
            now=lambda: clock[0],
            config=config,
        )
        words = vocabulary([engine_facts(made.engine, made.engine_version).metrics])
        return cls(world=world, cluster=cluster, words=words, pods=tuple(pods), clock=clock)


def _inventory(gpus: int) -> Inventory:
    gpu = gpu_named("H100-SXM-80GB")
    pool = Pool(
        key="h100",
        gpu=gpu,
        memory_bytes=gpu.memory_bytes,
        resource="nvidia.com/gpu",
        devices_per_node=8,
        free={8: gpus // 8 + 1},
        labels={"nvidia.com/gpu.product": gpu.name},
    )
    return Inventory(pools=(pool,))


def _body(number: int) -> dict[str, Any]:
    spec = dict(SPEC)
    if number % SLEEPS == SLEEPS - 1:
        query = f'sum(gateway_queue{{llm="chat-{number}"}})'
        spec["scaling"] = {"min": 0, "max": 8, "zero": {"wake": {"query": query}}}
    metadata = {
        "name": f"chat-{number}",
        "namespace": f"team-{number % SPACES}",
        "uid": f"o-{number}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "1",
    }
    return {"metadata": metadata, "spec": spec}


def _plan(fleet: Inventory, config: OperatorConfig) -> Plan:
    asked = LLMDeployment.model_validate(_body(1))
    found = plan(asked, fleet, PlanFacts(model=lookup(asked.spec.model.source)), config=config)
    return replace(found, sets=tuple(replace(one, replicas=REPLICAS) for one in found.sets))


def _put(resources: Resources, number: int, made: Plan, config: OperatorConfig) -> tuple[str, str]:
    """Its key, and the name of its serving set."""
    body = _body(number)
    subject = subject_of(LLMDeployment.observed(body), Kept(plan=made), config, {})
    if subject is None:
        raise ValueError("nothing was planned")
    resources.put(subject.key, body)
    return subject.key, subject.sets[0].name


def _child(ref: Ref, key: str) -> Child:
    return Child(
        ref=ref, owner=key, uid="u", version="1", owner_uid="", holder="", hash="", mark=0, clean=True,
        leaving=False, created=NOW - 9000, set="", failed="", workload=None,
    )  # fmt: skip


def _seen(name: str) -> SetSeen:
    began = NOW - 9000
    pods = tuple(
        PodSeen(
            name=f"{name}-7d9f8c6b5-{place:05d}", uid=f"{name}-{place}", stage=Stage.READY, node="n", address="10.0.0.1",
            created=began - 200, scheduled=began - 200, since=began,
        )
        for place in range(REPLICAS)
    )  # fmt: skip
    return SetSeen(name=name, replicas=REPLICAS, pods=pods)


@dataclass(frozen=True, slots=True)
class PlayedPrometheus:
    url: str
    _pipe: Connection

    def asked(self) -> int:
        """Questions since this was asked last."""
        self._pipe.send(None)
        count: int = self._pipe.recv()
        return count


@contextmanager
def played(estate: Estate, ticks: int) -> Iterator[PlayedPrometheus]:
    """Ready for so many ticks."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_play, args=(estate.words, estate.pods, ticks, there), daemon=True)
    process.start()
    try:
        yield PlayedPrometheus(f"http://127.0.0.1:{here.recv()}", here)
    finally:
        process.terminate()
        process.join()


@dataclass
class Answers:
    """What a Prometheus would say to each question, as it writes it."""

    words: Vocabulary
    pods: Pods
    asked: list[str] = field(default_factory=list)
    """What each question was about."""
    _texts: dict[str, str] = field(init=False)
    _ready: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._texts = {
            text: about for tick in range(TURNS) for about, text in queries(self.words, tick).items()
        }

    def prepare(self, ticks: int) -> None:
        for about in self._texts.values():
            for tick in range(ticks if about in MOVING else 1):
                self._of(about, tick)

    def to(self, text: str) -> bytes:
        about = self._texts.get(text, TOGETHER)
        tick = self.asked.count(about) if about in MOVING else 0
        self.asked.append(about)
        return self._of(about, tick)

    def _of(self, about: str, tick: int) -> bytes:
        found = self._ready.get((about, tick))
        if found is None:
            found = self._ready[about, tick] = encoded(about, self.words, self.pods, tick)
        return found


def _play(words: Vocabulary, pods: Pods, ticks: int, pipe: Connection) -> None:
    """Until it is ended: answers questions, and says how many there were whenever it is asked."""
    answers = Answers(words, pods)
    answers.prepare(ticks)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answers.to))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.server_address[1])
    counted = 0
    while True:
        pipe.recv()
        counted, before = len(answers.asked), counted
        pipe.send(counted - before)


def _handler(answer: Callable[[str], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            data = answer(parse_qs(form)["query"][0])
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            del args

    return Handler


def encoded(about: str, words: Vocabulary, pods: Pods, tick: int) -> bytes:
    """An answer as a Prometheus writes it."""
    rows = [
        {"metric": labels, "value": [NOW, value]}
        for number, each in enumerate(pods)
        for labels, value in _rows(about, words, number, each, tick)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


def _rows(
    about: str, words: Vocabulary, number: int, each: tuple[str, str, tuple[str, ...]], tick: int
) -> Iterator[tuple[dict[str, str], str]]:
    space, name, pods = each
    if about in HISTOGRAMS:
        labels = {"namespace": space, "set": name}
        for place, bound in enumerate((*BUCKETS, "+Inf")):
            yield {**labels, "le": bound}, str(13.5 * place + number % 7)
        yield labels, "512.25"
        return
    if about == TOGETHER:
        if number % SLEEPS == SLEEPS - 1:
            yield {"plimsoll_deployment": f"{space}/chat-{number}"}, str(number % 3)
        return
    for one in pods:
        pod = {"namespace": space, "pod": one}
        match about:
            case "ages":
                yield pod, str(NOW + TICK_S * (tick + 1))
            case "pools":
                yield {**pod, "num_gpu_blocks": "12500", "block_size": "16"}, "1"
            case "kv":
                yield from (({"__name__": said, **pod}, "0.45") for said in words.of("kvUsage"))
            case _:
                listed = {"load": ("running", "waiting"), "errors": ("requestSuccess",), "counters": COUNTED}
                for said in words.of(*listed[about]):
                    value = number % 40 if about == "load" else number % 40 + 500 * tick
                    yield {"__name__": said, **pod}, str(value)
