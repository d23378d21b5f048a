"""What engines and the operator export, once a resource: recorded by Prometheus, so that alerts read like sentences.

Every record has the labels `namespace` and `llm`. Engines' series are told by their pods' names, which end in the hash of a serving set, so
that it does not matter who found the pods. All names of metrics come from facts and from the operator's own table; those of every engine and
version count that facts know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.alerts.thresholds import SAMPLES
from plimsoll.facts.engines import bundled_versions, engine_facts, engine_names, engine_profile
from plimsoll.prometheus import own
from plimsoll.prometheus.own import Own
from plimsoll.prometheus.queries import LLM_OF_POD, SAME_LOOK, SET_OF_POD
from plimsoll.prometheus.vocabulary import HISTOGRAMS, vocabulary


def spoken() -> Iterator[Mapping[str, tuple[str, ...]]]:
    """The words of each engine, and of each of its versions where these are told apart: first those that most pods speak."""
    for name in sorted(engine_names(), key=lambda name: not engine_profile(name).plans):
        yield engine_profile(name).metrics
        for version in reversed(bundled_versions(name)):
            yield engine_facts(name, version).metrics


WORDS: Final = vocabulary(spoken())
WINDOW: Final = "5m"
CLUSTER: Final = "cluster"
"""Label that tells clusters apart, where what works out rules sees several. Where series have none it is empty, and changes nothing."""
LABELS: Final = (CLUSTER, "namespace", "llm")
"""Of a resource."""
SAME: Final = f"on ({', '.join(LABELS)})"
SET: Final = "set"
"""Label of records that tell the sets of a resource apart: only replicas of one have the same settings and GPUs."""
SAME_SET: Final = f"on ({', '.join((*LABELS, SET))})"
POD: Final = f"{CLUSTER}, namespace, pod"
ERROR: Final = ',finished_reason="error"'
DRAINING: Final = 'plimsoll_runtime_state{state="draining"} == 1'
"""Pods that are given nothing any more, as their supervisors say."""


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    expr: str
    dear: bool = False
    """Made of every bucket of every replica, of minutes together: worked out once in one."""
    labels: tuple[str, ...] = ()
    """Beside those of every resource."""

    def __str__(self) -> str:
        return self.name


def series(*words: str, form: Callable[[str], str] = "{}".format, suffix: str = "", match: str = "") -> str:
    """Of engines, with the label llm; where a pod exports an old name beside a new one only the new one counts."""
    ours = f'{{pod=~"{LLM_OF_POD}"{match}}}'
    *better, named = (form(f"{name}{suffix}{ours}") for name in WORDS.of(*words))
    for one in reversed(better):
        # Nested, each series is held against the others' but once: every `or` looks at all of its left side.
        named = f"{one} or on ({POD}) ({named})"
    return f'label_replace({named}, "llm", "$1", "pod", "{LLM_OF_POD}")'


def once(what: str) -> str:
    """One value a pod, of all engines in it: two jobs may scrape it, as a PodMonitor and a ServiceMonitor do, or two Prometheis, and it
    counts once."""
    return f"max by ({POD}) (sum by ({CLUSTER}, {SAME_LOOK}) ({what}))"


def each(how: str, what: str, *more: str) -> str:
    """One value a resource."""
    return f"{how} by ({', '.join((*LABELS, *more))}) ({what})"


def total(*words: str, form: Callable[[str], str] = "{}".format, suffix: str = "", match: str = "") -> str:
    """Of all replicas together."""
    return each("sum", series(*words, form=lambda text: once(form(text)), suffix=suffix, match=match))


def increase(text: str) -> str:
    return f"increase({text}[{WINDOW}])"


def increase_at_first(text: str) -> str:
    """The same of what engines tell only from the first one on: all of it came just now, where its pod was seen before without it. Whoever scrapes
    it, and under which labels, may have changed since."""
    counted = " or ".join(
        f'{name}{{pod=~"{LLM_OF_POD}"}} offset {WINDOW}' for name in WORDS.of("requestSuccess")
    )
    new = f"{text} unless on ({POD}, engine, reason) {text} offset {WINDOW}"
    return f"{new} and on ({POD}) ({counted}) or {increase(text)}"


def lately(record: Record, time: str) -> str:
    """What came in a longer time, of what came in each five minutes of it: the counters of every replica are not read again."""
    return f"sum_over_time({record}[{time}:{WINDOW}])"


def quantile(share: float, field: str) -> str:
    """Where two jobs scrape all pods each bucket is doubled, which changes no quantile: to count it once would cost as much again."""
    buckets = each(
        "sum", series(*HISTOGRAMS[field], form=lambda text: f"rate({text}[{WINDOW}])", suffix="_bucket"), "le"
    )
    return f"histogram_quantile({share:g}, {buckets})"


def promised(name: str, told: Record) -> Record:
    """A promise holds on where nobody speaks of it: as long as an hour after the operator, so that what engines tell is held against it. It is the
    one that was told last, whichever of the operator's pods that was."""
    nobody = f"unless on ({CLUSTER}) {own.LEADS.name} == 1"
    return Record(name, f"{told} or (last_over_time({told}[1h]) {nobody})", labels=told.labels)


def by_set(name: str, how: str, *words: str) -> Record:
    """One value a set, of those of its replicas that are given requests."""
    serve = f"{series(*words, form=once)} unless on ({POD}) ({DRAINING})"
    told = f'label_replace({serve}, "{SET}", "$1", "pod", "{SET_OF_POD}")'
    return Record(name, each(how, told, SET), labels=(SET,))


