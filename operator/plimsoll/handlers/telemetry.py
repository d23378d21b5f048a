"""What the operator's own metrics tell of its work and of each deployment, from what the process counts anyway.

Samples are made while the page is written, since there is one for each figure of each of ten thousand deployments.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from plimsoll import __version__
from plimsoll.facts.inventory import Inventory
from plimsoll.handlers.admission import Counts as Reviews
from plimsoll.handlers.health import Metric
from plimsoll.handlers.wakes import LONGER, Counts
from plimsoll.prometheus import own
from plimsoll.prometheus.own import Own
from plimsoll.reconcile.books import Books, Figures
from plimsoll.reconcile.controlling import Control

Sample = tuple[tuple[str, ...], float]
"""Values of the metric's labels, in their order, and the figure."""
PAGE_BYTES: Final = resource.getpagesize()


def metric(told: Own, samples: Iterable[Sample]) -> Metric:
    """As the table has it."""
    return Metric(told.name, told.kind, told.text, ((_labels(told, values), one) for values, one in samples))


def single(told: Own, value: float) -> Metric:
    return Metric(told.name, told.kind, told.text, (("", value),))


def process() -> Iterator[Metric]:
    """Of this process, whether it acts or waits."""
    yield metric(own.INFO, [((__version__,), 1)])
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield single(own.CPU_SECONDS, used.ru_utime + used.ru_stime)
    statm = Path("/proc/self/statm")
    if statm.exists():  # where the system does not tell it, it is not known
        yield single(own.MEMORY, int(statm.read_text().split()[1]) * PAGE_BYTES)


def turns(counts: Counts, *, waiting: int) -> Iterator[Metric]:
    yield single(own.TURNS, counts.turns)
    yield single(own.TURNS_WAITING, waiting)
    yield single(own.TURNS_RUNNING, len(counts.running))
    yield metric(own.TURNS_FAILED, (((reason,), count) for reason, count in sorted(counts.failures.items())))
    yield Metric(own.TURN_SECONDS.name, "histogram", own.TURN_SECONDS.text, _buckets(counts))


def _buckets(counts: Counts) -> Iterator[tuple[str, float]]:
    below = 0
    for bound, count in zip((*(f"{bound:g}" for bound in LONGER), "+Inf"), counts.took, strict=True):
        below += count
        yield f'_bucket{{le="{bound}"}}', below
    yield "_sum", counts.seconds
    yield "_count", below


def reviews(counts: Reviews, *, listens: bool) -> Iterator[Metric]:
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
    """Of what turns have decided and seen."""
    yield metric(own.PLANS, sorted(books.plans.items()))
    yield metric(own.DECISIONS, sorted(books.decisions.items()))
    listed = [(tuple(key.split("/", 1)), figures) for key, figures in books]
    yield metric(own.REPLICAS, _by_word(listed, "replicas"))
    yield metric(own.DEVICES, ((who, one.devices) for who, one in listed if one.devices is not None))
    yield metric(own.SLO, _by_word(listed, "slo"))
    promised = ((who, one.availability) for who, one in listed if one.availability is not None)
    yield metric(own.AVAILABILITY, promised)
    yield metric(own.PREDICTED, _by_word(listed, "predicted"))
    yield metric(own.KV_TOKENS, _by_word(listed, "kv_tokens"))
    yield metric(
        own.TENSOR_PARALLEL, (((*who, f.link), f.tensor) for who, f in listed if f.tensor is not None)
    )
    yield metric(own.CONDITION, _by_word(listed, "conditions"))
    yield metric(own.RESTARTS, ((who, one.restarts) for who, one in listed))


def _by_word(listed: Iterable[tuple[tuple[str, ...], Figures]], name: str) -> Iterator[Sample]:
    for who, figures in listed:
        for word, value in getattr(figures, name):
            yield (*who, word), value


def _labels(told: Own, values: tuple[str, ...]) -> str:
    pairs = zip(told.labels, values, strict=True)
    return ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
