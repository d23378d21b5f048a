"""The few questions of a tick, each about the whole fleet: their number does not grow with it.

Gauges and counters are asked for pod by pod and raw, so that who is alive and who began to count anew is judged in one
place, for a Prometheus as for a scrape. Histograms would be a hundred times as many rows; they are summed by serving set
over there, of the pods whose series are there now (one that drains counts with what it still answers), and take turns: a p99 of five minutes is little older for being
asked for every minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

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
TURNS: Final = (
    "ttft", "itl", "e2e",
    "ttft", "itl", "prompt_lengths",
    "ttft", "itl", "output_lengths",
)  # fmt: skip
"""Histograms take turns, one each fifteen seconds: those that latency limits are about come every three turns, the others every nine."""
TURN_S: Final = 15.0
LARGEST: Final = 12
"""The most queries of one tick."""


def queries(words: Vocabulary, turn: int, turns: int = 1, again: Iterable[str] = ()) -> Mapping[str, str]:
    """The queries of one tick, by what each is about.

    Histograms are those of `turns` turns from `turn` on: whoever looks less often asks for more at a time. Those in `again` are asked
    for out of turn.
    """
    running, success = words.of("running"), words.of("requestSuccess")
    once = _once(running)
    asked = {
        "kv": _each("avg", words.of("kvUsage")),
        "load": _each("sum", words.of(*GAUGES, "kvCapacity"), once=once),
        "counters": _each("sum", words.of(*COUNTERS), 'finished_reason!="error"', once=once),
        "errors": _each("sum", success, 'finished_reason="error"', once=once),
        "pools": _pools(words.of("cacheConfig"), once),
        "ages": f"max by ({POD}) (timestamp({_matching(running)}))" if running else "",
    }
    having = (TURNS[(turn + further) % len(TURNS)] for further in range(turns))
    for field in dict.fromkeys((*having, *again)):
        asked[field] = _summed(words.histogram(field), once)
    return {about: query for about, query in asked.items() if query}


def _matching(names: Sequence[str], *more: str) -> str:
    name = f'__name__=~"{"|".join(names)}"' if len(names) > 1 else f'__name__="{names[0]}"'
    return f"{{{', '.join((name, *more))}}}"


def _each(how: str, names: Sequence[str], *more: str, once: str = "") -> str:
    return f"{how} by (__name__, {POD}) ({_matching(names, *more)}{once})" if names else ""


def _once(running: Sequence[str]) -> str:
    """Keeps only the newest scrape of each pod, where two jobs or two Prometheus servers scrape it."""
    if not running:
        return ""
    return f" and on ({SAME_LOOK}) topk by (namespace, pod) (1, timestamp({_matching(running)}))"


def _pools(names: Sequence[str], once: str) -> str:
    """Counts the engines of each pod, by the size that they report of their cache."""
    return f"count by ({POD}, num_gpu_blocks, block_size) ({_matching(names)}{once})" if names else ""


def _summed(names: Sequence[str], once: str) -> str:
    """Histograms summed by set, of the pods whose series are there now, each once."""
    if not names or not once:
        return ""
    parts = []
    for suffix in ("_bucket", "_sum"):
        # Of each pod the first name that it has: an old name beside the new one would count everything twice.
        gained = " or on (namespace, pod) ".join(
            f"increase({name}{suffix}[{LATENCY_WINDOW}])" for name in names
        )
        named = f'label_replace(({gained}){once}, "set", "$1", "pod", "{SET_OF_POD}")'
        parts.append(f"sum by (namespace, set, le) ({named})")
    return " or ".join(parts)
