"""Something of everything that dashboards draw, and whether their queries find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from alert_case import suite
from alert_series import AT, LLM, POD, REFUSED, WELL, replicas, rising, steady

SEEN: Final[Mapping[str, str]] = {
    **WELL,
    REFUSED: rising(1),
    replicas("waiting_gpus"): steady(1),
    f'plimsoll_predicted_seconds{{{LLM},latency="ttft_p99"}}': steady(1),
    f'plimsoll_condition{{{LLM},type="Ready"}}': steady(1),
    f"plimsoll_llm_devices{{{LLM}}}": steady(2),
    **{
        f'plimsoll_pool_devices{{namespace="plimsoll",pool="p",gpu="g",state="{state}"}}': steady(8)
        for state in ("free", "held", "others")
    },
    "plimsoll_deployments": steady(1),
    'plimsoll_turn_seconds_bucket{le="0.1"}': rising(9),
    'plimsoll_turn_seconds_bucket{le="+Inf"}': rising(10),
    'plimsoll_api_calls_total{verb="patch",resource="pods",code="200"}': rising(10),
    'plimsoll_decisions_total{about="Ready",reason="Serving"}': rising(1),
    f"vllm:generation_tokens_total{{{POD}}}": rising(6000),
    f"vllm:prefix_cache_hits_total{{{POD}}}": rising(600),
    f"vllm:prefix_cache_queries_total{{{POD}}}": rising(6000),
}
"""Something of everything that dashboards draw."""


def found(rules: str, queries: Sequence[str]) -> dict[str, Any]:
    """Whether each of these queries has an answer."""
    return suite(
        rules,
        [
            {
                "input_series": [{"series": name, "values": values} for name, values in SEEN.items()],
                "promql_expr_test": [
                    {
                        "expr": f"count({query}) > bool 0",
                        "eval_time": AT,
                        "exp_samples": [{"labels": "{}", "value": 1}],
                    }
                    for query in queries
                ],
            }
        ],
    )
