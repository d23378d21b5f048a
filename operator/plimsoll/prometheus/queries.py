"""The few questions of a tick, each about the whole fleet: their number does not grow with it.

Gauges and counters are asked for pod by pod and raw, so that who is alive and who began to count anew is judged in one
place, for a Prometheus as for a scrape. Histograms would be a hundred times as many rows; they are summed by serving set
over there, of the pods whose series are there now (one that drains counts with what it still answers), and take turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.facts.turns import kinds_of
from plimsoll.prometheus.vocabulary import COUNTERS, GAUGES, Vocabulary

POD: Final = "namespace, pod, uid"
"""Labels that tell a pod; a uid is not everywhere, and then empty."""
_ADDED: Final = "(?:[0-9a-z]{1,10}-[0-9a-z]{5}|[0-9]{1,3}(?:-w)?(?:-[0-9]{1,3})?)"
"""What Kubernetes adds to the name of a set's pod: a template's hash, which may itself look like ours, or numbers."""
SET_OF_POD: Final = f"(.+-[0-9a-f]{{8}})-{_ADDED}"
"""Finds the name of a pod's set in the pod's own name: it ends in the set's hash, and Kubernetes adds some more."""
LLM_OF_POD: Final = f"(.+)-[0-9a-f]{{8}}-{_ADDED}"
"""Finds the name of its deployment in the same way."""
SAME_LOOK: Final = "namespace, pod, job, instance, prometheus, prometheus_replica, replica, __replica__"
"""Labels that all series of one scrape of a pod share. Two jobs may scrape it, and so may two Prometheus servers; those of a pair differ
only in external labels, as the Prometheus operator, Thanos and Mimir name them. A label that is not there counts as empty."""
LATENCY_WINDOW: Final = "5m"


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects series by name: all selectors of all questions are made here, so that each is of this cluster alone."""

    match: Mapping[str, str] = field(default_factory=dict)
    """Labels and their values, by which a cluster is told where several are behind one address."""

    def __call__(self, names: Sequence[str], *more: str) -> str:
        name = f'__name__=~"{"|".join(names)}"' if len(names) > 1 else f'__name__="{names[0]}"'
        # What JSON escapes in a string, and how, PromQL reads as well.
        ours = (f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in self.match.items())
        return f"{{{', '.join((name, *more, *ours))}}}"


ALL_SERIES: Final = Selector()


def queries(
    words: Vocabulary,
    turn: int,
    turns: int = 1,
    again: Iterable[str] = (),
    select: Selector = ALL_SERIES,
) -> Mapping[str, str]:
    """The queries of one tick, by what each is about.

    Histograms are those of `turns` turns from `turn` on, and those in `again`, which are asked for out of turn.
    """
    running, success = words.of("running"), words.of("requestSuccess")
    # Keeps only the newest scrape of each pod, where two jobs or two Prometheus servers scrape it.
    scraped = f"timestamp({select(running)})" if running else ""
    once = f" and on ({SAME_LOOK}) topk by (namespace, pod) (1, {scraped})" if scraped else ""

    def each(how: str, labels: str, names: Sequence[str], *more: str, once: str = "") -> str:
        return f"{how} by ({labels}) ({select(names, *more)}{once})" if names else ""

    named = f"__name__, {POD}"
    asked = {
        "kv": each("avg", named, words.of("kvUsage")),
        "load": each("sum", named, words.of(*GAUGES, "kvCapacity"), once=once),
        "counters": each("sum", named, words.of(*COUNTERS), 'finished_reason!="error"', once=once),
        "errors": each("sum", named, success, 'finished_reason="error"', once=once),
        # The size of the cache that the engines of each pod report, all of them the same.
        "pools": each("count", f"{POD}, num_gpu_blocks, block_size", words.of("cacheConfig"), once=once),
        "ages": f"max by ({POD}) ({scraped})" if scraped else "",
    }
    for kind in dict.fromkeys((*kinds_of(turn, turns), *again)):
        asked[kind] = _summed(words.histogram(kind), once, select)
    return {about: query for about, query in asked.items() if query}


def _summed(names: Sequence[str], once: str, select: Selector) -> str:
    """Histograms summed by set, of the pods whose series are there now, each once."""
    if not names or not once:
        return ""
    parts = []
    for suffix in ("_bucket", "_sum"):
        # Of each pod the first name that it has: an old name beside the new one would count everything twice.
        gained = " or on (namespace, pod) ".join(
            f"increase({select([f'{name}{suffix}'])}[{LATENCY_WINDOW}])" for name in names
        )
        named = f'label_replace(({gained}){once}, "set", "$1", "pod", "{SET_OF_POD}")'
        parts.append(f"sum by (namespace, set, le) ({named})")
    return " or ".join(parts)
