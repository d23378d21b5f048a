"""The operator's own metrics on its work and on each deployment, made from what the process counts anyway.

Samples are generated while the page is written, since there may be ten thousand deployments with several figures each.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from plimsoll import __version__
from plimsoll.facts.inventory import Inventory
from plimsoll.handlers.admission import ReviewCounts
from plimsoll.handlers.health import Metric
from plimsoll.handlers.wakes import FAILURES, LONGER, TurnCounts
from plimsoll.prometheus import own
from plimsoll.prometheus.own import Own
from plimsoll.reconcile.books import TOLD, Books, Figures
from plimsoll.reconcile.loop.controlling import Control

Sample = tuple[tuple[str, ...], float]
"""Values of the metric's labels, in their order, and the sample's value."""
PAGE_BYTES: Final = resource.getpagesize()


def metric(told: Own, samples: Iterable[Sample]) -> Metric:
    """A metric of the table with its samples."""
    return Metric(
        told.name, told.kind, told.text, ((_labels(told.labels, values), one) for values, one in samples)
    )


def single(told: Own, value: float) -> Metric:
    return Metric(told.name, told.kind, told.text, (("", value),))


def process() -> Iterator[Metric]:
    """Metrics of this process, whether it leads or waits."""
    yield metric(own.INFO, [((__version__,), 1)])
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield single(own.CPU_SECONDS, used.ru_utime + used.ru_stime)
    statm = Path("/proc/self/statm")
    if statm.exists():  # where the system does not tell it, it is not known
        yield single(own.MEMORY, int(statm.read_text().split()[1]) * PAGE_BYTES)


def turns(counts: TurnCounts, *, waiting: int) -> Iterator[Metric]:
    yield single(own.TURNS, counts.turns)
    yield single(own.TURNS_WAITING, waiting)
    yield single(own.TURNS_RUNNING, len(counts.running))
    failures = {**dict.fromkeys(FAILURES, 0), **counts.failures}
    yield metric(own.TURNS_FAILED, (((reason,), count) for reason, count in sorted(failures.items())))
    yield Metric(own.TURN_SECONDS.name, "histogram", own.TURN_SECONDS.text, _buckets(counts))


def _buckets(counts: TurnCounts) -> Iterator[tuple[str, float]]:
    below = 0
    for bound, count in zip((*(f"{bound:g}" for bound in LONGER), "+Inf"), counts.took, strict=True):
        below += count
        yield f'_bucket{{le="{bound}"}}', below
    yield "_sum", counts.seconds
    yield "_count", below


def reviews(counts: ReviewCounts, *, listens: bool) -> Iterator[Metric]:
    yield single(own.ADMISSION_LISTENS, float(listens))
    yield metric(own.ADMISSION_REVIEWS, (((answer,), n) for answer, n in sorted(counts.answers.items())))
    yield single(own.ADMISSION_SECONDS, counts.seconds)


def control(loop: Control) -> Iterator[Metric]:
    yield single(own.CONTROL_TICKS, loop.ticks)
    yield single(own.CONTROL_SECONDS, loop.seconds)
    yield single(own.METRICS_REACHABLE, float(loop.reachable))


def alerts(results: Mapping[str, int]) -> Metric:
    return metric(own.ALERTS_RECEIVED, (((result,), count) for result, count in sorted(results.items())))


def calls(count: Mapping[tuple[str, str, str], int]) -> Iterator[Metric]:
    yield metric(own.API_CALLS, sorted(count.items()))


def fleet(inventory: Inventory) -> Iterator[Metric]:
    yield metric(own.POOL_DEVICES, _pools(inventory))


def _pools(inventory: Inventory) -> Iterator[Sample]:
    for pool in inventory.pools:
        held = sum(pool.held.values())
        others = pool.nodes * pool.devices_per_node - pool.free_devices - held
        for state, count in (("free", pool.free_devices), ("held", held), ("others", max(0, others))):
            yield (pool.key, pool.gpu.name, state), count


def deployments(books: Books) -> Iterator[Metric]:
    """Metrics of what turns have decided and seen."""
    yield metric(own.PLANS, sorted(books.plans.items()))
    yield metric(own.DECISIONS, sorted({**dict.fromkeys(TOLD, 0), **books.decisions}.items()))
    listed = _Listed(books)
    yield _by_word(own.REPLICAS, listed, lambda one: one.replicas)
    yield _single(own.DEVICES, listed, lambda one: one.devices)
    yield _by_word(own.SLO, listed, lambda one: one.slo)
    yield _single(own.AVAILABILITY, listed, lambda one: one.availability)
    yield _by_word(own.PREDICTED, listed, lambda one: one.predicted)
    yield _single(own.PREDICTED_RUNNING, listed, lambda one: one.predicted_running)
    yield _by_word(own.KV_TOKENS, listed, lambda one: one.kv_tokens)
    yield _by_word(
        own.TENSOR_PARALLEL, listed, lambda one: () if one.tensor is None else ((one.link, one.tensor),)
    )
    yield _by_word(own.CONDITION, listed, lambda one: one.conditions)
    yield _by_word(own.SCALING_LIMITED, listed, lambda one: ((why, 1) for why in one.limited))
    yield _single(own.RESTARTS, listed, lambda one: one.restarts)
    yield _single(own.RESTARTS_AGAIN, listed, lambda one: one.again)


class _Listed:
    """Deployments with their labels as text. The text is made once for a page and not for each figure, as deployments are nearly all of its
    lines, and not at all where none of their metrics is asked for."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def __iter__(self) -> Iterator[tuple[str, Figures]]:
        yield from self._written

    @cached_property
    def _written(self) -> list[tuple[str, Figures]]:
        return [(_labels(own.LLM, key.split("/", 1)), figures) for key, figures in self._books]


def _by_word(
    told: Own, listed: _Listed, figures_of: Callable[[Figures], Iterable[tuple[str, float]]]
) -> Metric:
    """A metric with a sample for each deployment and each value of the last label."""
    label = told.labels[-1]
    samples = (
        (f'{who},{label}="{_escaped(word)}"', value)
        for who, figures in listed
        for word, value in figures_of(figures)
    )
    return Metric(told.name, told.kind, told.text, samples)


def _single(told: Own, listed: _Listed, figure_of: Callable[[Figures], float | None]) -> Metric:
    """A metric with a sample for each deployment whose figure is known."""
    samples = ((who, value) for who, figures in listed if (value := figure_of(figures)) is not None)
    return Metric(told.name, told.kind, told.text, samples)


def _labels(names: Iterable[str], values: Iterable[str]) -> str:
    pairs = zip(names, values, strict=True)
    return ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)


@lru_cache(1024)
def _escaped(text: str) -> str:
    """A label's value, escaped. Results are kept, as nearly all values are one of a few words."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
