"""Where live metrics come from: one Prometheus for the whole fleet, or the pods' own pages where none is configured.

A source that fails only says nothing. What follows from that for replicas, the control law decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from plimsoll.control.joining import joined
from plimsoll.engines.command import PORT
from plimsoll.facts.engines import engine_profile
from plimsoll.facts.histograms import Histogram
from plimsoll.facts.pod_sample import PodKey, PodSample
from plimsoll.facts.serving import PodSeen
from plimsoll.prometheus.fleet import QUESTIONS_MOST, FleetMetrics
from plimsoll.prometheus.pods import Page, scrape
from plimsoll.prometheus.vocabulary import Vocabulary, vocabulary
from plimsoll.prometheus.wakes import WakeQueries, Woken
from plimsoll.reconcile.loop.subject import Subject

MOST_PAGES: Final = 500
"""Pods that are asked themselves in one tick; a larger fleet is told to use a Prometheus."""

NOBODY: Final = Woken()
WAKES: Final = "wake queries"
UNASKED: Final = "the operator's config names no Prometheus (prometheusUrl) that could be asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    samples: tuple[PodSample, ...] = ()
    """Of the pods that were asked and are alive; each sample is named by its pod's UID."""
    histograms: Mapping[PodKey, Mapping[str, Histogram]] | None = None
    """By namespace and set, where the source sums them; None where each sample has its own."""
    reachable: bool = True
    problem: str = ""
    """Why the source could not be asked, where that is known."""
    woken: Woken = NOBODY
    """What gateways say of deployments that may sleep."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why some things had no answer while others had one: by question, or by namespace/name of a pod."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One deployment, with the pods of its ready replicas that take requests."""

    subject: Subject
    leaders: tuple[PodSeen, ...] = field(default=())


class Source(Protocol):
    def wants(self, spec: Mapping[str, Any]) -> bool:
        """Whether control may look at a resource with this spec. One that it does not look at is not read at all."""
        ...

    def covers(self, subject: Subject) -> bool: ...
    async def look(self, now: float, asked: Sequence[Asked]) -> Looked: ...
    def close(self) -> None: ...


class ByPrometheus:
    def __init__(self, metrics: FleetMetrics, wakes: WakeQueries, close: Closes) -> None:
        self._metrics = metrics
        self._wakes = wakes
        self._close = close

    def wants(self, spec: Mapping[str, Any]) -> bool:  # noqa: ARG002 - all of them cost one set of questions
        return True

    def covers(self, subject: Subject) -> bool:  # noqa: ARG002
        return True

    async def look(self, now: float, asked: Sequence[Asked]) -> Looked:
        self._metrics.speaks(words_of(asked))
        read, problem = await self._metrics.look(now)
        queries = _queries(asked)
        room = QUESTIONS_MOST - read.asked
        woken = await self._wakes.look(queries, room) if queries and problem is None else NOBODY
        pods = {
            (each.subject.key.partition("/")[0], pod.name): pod.uid for each in asked for pod in each.leaders
        }
        samples = await asyncio.to_thread(joined, read.samples, pods)
        return Looked(
            samples=samples,
            histograms=read.histograms,
            reachable=problem is None,
            problem=problem or "",
            woken=woken,
            errors=_with_wakes(read.errors, woken),
        )

    def close(self) -> None:
        self._close.close()


class ByPods:
    """Looks only at deployments that ask for live scaling or retuning, since each pod takes a connection."""

    def __init__(self, *, defaults: bool) -> None:
        """`defaults`: whether the admin's config may ask for that where a resource does not."""
        self._defaults = defaults

    def wants(self, spec: Mapping[str, Any]) -> bool:
        return self._defaults or "max" in (spec.get("scaling") or {}) or bool(spec.get("tuning"))

    def covers(self, subject: Subject) -> bool:
        return subject.autoscaled or subject.tuning_asked

    async def look(self, now: float, asked: Sequence[Asked]) -> Looked:
        pods = [(each.subject, pod) for each in asked for pod in each.leaders if pod.address]
        pages = [_page(subject, pod) for subject, pod in pods]
        if len(pages) > MOST_PAGES:
            problem = (
                f"{len(pages)} pods would have to be asked, and at most {MOST_PAGES} are: set prometheusUrl"
            )
            return Looked(reachable=False, problem=problem)
        found = await scrape(pages, words_of(asked), now=now)
        keys = {pod.uid: pod_key(subject, pod) for subject, pod in pods}
        return Looked(
            samples=found.samples,
            woken=Woken(refused=dict.fromkeys(_queries(asked), UNASKED)),
            errors={keys[uid]: why for uid, why in found.errors.items()},
        )

    def close(self) -> None:
        """Nothing stays open between two looks."""


class Closes(Protocol):
    def close(self) -> None: ...


def _queries(asked: Iterable[Asked]) -> Mapping[str, str]:
    """The queries that wake sleeping deployments, by deployment."""
    sleepers = {each.subject.key: each.subject.zero for each in asked if each.subject.autoscaled}
    return {key: zero.query for key, zero in sleepers.items() if zero is not None and zero.query}


def _with_wakes(errors: Mapping[str, str], woken: Woken) -> Mapping[str, str]:
    """What had no answer, with the wake queries as one question."""
    failed = sorted(set(woken.unanswered.values()))
    return {**errors, WAKES: "; ".join(failed)} if failed else errors


def words_of(asked: Iterable[Asked]) -> Vocabulary:
    """The metric names of all engines and versions in use."""
    engines = {(each.subject.engine.name, each.subject.engine.version): each.subject.engine for each in asked}
    return vocabulary(engines[key].metrics for key in sorted(engines))


def pod_key(subject: Subject, pod: PodSeen) -> str:
    return f"{subject.key.partition('/')[0]}/{pod.name}"


def _page(subject: Subject, pod: PodSeen) -> Page:
    scheme = "https" if subject.tls else "http"
    host = f"[{pod.address}]" if ":" in pod.address else pod.address
    return Page(pod.uid, f"{scheme}://{host}:{PORT}{engine_profile(subject.engine.name).metrics_path}")
