"""Dashboards: read into Grafana's own model, about metrics that exist, up to date. Whether their queries can be read is e2e's."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from plimsoll.alerts.dashboards import DASHBOARDS, dashboard_json
from plimsoll.alerts.dashboards.panels import WIDTH
from plimsoll.alerts.records import FAILED, ITL, LABELS, PREEMPTED, RECORDS, SAME, TTFT, WAITING, WORDS
from plimsoll.prometheus import own

FOLDER = Path(__file__).parents[2] / "charts" / "plimsoll" / "dashboards"
UNITS = {"short", "s", "percentunit", "ops", "reqps", "suffix:tokens/s"}
"""Of Grafana's names of units."""
BUILT_IN = {"__rate_interval", "datasource"}

every_dashboard = pytest.mark.parametrize(
    "data", [one.to_data() for one in DASHBOARDS], ids=lambda one: one["uid"]
)


def panels(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in data["panels"] if one["type"] != "row"]


def lost(ours: Any, read: Any, at: str = "") -> list[str]:
    """Where what was read lacks what we wrote, or says something else."""
    if isinstance(ours, dict) and isinstance(read, dict):
        return [path for name in ours for path in lost(ours[name], read.get(name), f"{at}.{name}")]
    if isinstance(ours, list) and isinstance(read, list) and len(ours) == len(read):
        return [
            path for n, pair in enumerate(zip(ours, read, strict=True)) for path in lost(*pair, f"{at}[{n}]")
        ]
    return [] if ours == read else [at]


def queries(data: dict[str, Any]) -> list[str]:
    return [target["expr"] for one in panels(data) for target in one["targets"]]


def test_no_other_file_lies_among_them() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {one.file for one in DASHBOARDS}


@every_dashboard
def test_it_says_who_it_is_and_which_schema_it_is_of(data: dict[str, Any]) -> None:
    types = {
        "uid": str, "title": str, "tags": list, "schemaVersion": int, "version": int, "panels": list, "templating": dict,
        "time": dict, "annotations": dict, "links": list,
    }  # fmt: skip
    assert {name: type(data[name]) for name in types} == types
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", data["uid"])


@every_dashboard
def test_grafana_s_own_model_loses_nothing_of_it(data: dict[str, Any]) -> None:
    register_default_plugins()
    read = json.loads(JSONEncoder().encode(Dashboard.from_json(data)))
    assert lost(data, read) == []
    misspelt = {**data, "panels": [{**data["panels"][-1], "grid_pos": {}}]}
    assert lost(misspelt, json.loads(JSONEncoder().encode(Dashboard.from_json(misspelt)))) == [
        ".panels[0].grid_pos"
    ]