def ours(name: str, metric: Own, form: str = "last_over_time({}[3m])") -> Record:
    """Of the operator: two pods of it may both export for a moment, hence the maximum. Where one takes over from another there is none for a moment, which
    must end no alert and begin no waiting anew."""
    told = f'label_replace({form.format(metric.name)}, "namespace", "$1", "llm_namespace", "(.+)")'
    labels = tuple(label for label in metric.labels if label not in own.LLM)
    return Record(name, each("max", told, *labels), labels=labels)


KV_USAGE: Final = Record("llm:kv_usage:avg", each("avg", series("kvUsage")))
RUNNING: Final = Record("llm:running:sum", total("running"))
WAITING: Final = Record("llm:waiting:sum", total("waiting"))
WAITING_MOST: Final = by_set("llm:waiting:max", "max", "waiting")
WAITING_LEAST: Final = by_set("llm:waiting:min", "min", "waiting")
FINISHED: Final = Record("llm:finished:increase5m", total("requestSuccess", form=increase))
REFUSED: Final = Record("llm:refused:increase5m", total("admissionRejections", form=increase_at_first))
"""By engines that let no more wait, with a 503: what is refused is no finished request, whatever its end."""
ASKED: Final = Record("llm:asked:increase5m", f"{FINISHED} + {SAME} {REFUSED} or {FINISHED}")
"""Not every engine counts what it refuses."""
FAILURES: Final = Record(
    "llm:failed:increase5m",
    f"({total('requestSuccess', form=increase, match=ERROR)} or {FINISHED} * 0) + {SAME} ({REFUSED} or {FINISHED} * 0)",
)
FAILED: Final = Record("llm:failed:ratio5m", f"{FAILURES} / {SAME} clamp_min({ASKED}, 1)")
FAILURES_HOUR: Final = Record("llm:failed:increase1h", lately(FAILURES, "1h"))
FAILED_HOUR: Final = Record(
    "llm:failed:ratio1h", f"{FAILURES_HOUR} / {SAME} clamp_min({lately(ASKED, '1h')}, 1)"
)
PREEMPTIONS: Final = Record("llm:preemptions:increase5m", total("preemptions", form=increase))
PREEMPTED: Final = Record("llm:preempted:ratio5m", f"{PREEMPTIONS} / {SAME} clamp_min({FINISHED}, 1)")
TTFT: Final = Record("llm:ttft_seconds:p99_5m", quantile(0.99, "ttft"), dear=True)
TTFT_SAMPLES: Final = Record(
    "llm:ttft:increase5m", total(*HISTOGRAMS["ttft"], form=increase, suffix="_count")
)
TTFT_MEDIAN: Final = Record("llm:ttft_seconds:p50_5m", quantile(0.5, "ttft"), dear=True)
ITL: Final = Record("llm:itl_seconds:p99_5m", quantile(0.99, "itl"), dear=True)
ITL_MEDIAN: Final = Record("llm:itl_seconds:p50_5m", quantile(0.5, "itl"), dear=True)
PROMPT: Final = Record("llm:prompt_tokens:p95_5m", quantile(0.95, "prompt_lengths"), dear=True)
REPLICAS: Final = ours("llm:replicas:max", own.REPLICAS)
READY: Final = f'{REPLICAS}{{state="ready"}}'
SERVED_AT: Final = Record("llm:served:timestamp", each("max", f"timestamp({READY} > 0)"))
ASLEEP_AT: Final = Record(
    "llm:asleep:timestamp", each("max", f'timestamp({REPLICAS}{{state="wanted"}} == 0)')
)
SLO_TOLD: Final = ours("llm:slo_seconds_told:max", own.SLO)
SLO: Final = promised("llm:slo_seconds:max", SLO_TOLD)
AVAILABILITY_TOLD: Final = ours("llm:availability_told:max", own.AVAILABILITY)
AVAILABILITY: Final = promised("llm:availability:max", AVAILABILITY_TOLD)
PREDICTED: Final = ours("llm:predicted_seconds:max", own.PREDICTED)
PREDICTED_RUNNING: Final = ours("llm:predicted_running:max", own.PREDICTED_RUNNING)
KV_TOKENS: Final = ours("llm:kv_tokens:max", own.KV_TOKENS)
TENSOR: Final = ours("llm:tensor_parallel:max", own.TENSOR_PARALLEL)
CONDITION: Final = ours("llm:condition:max", own.CONDITION)
SCALING_LIMITED: Final = ours("llm:scaling_limited:max", own.SCALING_LIMITED)
RESTARTS: Final = ours("llm:engine_restarts:increase15m", own.RESTARTS, "increase({}[15m])")
AGAIN: Final = ours("llm:engine_restarts_again:increase15m", own.RESTARTS_AGAIN, "increase({}[15m])")
AGAIN_HOUR: Final = ours("llm:engine_restarts_again:increase1h", own.RESTARTS_AGAIN, "increase({}[1h])")

RECORDS: Final = (
    KV_USAGE, RUNNING, WAITING, WAITING_MOST, WAITING_LEAST, FINISHED, REFUSED, ASKED, FAILURES, FAILED, FAILURES_HOUR, FAILED_HOUR, PREEMPTIONS, PREEMPTED, TTFT, TTFT_MEDIAN,
    TTFT_SAMPLES, ITL, ITL_MEDIAN, PROMPT, REPLICAS, SERVED_AT, ASLEEP_AT, SLO_TOLD, SLO, AVAILABILITY_TOLD, AVAILABILITY, PREDICTED, PREDICTED_RUNNING, KV_TOKENS, TENSOR, CONDITION, SCALING_LIMITED, RESTARTS, AGAIN, AGAIN_HOUR,
)  # fmt: skip
"""In the order in which they are computed: one may use those before it."""

ENOUGH: Final = f"and {SAME} {TTFT_SAMPLES} >= {SAMPLES}"
"""Narrows an alert about a percentile to resources with enough requests to have one."""
