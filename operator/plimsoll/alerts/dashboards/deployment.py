"""One deployment in one page: its replicas, its memory, its latency beside the promise, and what its engines do."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.dashboards.panels import Choice, Dashboard, Line, Panel, drawn, panel, seen
from plimsoll.alerts.records import (
    FAILED,
    FAILURES,
    FINISHED,
    ITL,
    ITL_MEDIAN,
    KV_TOKENS,
    POD,
    PREDICTED,
    PREEMPTED,
    PROMPT,
    REFUSED,
    REPLICAS,
    RUNNING,
    SLO,
    TTFT,
    WAITING,
    WORDS,
    Record,
    once,
)
from plimsoll.prometheus import own
from plimsoll.prometheus.queries import LLM_OF_POD
from plimsoll.prometheus.vocabulary import SHARES

_RECORDED: Final = 'namespace="$namespace",llm="$llm"'
_IN: Final = 'llm_namespace="$namespace"'
_OWN: Final = f'{_IN},llm="$llm"'
_PODS: Final = f'namespace="$namespace",pod=~"{LLM_OF_POD.replace("(.+)", "$llm")}"'


def of(record: Record, *more: str) -> str:
    return drawn(record, _RECORDED, *more)


def engine(word: str, form: str = "{}") -> str:
    """By pod, of all engines in it; where one exports an old name beside a new one the new one counts."""
    parts = (form.format(seen(name, _PODS)) for name in WORDS.of(word))
    how = f"avg by ({POD}) ({{}})".format if word in SHARES else once
    return f" or on ({POD}) ".join(map(how, parts))


def a_second(word: str) -> str:
    return engine(word, "rate({}[$__rate_interval])")


def _latency(title: str, about: str, latency: str, *lines: Line) -> Panel:
    word = f'latency="{latency}"'
    return panel(
        title,
        about,
        *lines,
        Line(of(SLO, word), "promised"),
        Line(of(PREDICTED, word), "predicted"),
        unit="s",
    )


DEPLOYMENT: Final = Dashboard(
    uid="plimsoll-deployment",
    title="Plimsoll / Deployment",
    about="One LLMDeployment: replicas, memory, latency beside its promise, and its engines.",
    choices=(
        Choice(name="namespace", label="Namespace", query=f"label_values({seen(own.REPLICAS.name)}, llm_namespace)"),
        Choice(name="llm", label="Deployment", query=f"label_values({seen(own.REPLICAS.name, _IN)}, llm)"),
    ),
    links=(("Fleet", "/d/plimsoll-fleet"),),
    rows=(
        (
            "Now",
            (
                panel("Replicas ready", "That answer.", Line(of(REPLICAS, 'state="ready"')), kind="stat"),
                panel("Replicas wanted", "By the user or by Plimsoll.", Line(of(REPLICAS, 'state="wanted"')), kind="stat"),
                panel("KV pool", "Share in use, mean of the replicas.", Line(f"avg({engine('kvUsage')})"), unit="percentunit", kind="stat"),
                panel("Preemptions for each request", "Above 1% is worth a look, above 5% to act.", Line(of(PREEMPTED)), unit="percentunit", kind="stat"),
                panel("Restarts in an hour", "Of engines.", Line(f"round(max(increase({seen(own.RESTARTS.name, _OWN)}[1h])))"), kind="stat"),
                panel("Answers that fail", "Share of the requests that came to engines: ended in an error, or refused as no more may wait.", Line(of(FAILED)), unit="percentunit", kind="stat"),
            ),
        ),
        (
            "Latency",
            (
                _latency("First token", "99 of 100 requests have it by then.", "ttft_p99", Line(of(TTFT), "p99")),
                _latency("Gap between tokens", "99 of 100, and half of them.", "itl_p99", Line(of(ITL), "p99"), Line(of(ITL_MEDIAN), "p50")),
            ),
        ),
        (
            "Replicas",
            (
                panel("Replicas", "By state.", Line(of(REPLICAS, 'state!="wanted"') + " > 0", "{{state}}"), Line(of(REPLICAS, 'state="wanted"'), "wanted")),
                panel("Conditions that hold", "1 while they do.", Line(f"max by (type) ({seen(own.CONDITION.name, _OWN)}) > 0", "{{type}}")),
                panel("KV pool of a replica", "Tokens that the plan predicted, and that the engine measured.", Line(of(KV_TOKENS), "{{source}}")),
            ),
        ),
        (
            "Memory",
            (
                panel("KV pool by replica", "One full among empty ones is a matter of routing.", Line(engine("kvUsage"), "{{pod}}"), unit="percentunit"),
                panel("Preemptions by replica", "A second.", Line(a_second("preemptions"), "{{pod}}"), unit="ops"),
                panel("Prefixes found", "Share of prompt tokens in the prefix cache.", Line(
                    f"({a_second('prefixHits')}) / on ({POD}) ({a_second('prefixQueries')})", "{{pod}}"
                ), unit="percentunit"),
            ),
        ),
        (
            "Requests",
            (
                panel("In flight", "Of all replicas.", Line(of(RUNNING), "running"), Line(of(WAITING), "waiting"), stacked=True),
                panel("Answered", "In five minutes; failed are those that were refused, too.", Line(of(FINISHED), "finished"), Line(of(FAILURES), "failed"), Line(of(REFUSED), "refused")),
                panel("Prompts", "95 of 100 are at most so long, in tokens.", Line(of(PROMPT), "p95")),
                panel("Tokens", "A second, by replica.", Line(a_second("generationTokens"), "{{pod}}"), unit="suffix:tokens/s", stacked=True),
            ),
        ),
    ),
)  # fmt: skip
