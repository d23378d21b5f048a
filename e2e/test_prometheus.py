"""Prometheus and Alertmanager as tests use them: what is scraped, discovered, asked and told, and what is said when it fails."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import urllib3

from cluster import Cluster
from cluster.api import Object
from cluster.fleet import read_fleet
from cluster.metrics import MetricsServer, Prometheus, QueryRefused, Receiver, promtool
from cluster.metrics.prometheus import value_of
from common import alive, eventually

USAGE: Final = "vllm:kv_cache_usage_perc"
FULL: Final[dict[str, Any]] = {
    "groups": [{"name": "memory", "rules": [{"alert": "Full", "expr": f"{USAGE} > 0.9"}]}]
}
BROKEN: Final[dict[str, Any]] = {
    "groups": [{"name": "memory", "rules": [{"alert": "Full", "expr": f"{USAGE} >"}]}]
}


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer() as running:
        yield running


def test_a_query_answers_about_a_scraped_target_that_looks_like_a_pod(server: MetricsServer) -> None:
    page = server.page("pod-0")
    page.set(USAGE, 0.25, model_name='m"1')
    with Prometheus(targets=[page.pod("team", "pod-0", uid="u0")]) as prom:
        (found,) = prom.wait_for(USAGE)
        assert found.value == 0.25
        assert {key: found.labels[key] for key in ("namespace", "pod", "uid", "model_name")} == {
            "namespace": "team",
            "pod": "pod-0",
            "uid": "u0",
            "model_name": 'm"1',
        }
        assert value_of(prom.query("1 + 1")) == 2.0


def test_series_move_vanish_and_are_not_numbers_when_a_test_says_so(server: MetricsServer) -> None:
    page = server.page()
    page.add("finished_total", 3, reason="stop")
    page.add("finished_total", 4, reason="stop")
    page.set(USAGE, math.nan)
    with Prometheus(targets=[page.target()]) as prom:
        prom.wait_for("finished_total == 7")
        prom.wait_for(USAGE, lambda found: math.isnan(value_of(found)) and len(found) == 1)
        page.drop(USAGE)
        prom.wait_for(USAGE, lambda found: not found)
        page.say("this is not the format of metrics {{{\n")
        prom.wait_for("up == 0")
        page.say(None)
        prom.wait_for("up == 1")
        page.fail(500)
        prom.wait_for("up == 0")
        assert "500" in prom.targets()[0]["error"]


def test_a_target_that_answers_too_late_is_down_until_it_is_quick_again(server: MetricsServer) -> None:
    page = server.page()
    page.set(USAGE, 0.5)
    with Prometheus(targets=[page.target()]) as prom:
        prom.wait_for("up == 1")
        page.slow(30.0)
        prom.wait_for("up == 0")
        assert "deadline exceeded" in prom.targets()[0]["error"]
        page.slow(0.0)
        prom.wait_for("up == 1")


def test_what_is_scraped_can_change_while_it_runs(server: MetricsServer) -> None:
    first, second = server.page("first"), server.page("second")
    first.set("one", 1)
    second.set("two", 2)
    with Prometheus(targets=[first.target()]) as prom:
        prom.wait_for("one")
        prom.scrape([second.target()])
        prom.wait_for("two")
        prom.wait_for("one", lambda found: not found)


def test_an_alert_reaches_the_webhook_with_its_token_and_is_resolved_there(server: MetricsServer) -> None:
    page = server.page()
    page.set(USAGE, 0.95)
    with (
        Receiver(token="of the receiver") as receiver,
        Prometheus(
            targets=[page.pod("team", "pod-0")], rules={"full": FULL}, webhook=receiver.webhook()
        ) as prom,
    ):
        firing = receiver.wait_for(lambda message: message.body["status"] == "firing")
        assert firing.authorization == "Bearer of the receiver"
        assert firing.alerts[0]["labels"].items() >= {"alertname": "Full", "pod": "pod-0"}.items()
        assert eventually(lambda: [one["state"] for one in prom.alerts()] == ["firing"])
        page.set(USAGE, 0.1)
        receiver.wait_for(lambda message: message.body["status"] == "resolved")


def test_a_storm_of_alerts_comes_through_grouped_as_the_receiver_asks() -> None:
    with (
        Receiver() as receiver,
        Prometheus(webhook=receiver.webhook(group_by=["alertname"], wait_ms=300)) as prom,
    ):
        prom.raise_alerts([{"labels": {"alertname": "Full", "pod": f"pod-{i}"}} for i in range(300)])
        assert len(receiver.wait_for(lambda message: len(message.alerts) == 300).alerts) == 300
        with pytest.raises(QueryRefused, match="400"):
            prom.raise_alerts([{"labels": {}}])


def test_a_prometheus_that_is_paused_does_not_answer_and_one_that_is_killed_refuses() -> None:
    with Prometheus() as prom:
        prom.processes.pause("prometheus")
        with pytest.raises(urllib3.exceptions.ReadTimeoutError):
            urllib3.request("GET", f"{prom.url}/api/v1/query?query=up", timeout=0.3, retries=False)
        prom.processes.resume("prometheus")
        prom.query("up")
        prom.processes.kill("prometheus")
        with pytest.raises(urllib3.exceptions.HTTPError):
            prom.query("up")
        prom.processes.restart("prometheus")
        assert eventually(lambda: answers(prom))


def answers(prom: Prometheus) -> bool:
    try:
        return prom.query("up") == []
    except (QueryRefused, urllib3.exceptions.HTTPError):
        return False


def test_rules_are_loaded_while_it_runs_and_bad_ones_are_refused_in_its_words(server: MetricsServer) -> None:
    page = server.page()
    page.set(USAGE, 0.95)
    with Prometheus(targets=[page.target()]) as prom:
        prom.load_rules("full", FULL)
        prom.wait_for('ALERTS{alertname="Full"}')
        with pytest.raises(QueryRefused, match="could not parse expression"):
            prom.load_rules("full", BROKEN)
        prom.load_rules("other", {"groups": []})  # what was refused is not in the way
        prom.wait_for('ALERTS{alertname="Full"}')


@pytest.mark.parametrize(("promql", "why"), [("up{", "bad_data"), ("up[1m]", "gives a matrix")])
def test_a_question_that_cannot_be_answered_is_refused_with_the_reason(promql: str, why: str) -> None:
    with Prometheus() as prom, pytest.raises(QueryRefused, match=why):
        prom.query(promql)


def test_what_never_comes_is_said_with_what_ails_the_targets(server: MetricsServer) -> None:
    with (
        Prometheus(
            targets=[server.page("there").target(), server.page("there").target(kind="other")]
        ) as prom,
        pytest.raises(TimeoutError, match=r"'absent' is still \[\] after 0 s"),
    ):
        prom.wait_for("absent", seconds=0.1)


def test_a_failure_inside_carries_the_logs_and_nothing_is_left() -> None:
    prom = Prometheus()
    with pytest.raises(QueryRefused) as failed, prom:
        prom.query("up{")
    assert any(note.startswith("prometheus; ") for note in failed.value.__notes__)
    assert not prom.folder.exists()
    with prom:
        pids = prom.processes.pids.values()
    assert not any(alive(pid) for pid in pids)


def test_the_cluster_s_pods_are_discovered_and_a_test_answers_for_them(
    cluster: Cluster, namespace: str, server: MetricsServer
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    with (
        cluster.fleet(read_fleet("l4")) as fleet,
        cluster.prometheus(
            namespaces=[namespace], selector="app=engine", port="http", stand_in=server.address
        ) as prom,
    ):
        for app in ("engine", "other"):
            cluster.api.create(pods, _pod(app, node=fleet.nodes[0]["metadata"]["name"]))
        server.page(f"{namespace}/engine").set(USAGE, 0.5)
        (found,) = prom.wait_for(USAGE)
        pod = cluster.api.get(f"{pods}/engine")
        assert (
            found.labels.items()
            >= {
                "namespace": namespace,
                "pod": "engine",
                "uid": pod["metadata"]["uid"],
                "node": pod["spec"]["nodeName"],
                "container": "main",
            }.items()
        )
        assert len(prom.query("up")) == 1
        cluster.api.delete(f"{pods}/engine?gracePeriodSeconds=0")
        prom.wait_for(USAGE, lambda found: not found)


def _pod(app: str, *, node: str) -> Object:
    return {
        "metadata": {"name": app, "labels": {"app": app}},
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "ports": [
                        {"name": "http", "containerPort": 8000},
                        {"name": "other", "containerPort": 9000},
                    ],
                }
            ],
        },
    }


@pytest.mark.parametrize(("rules", "code"), [(FULL, 0), (BROKEN, 1)], ids=["good", "broken"])
def test_promtool_judges_rules(rules: Object, code: int, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(rules))
    said = promtool("check", "rules", file)
    assert (said.returncode, "1 rules found" in said.stdout) == (code, code == 0)
