"""The questions of a tick, judged by Prometheus' own program: a pod is as loaded as it is, however many look at it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from alert_cases import AT, rising, steady
from cluster.metrics import promtool
from plimsoll.facts.engines import engine_facts
from plimsoll.prometheus.queries import TURNS, queries
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


@pytest.mark.parametrize(
    "looks",
    [
        ('job="pods",instance="a"',),
        ('job="pods",instance="a"', 'job="service",instance="a"'),
    ],
    ids=["one job", "two jobs"],
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


def written(series: Mapping[str, str], folder: Path) -> Path:
    asked = queries(WORDS, 0, len(TURNS))
    tests: dict[str, Any] = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": asked[about],
                        "eval_time": AT,
                        "exp_samples": [{"labels": of, "value": value} for of, value in found.items()],
                    }
                    for about, found in OF_ALL.items()
                ],
            }
        ],
    }
    file = folder / "tests.json"
    file.write_text(json.dumps(tests))
    return file