@every_dashboard
def test_panels_have_numbers_of_their_own_and_do_not_overlap(data: dict[str, Any]) -> None:
    numbers = [one["id"] for one in data["panels"]]
    assert len(numbers) == len(set(numbers))
    squares = []
    for one in data["panels"]:
        at = one["gridPos"]
        assert set(at) == {"x", "y", "w", "h"}
        assert 0 <= at["x"] <= at["x"] + at["w"] <= WIDTH
        squares.append(
            {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        )
    assert not any(one & other for one, other in combinations(squares, 2))


@every_dashboard
def test_every_panel_says_what_it_shows_and_asks_the_chosen_source(data: dict[str, Any]) -> None:
    for one in panels(data):
        assert one["type"] in {"timeseries", "stat", "table"}
        assert one["title"]
        assert one["description"].endswith(".")
        assert one["fieldConfig"]["defaults"]["unit"] in UNITS
        references = [target["refId"] for target in one["targets"]]
        assert references == sorted(set(references))
        assert references
        for target in (one, *one["targets"]):
            assert target["datasource"] == {"type": "prometheus", "uid": "$datasource"}


def unit_of(query: str) -> str:
    """By the conventions of Prometheus, of what is asked first: a ratio, a rate of tokens, seconds, or a count."""
    if " / " in query or re.search(":ratio|usage", query):
        return "percentunit"
    if "rate(" in query and "histogram_quantile" not in query:
        return "suffix:tokens/s" if "tokens" in query.split("{", maxsplit=1)[0] else "a second"
    return "s" if "_seconds" in query else "short"


@every_dashboard
def test_every_panel_has_the_unit_of_what_it_asks_for(data: dict[str, Any]) -> None:
    for one in panels(data):
        unit = one["fieldConfig"]["defaults"]["unit"]
        for target in one["targets"]:
            expected = unit_of(target["expr"])
            assert unit in ({"ops", "reqps"} if expected == "a second" else {expected}), (
                one["title"],
                target["expr"],
            )


def test_what_the_operator_tells_of_the_fleet_counts_once_where_two_pods_of_it_export() -> None:
    (fleet,) = (one.to_data() for one in DASHBOARDS if one.uid == "plimsoll-fleet")
    for query in queries(fleet):
        for metric in (own.POOL_DEVICES, own.DEVICES):
            once = query.count(f"max by ({', '.join(metric.labels)}) ({metric.name}")
            assert query.count(metric.name) == once, query


@every_dashboard
def test_a_pod_counts_once_where_two_jobs_scrape_it(data: dict[str, Any]) -> None:
    counters = [one for one in own.ALL if one.kind == "counter" and one is not own.RESTARTS]
    for query in queries(data):
        assert not re.search(r"sum by \((?:cluster, )?namespace, pod\)", query), query
        for metric in counters:
            each = ", ".join(("namespace", "pod", *metric.labels))
            once = re.findall(rf"max by \({each}\) \(\w+\({metric.name}[{{\[]", query)
            assert len(once) == query.count(metric.name), query


@every_dashboard
def test_what_two_prometheis_have_recorded_of_the_same_is_drawn_once(data: dict[str, Any]) -> None:
    for query in queries(data):
        for record in RECORDS:
            once = query.count(f"max by ({', '.join((*LABELS, *record.labels))}) ({record}")
            assert len(re.findall(rf"{record}(?![\w])", query)) == once, query


def test_both_promised_latencies_stand_beside_their_promise_in_the_fleet() -> None:
    (fleet,) = (one.to_data() for one in DASHBOARDS if one.uid == "plimsoll-fleet")
    promised = f" / {SAME} max by ({', '.join(LABELS)}, latency) (llm:slo_seconds:max{{"
    held = [query for query in queries(fleet) if promised in query]
    assert [re.findall('latency="([^"]+)"', query) for query in held] == [["ttft_p99"], ["itl_p99"]]


@every_dashboard
def test_every_choice_that_a_query_uses_is_at_the_head(data: dict[str, Any]) -> None:
    there = {one["name"] for one in data["templating"]["list"]}
    asked = [
        *queries(data),
        *(one["query"]["query"] for one in data["templating"]["list"] if one["type"] == "query"),
    ]
    assert {name for text in asked for name in re.findall(r"\$\{?(\w+)", text)} <= there | BUILT_IN
    assert "datasource" in there


@every_dashboard
def test_all_that_is_asked_for_is_of_the_cluster_that_is_chosen(data: dict[str, Any]) -> None:
    which, *others = (one for one in data["templating"]["list"] if one["type"] == "query")
    assert which["query"]["query"] == f"label_values({own.REPLICAS.name}, cluster)"
    assert not which["multi"]
    exported = {name for names in WORDS.names.values() for name in names}
    exported |= {metric.name for metric in own.ALL} | {record.name for record in RECORDS}
    named = rf"\b(?:{'|'.join(map(re.escape, exported))})(?:_bucket)?\b(?!:)"
    for query in (*queries(data), *(one["query"]["query"] for one in others)):
        found = re.findall(rf"{named}(.{{0,19}})", query)
        assert found
        assert [more for more in found if not more.startswith('{cluster="$cluster"')] == [], query


@every_dashboard
def test_a_link_leads_to_the_same_cluster(data: dict[str, Any]) -> None:
    assert all(link["includeVars"] for link in data["links"])


@every_dashboard
def test_every_metric_that_it_names_is_in_the_vocabulary(data: dict[str, Any]) -> None:
    exported = {name for names in WORDS.names.values() for name in names}
    operators = {f"{metric.name}{suffix}" for metric in own.ALL for suffix in ("", "_bucket")}
    known = exported | operators | {record.name for record in RECORDS}
    asked = [
        *queries(data),
        *(one["query"]["query"] for one in data["templating"]["list"] if one["type"] == "query"),
    ]
    named = {
        name
        for text in asked
        for name in re.findall(r"\b[a-z]+:[a-z0-9_:]+|\b(?:plimsoll|tgi|trtllm)_[a-z_]+", text)
    }
    assert named - known == set()
    assert named


@every_dashboard
def test_what_alerts_fire_on_is_drawn(data: dict[str, Any]) -> None:
    asked = " ".join(queries(data))
    assert [
        str(record) for record in (FAILED, PREEMPTED, TTFT, ITL, WAITING) if f"({record}" not in asked
    ] == []


def test_the_fleet_counts_replicas_without_a_place_whatever_they_wait_for() -> None:
    (fleet,) = (one.to_data() for one in DASHBOARDS if one.uid == "plimsoll-fleet")
    (waiting,) = (one for one in panels(fleet) if one["title"] == "Waiting for a place")
    (target,) = waiting["targets"]
    assert 'state=~"waiting_.*"' in target["expr"]


def test_the_fleet_leads_to_the_deployment_that_a_curve_is_of() -> None:
    (fleet,) = (one.to_data() for one in DASHBOARDS if one.uid == "plimsoll-fleet")
    for one in panels(fleet):
        legends = " ".join(target["legendFormat"] for target in one["targets"])
        label = "llm_namespace" if "{{llm_namespace}}" in legends else "namespace"
        told = [link["url"] for link in one["fieldConfig"]["defaults"].get("links", [])]
        url = (
            f"/d/plimsoll-deployment?var-datasource=${{datasource}}&var-cluster=${{cluster}}&var-namespace=${{__field.labels.{label}}}"
            "&var-llm=${__field.labels.llm}&${__url_time_range}"
        )
        assert told == ([url] if "{{llm}}" in legends else []), one["title"]


def test_a_deployment_whose_name_begins_with_another_s_has_its_pods_for_itself() -> None:
    (page,) = (one.to_data() for one in DASHBOARDS if one.uid == "plimsoll-deployment")
    selected = {pod for query in queries(page) for pod in re.findall('pod=~"([^"]+)"', query)}
    ours = ("llama-0a1b2c3d-7c9f8d6b-x2k4p", "llama-0a1b2c3d-0", "llama-0a1b2c3d-0-1")
    others = [f"llama-20260101{pod.removeprefix('llama')}" for pod in ours]
    for pods in selected:
        of_llama = re.compile(pods.replace("$llm", "llama"))
        assert [pod for pod in (*ours, *others) if of_llama.fullmatch(pod)] == [*ours]
    assert selected


def test_links_lead_to_dashboards_that_there_are() -> None:
    there = {f"/d/{one.uid}" for one in DASHBOARDS}
    assert {url for one in DASHBOARDS for _, url in one.links} <= there


@pytest.mark.parametrize("one", DASHBOARDS, ids=lambda one: one.uid)
def test_the_text_is_the_same_each_time(one: Any) -> None:
    assert json.loads(dashboard_json(one)) == one.to_data()
