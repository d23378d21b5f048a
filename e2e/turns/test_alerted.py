"""From an engine's metrics to a look at its deployment: a real Prometheus with the shipped rules, a real Alertmanager, the operator's webhook."""

from __future__ import annotations

import re
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import yaml

from cluster.metrics import MetricsServer, Prometheus, Target, Webhook
from cluster.processes import free_port
from common import ROOT, eventually
from plimsoll.kube.certificates import made
from turns.running import Desk, Operator

RULES = ROOT / "charts" / "plimsoll" / "files" / "rules.yaml"
TOKEN = "a-token-of-some-length"


def at_once() -> dict[str, object]:
    """The shipped rules, which fire as soon as they hold."""
    rules: dict[str, object] = yaml.safe_load(
        re.sub(r"^( *)for: .*$", r"\1for: 0s", RULES.read_text(), flags=re.MULTILINE)
    )
    return rules


def results(operator: Operator) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{operator.port}/metrics", timeout=30) as answer:
        page = answer.read().decode()
    found = re.findall(r'^plimsoll_alerts_received_total\{result="(\w+)"\} (\d+)$', page, re.MULTILINE)
    return {result: int(count) for result, count in found}


def test_an_alert_of_a_full_pool_makes_the_operator_look_at_that_deployment(
    place: Desk, tmp_path: Path
) -> None:
    pair, authority = made(["127.0.0.1"], datetime.now(UTC))  # noqa: TID251 - the handshake looks at the clock
    for name, text in {
        "tls.crt": pair.certificate,
        "tls.key": pair.key,
        "ca.crt": authority,
        "token": TOKEN,
    }.items():
        (tmp_path / name).write_text(text)
    port = free_port()
    hears = (
        f"--alerts-port={port}",
        f"--alerts-certificate={tmp_path}",
        f"--alerts-token={tmp_path / 'token'}",
    )
    webhook = Webhook(url=f"https://127.0.0.1:{port}/alerts", token=TOKEN, ca_file=tmp_path / "ca.crt")
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
        with Prometheus(targets=scraped, rules={"plimsoll": at_once()}, webhook=webhook) as prometheus:
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
