"""Questions of a tick and of dashboards, judged by Prometheus' own program: a pod is as loaded as it is, however many look at it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from alert_series import AT, rising, steady
from cluster.metrics import promtool
from plimsoll.alerts.dashboards import DASHBOARDS
from plimsoll.alerts.records import RECORDS
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.turns import TURNS
from plimsoll.prometheus.queries import queries
from plimsoll.prometheus.vocabulary import vocabulary

WORDS: Final = vocabulary([engine_facts("vllm", "0.33.0").metrics])
POD: Final = 'namespace="team",pod="chat-0a1b2c3d-7c9f8d6b5f-x2k4p"'
ENGINES: Final = ("0", "1")
OF_AN_ENGINE: Final = {
    "vllm:num_requests_running{%s}": steady(3),
    "vllm:num_requests_waiting{%s}": steady(1),
    'vllm:cache_config_info{%s,num_gpu_blocks="500",block_size="16"}': steady(1),
    'vllm:request_success_total{%s,finished_reason="stop"}': rising(60),
    'vllm:request_success_total{%s,finished_reason="error"}': rising(1),
    'vllm:request_prompt_tokens_bucket{%s,le="1000.0"}': rising(40),
    'vllm:request_prompt_tokens_bucket{%s,le="+Inf"}': rising(60),
    "vllm:request_prompt_tokens_sum{%s}": rising(60_000),
}
SET: Final = 'namespace="team",set="chat-0a1b2c3d"'
OF_ALL: Final[Mapping[str, Mapping[str, float]]] = {
    "load": {
        f'{{__name__="vllm:num_requests_running",{POD}}}': 6,
        f'{{__name__="vllm:num_requests_waiting",{POD}}}': 2,
    },
    "counters": {f'{{__name__="vllm:request_success_total",{POD}}}': 3600},
    "errors": {f'{{__name__="vllm:request_success_total",{POD}}}': 60},
    "pools": {f'{{{POD},num_gpu_blocks="500",block_size="16"}}': 2},
    "prompt_lengths": {
        f'{{{SET},le="1000.0"}}': 400,
        f'{{{SET},le="+Inf"}}': 600,
        f"{{{SET}}}": 600_000,
    },
}
"""By question, what two engines in one pod say after half an hour."""


ONE: Final = 'job="pods",instance="a"'
PAIRS: Final = {
    "two of the Prometheus operator": ('prometheus="m/k8s",prometheus_replica="0"', 'prometheus="m/k8s",prometheus_replica="1"'),
    "two that Thanos knows": ('replica="a"', 'replica="b"'),
    "two that Mimir knows": ('__replica__="a"', '__replica__="b"'),
}  # fmt: skip


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param((ONE,), id="one job"),
        pytest.param((ONE, 'job="service",instance="a"'), id="two jobs"),
        *(
            pytest.param(tuple(f"{ONE},{outside}" for outside in pair), id=name)
            for name, pair in PAIRS.items()
        ),
    ],
)
def test_a_pod_counts_once_however_many_look_at_it_and_each_of_its_engines_counts(
    looks: tuple[str, ...], tmp_path: Path
) -> None:
    series = {
        name % f'{POD},engine="{engine}",{look}': values
        for name, values in OF_AN_ENGINE.items()
        for engine in ENGINES
        for look in looks
    }
    said = promtool("test", "rules", written(series, tmp_path))
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_a_pair_has_recorded_is_drawn_once(pair: tuple[str, str], tmp_path: Path) -> None:
    said = promtool("test", "rules", drawn(pair, tmp_path))
    assert said.returncode == 0, said.stdout + said.stderr


def asked_of(series: Mapping[str, str], asked: Mapping[str, Mapping[str, float]], folder: Path) -> Path:
    """A file that promtool judges: these questions, about half an hour of these series."""
    tests: dict[str, Any] = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": query,
                        "eval_time": AT,
                        "exp_samples": [{"labels": of, "value": value} for of, value in found.items()],
                    }
                    for query, found in asked.items()
                ],
            }
        ],
    }
    file = folder / "tests.json"
    file.write_text(json.dumps(tests))
    return file


def written(series: Mapping[str, str], folder: Path) -> Path:
    asked = queries(WORDS, 0, len(TURNS))
    return asked_of(series, {asked[about]: found for about, found in OF_ALL.items()}, folder)


STATES: Final = ("ready", "wanted", "failed", "waiting_gpus")
SAID: Final = {"state": STATES, "latency": ("ttft_p99", "itl_p99"), "source": ("measured",)}
"""Values of the labels that records have."""


def drawn(pair: tuple[str, str], folder: Path) -> Path:
    """All records are 2, said by both; what is drawn of them must add up to what one says."""
    series = {
        f'{record}{{namespace="team",llm="chat"{"".join(labels)},{outside}}}': steady(2)
        for record in RECORDS
        for labels in product(
            *([f',{name}="{value}"' for value in SAID.get(name, "x")] for name in record.labels)
        )
        for outside in pair
    }
    asked = {}
    for query in sorted({line["expr"] for one in DASHBOARDS for line in lines(one.to_data())}):
        shown = query.replace("$cluster", "").replace("$namespace", "team").replace("$llm", "chat")
        if re.search(r"\bllm:", shown):
            of_all = len(STATES) - 1 if 'state!="wanted"' in shown else 1
            asked[f"sum({shown})"] = {"{}": 1 if " / " in shown else 2 * of_all}
    return asked_of(series, asked, folder)


def lines(data: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    return (line for panel in data["panels"] for line in panel.get("targets", ()))
