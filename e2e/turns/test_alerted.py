"""From an engine's metrics to a look at its deployment, and to what the look decides: a real Prometheus with the shipped rules, a real
Alertmanager, the operator's webhook."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from cluster.metrics import MetricsServer, Prometheus, Target
from common import eventually
from hearing import hearing, shipped
from plimsoll import names
from turns.own_pages import FULL, SCALED, near
from turns.running import Desk, Operator

SELDOM_S = 120
RETUNED_SELDOM_S = 60
"""Alerts are looked at a fifth of it apart, and a retune takes several such looks."""
AGAIN_S = 11
ALERTS = 4
TICKS = "plimsoll_control_ticks_total"


def results(operator: Operator) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{operator.port}/metrics", timeout=30) as answer:
        page = answer.read().decode()
    found = re.findall(r'^plimsoll_alerts_received_total\{result="(\w+)"\} (\d+)$', page, re.MULTILINE)
    return {result: int(count) for result, count in found}


def test_an_alert_of_a_full_pool_makes_the_operator_look_at_that_deployment(
    place: Desk, tmp_path: Path
) -> None:
    hears, webhook = hearing(tmp_path)
    with (
        Operator(place.cluster, tmp_path, args=("--standalone", *hears)) as operator,
        MetricsServer() as server,
    ):
        place.apply()
        assert place.says("Ready", "True", "Serving")
        (pod,) = place.pods()
        page = server.page("engine")
        page.set("vllm:kv_cache_usage_perc", 0.4)
        page.set("vllm:num_requests_running", 1)
        own = Target(address=f"127.0.0.1:{operator.port}")
        scraped = [page.pod(place.namespace, pod["metadata"]["name"]), own]
        with Prometheus(targets=scraped, rules={"plimsoll": shipped()}, webhook=webhook) as prometheus:
            prometheus.wait_for("llm:kv_usage:avg == 0.4")
            prometheus.wait_for('llm:replicas:max{state="ready"} == 1')
            assert operator.rests()
            turns, woke = operator.metric("plimsoll_turns_total"), results(operator).get("woke", 0)
            page.set("vllm:kv_cache_usage_perc", 0.9)
            assert eventually(lambda: results(operator).get("woke", 0) > woke)
            assert eventually(lambda: operator.metric("plimsoll_turns_total") > turns)
            (alert,) = (
                one for one in prometheus.alerts() if one["labels"]["alertname"] == "PlimsollKVPressure"
            )
            assert alert["labels"].items() >= {"namespace": place.namespace, "llm": "chat"}.items()
            assert "90% of the KV pool" in alert["annotations"]["description"]
            page.set("vllm:kv_cache_usage_perc", 0.4)
            assert eventually(lambda: results(operator).get("resolved", 0) >= 1)
            prometheus.raise_alerts(
                [{"labels": {"alertname": "Other", "namespace": place.namespace, "llm": "none"}}]
            )
            assert eventually(lambda: results(operator).get("unknown", 0) >= 1)


def test_an_alert_brings_the_next_look_at_metrics_and_what_it_finds_is_done(
    place: Desk, tmp_path: Path
) -> None:
    hears, webhook = hearing(tmp_path)
    file = tmp_path / "admin.json"
    said = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND}
    # Longer than anybody waits here: whatever is seen to be done was looked at because somebody alerted.
    file.write_text(json.dumps({**said, "control": {"intervalSeconds": SELDOM_S}}))
    told = ("--standalone", f"--config={file}", "--log-level=debug", *hears)

    def alerting(name: str) -> Iterator[None]:
        """Each is one that was not heard before. One is enough where the machine does not rest while the operator looks."""
        for number in range(ALERTS):
            labels = {"alertname": f"{name}{number}", "namespace": place.namespace, "llm": "chat"}
            alertmanager.raise_alerts([{"labels": labels}])
            yield

    with (
        near(place) as (traffic, _),
        Operator(place.cluster, tmp_path, args=told) as operator,
        Prometheus(webhook=webhook) as alertmanager,
    ):
        traffic.inflight = FULL
        place.apply(**SCALED)
        assert place.says("Ready", "True", "Serving")
        # The first look finds samples, the next one what came since: from two of them a load is known.
        assert any(place.says("MetricsAvailable", "True", "Fresh") for _ in alerting("Queue"))
        assert any(eventually(lambda: sum(place.deployments().values()) == 4) for _ in alerting("Full"))
        assert eventually(lambda: bool(place.get()["status"].get("scalingHistory")))
        assert eventually(lambda: results(operator).get("woke", 0) >= 2)


def test_an_alert_that_is_repeated_while_it_fires_begins_a_retune_which_nothing_else_does(
    place: Desk, tmp_path: Path
) -> None:
    hears, webhook = hearing(tmp_path, again_s=AGAIN_S)
    file = tmp_path / "admin.json"
    said = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND}
    quick = {"canarySeconds": 2, "canaryRequests": 200, "canaryLimitSeconds": 600}
    file.write_text(json.dumps({**said, "control": {"intervalSeconds": RETUNED_SELDOM_S}, "restarts": quick}))
    told = ("--standalone", f"--config={file}", "--log-level=debug", *hears)

    def step() -> str:
        return str(place.get()["status"].get("tuning", {}).get("state", ""))

    with near(place) as (traffic, _), Operator(place.cluster, tmp_path, args=told) as operator:
        traffic.each, traffic.seconds = 60.0, 0.5
        traffic.preempted = lambda pod: 0.3  # noqa: ARG005
        # The spec says what stands before any retune, and the mode is what it is where nothing is said.
        place.apply(**{**SCALED, "scaling": {}, "replicas": 2, "tuning": {"allow": ["maxSequences"]}})
        assert place.says("Ready", "True", "Serving")
        (served,) = place.deployments()
        assert operator.rests()
        assert (place.deployments(), step()) == ({served: 2}, ""), "nobody has looked at what it preempts"
        looks = operator.metric(TICKS)
        with place.cluster.prometheus(
            namespaces=[place.namespace],
            selector=f"{names.LABEL_LEADER}=true",
            port="http",
            rules={"plimsoll": shipped()},
            webhook=webhook,
        ) as prometheus:
            # A load is known from two looks, must last until a third, and at a fourth what was written down is begun.
            assert eventually(lambda: step() in {"Canary", "Judging"}), operator.tail()
            heard = results(operator)
            firing = {one["labels"]["alertname"] for one in prometheus.alerts() if one["state"] == "firing"}
        assert eventually(lambda: sum(place.deployments().values()) == 3)
        assert place.deployments()[served] == 2, "the canary comes beside those that serve"
        assert "PlimsollPreemption" in firing
        assert operator.metric(TICKS) - looks <= heard["woke"], "each look was asked for"
        (planned,) = (one for one in place.items("v1/events") if one["reason"] == "RetunePlanned")
        assert "30% of requests are preempted" in planned["message"]
