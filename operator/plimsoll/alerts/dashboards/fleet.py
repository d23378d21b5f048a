"""The fleet in one page: who has which devices, who waits, who breaks a promise, and how the operator itself does."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.dashboards.panels import Dashboard, Line, Panel, drawn, panel, seen
from plimsoll.alerts.records import (
    FAILED,
    ITL,
    KV_USAGE,
    PREEMPTED,
    REFUSED,
    REPLICAS,
    RUNNING,
    SAME,
    SLO,
    TTFT,
    WAITING,
    Record,
)
from plimsoll.prometheus import own
from plimsoll.prometheus.own import Own

_WHO: Final = "{{llm_namespace}}/{{llm}}"
_RECORDED: Final = "{{namespace}}/{{llm}}"
_PLACELESS: Final = 'state=~"waiting_.*"'


def _by_state(state: str) -> str:
    return f"sum({drawn(REPLICAS, _one('state', state))})"


def _one(label: str, value: str) -> str:
    return f'{label}="{value}"'


def _told(metric: Own, *match: str) -> str:
    """Of the operator: two pods of it may both export for a moment, hence the maximum."""
    return f"max by ({', '.join(metric.labels)}) ({seen(metric.name, *match)})"


def _counted(metric: Own, *by: str, form: str = "rate({}[$__rate_interval])") -> str:
    """Of all pods of the operator, each once however many jobs scrape it."""
    each = ", ".join(("namespace", "pod", *metric.labels))
    return f"sum by ({', '.join(by)}) (max by ({each}) ({form.format(seen(metric.name))}))"


def _beside(title: str, what: Record, latency: str) -> Panel:
    """The worst shares of what is promised."""
    promised = drawn(SLO, _one("latency", latency))
    return panel(
        title,
        "99th percentile over spec.slo; above 100% the promise is broken.",
        Line(f"topk(10, {drawn(what)} / {SAME} {promised})", _RECORDED),
        unit="percentunit",
    )


_FREE: Final = 'state="free"'
_DEVICES: Final = (
    panel(
        "Devices by state",
        "All pools together. Others are pods that Plimsoll has not made.",
        Line(f"sum by (state) ({_told(own.POOL_DEVICES)})", "{{state}}"),
        stacked=True,
    ),
    panel(
        "Free devices by pool",
        "A replica needs its devices on one node, so that free ones may still be too scattered for it.",
        Line(f"sum by (pool) ({_told(own.POOL_DEVICES, _FREE)})", "{{pool}}"),
    ),
    panel("Devices by deployment", own.DEVICES.text, Line(f"topk(20, {_told(own.DEVICES)})", _WHO), stacked=True),
)  # fmt: skip

FLEET: Final = Dashboard(
    uid="plimsoll-fleet",
    title="Plimsoll / Fleet",
    about="All LLMDeployments and the devices that they run on.",
    choices=(),
    rows=(
        (
            "Now",
            (
                panel("Deployments", "LLMDeployments that the operator sees.", Line(f"max({seen(own.DEPLOYMENTS.name)})"), kind="stat"),
                panel("Replicas ready", "Of all deployments.", Line(_by_state("ready")), kind="stat"),
                panel("Replicas wanted", "Of all deployments.", Line(_by_state("wanted")), kind="stat"),
                panel("Waiting for a place", "Replicas that wait for GPUs, nodes or quota.", Line(f"sum({drawn(REPLICAS, _PLACELESS)})"), kind="stat"),
                panel("Failed", "Replicas whose engine waits to be started again.", Line(_by_state("failed")), kind="stat"),
                panel("Devices in use", "Of all that take pods.", Line(
                    f"1 - sum({_told(own.POOL_DEVICES, _FREE)}) / sum({_told(own.POOL_DEVICES)})"
                ), unit="percentunit", kind="stat"),
            ),
        ),
        ("Devices", _DEVICES),
        (
            "Load and promises",
            (
                panel("KV pools", "Share in use, of the fullest deployments.", Line(f"topk(10, {drawn(KV_USAGE)})", _RECORDED), unit="percentunit"),
                panel("Preemptions for each request", "Above 1% is worth a look, above 5% to act.", Line(f"topk(10, {drawn(PREEMPTED)})", _RECORDED), unit="percentunit"),
                _beside("First token beside its promise", TTFT, "ttft_p99"),
                _beside("Gap between tokens beside its promise", ITL, "itl_p99"),
            ),
        ),
        (
            "Requests",
            (
                panel("Running", "Of the busiest deployments.", Line(f"topk(10, {drawn(RUNNING)})", _RECORDED), stacked=True),
                panel("Waiting", "In front of engines.", Line(f"topk(10, {drawn(WAITING)})", _RECORDED), stacked=True),
                panel("Replicas that wait", "For GPUs, nodes or quota.", Line(
                    drawn(REPLICAS, _PLACELESS) + " > 0", "{{namespace}}/{{llm}} {{state}}"
                ), stacked=True),
            ),
        ),
        (
            "Answers",
            (
                panel("Answers that fail", "Share of the requests that came to engines: ended in an error, or refused as no more may wait.", Line(
                    f"topk(10, {drawn(FAILED)})", _RECORDED
                ), unit="percentunit"),
                panel("Refused", "In five minutes, by engines that let no more wait.", Line(f"topk(10, {drawn(REFUSED)})", _RECORDED), stacked=True),
            ),
        ),
        (
            "The operator",
            (
                panel("Turns", "Looks at a deployment each, a second.", Line(_counted(own.TURNS), "all"), Line(
                    _counted(own.TURNS_FAILED, "reason"), "failed: {{reason}}"
                ), unit="ops"),
                panel("How long turns take", "Half of them, and 99 of 100.", *(
                    Line(f"histogram_quantile({share}, sum by (le) (rate({seen(f'{own.TURN_SECONDS.name}_bucket')}[$__rate_interval])))", name)
                    for share, name in ((0.5, "p50"), (0.99, "p99"))
                ), unit="s"),
                panel("Calls to the API server", "A second, by verb.", Line(
                    _counted(own.API_CALLS, "verb"), "{{verb}}"
                ), unit="reqps", stacked=True),
                panel("Decisions", "In an hour, by what they are about.", Line(
                    _counted(own.DECISIONS, "about", "reason", form="increase({}[1h])") + " > 0", "{{about}}: {{reason}}"
                )),
            ),
        ),
    ),
)  # fmt: skip
