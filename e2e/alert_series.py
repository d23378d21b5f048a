"""What Prometheus scrapes of one deployment in which all is well, minute by minute, and how to write that it is otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

POD: Final = 'namespace="team",pod="chat-0a1b2c3d-7c9f8d6b-x2k4p"'
LLM: Final = 'namespace="plimsoll",pod="plimsoll-0",llm_namespace="team",llm="chat"'
MINUTES: Final = 120
AT: Final = "30m"

KV: Final = f"vllm:kv_cache_usage_perc{{{POD}}}"
RUNNING: Final = f"vllm:num_requests_running{{{POD}}}"
WAITING: Final = f"vllm:num_requests_waiting{{{POD}}}"
FINISHED: Final = f'vllm:request_success_total{{{POD},finished_reason="stop"}}'
ERRORS: Final = f'vllm:request_success_total{{{POD},finished_reason="error"}}'
REFUSED: Final = f'vllm:admission_rejections_total{{{POD},reason="max_num_queued_reqs"}}'
PREEMPTIONS: Final = f"vllm:num_preemptions_total{{{POD}}}"
WAITING_BESIDE: Final = WAITING.replace("x2k4p", "m7q2z")
"""Of another replica of the same set."""
WAITING_TRIED: Final = WAITING.replace("0a1b2c3d-7c9f8d6b-x2k4p", "9e8f7a6b-5d4c3b2a-m7q2z")
"""Of a replica of another set."""
DRAINS_BESIDE: Final = (
    'plimsoll_runtime_state{namespace="team",pod="chat-0a1b2c3d-7c9f8d6b-m7q2z",state="draining"}'
)
"""Whether that other replica drains, as its supervisor says."""
LEADS: Final = 'plimsoll_leads{namespace="plimsoll",pod="plimsoll-0"}'
TURNS: Final = 'plimsoll_turns_total{namespace="plimsoll",pod="plimsoll-0"}'
FAILED: Final = 'plimsoll_turns_failed_total{namespace="plimsoll",pod="plimsoll-0",reason="500"}'
RESTARTS: Final = f"plimsoll_engine_restarts_total{{{LLM}}}"
AGAIN: Final = f"plimsoll_engine_restarts_again_total{{{LLM}}}"
CONDITION: Final = f'plimsoll_condition{{{LLM},type="ScalingLimited"}}'
LIMITED: Final = f'plimsoll_scaling_limited{{{LLM},reason="GPUsUnavailable"}}'
OVER_BUDGET: Final = f'plimsoll_scaling_limited{{{LLM},reason="BudgetExhausted"}}'
AT_MAX: Final = f'plimsoll_scaling_limited{{{LLM},reason="AtMax"}}'
STALLED: Final = f'plimsoll_condition{{{LLM},type="Stalled"}}'
METRICS: Final = f'plimsoll_condition{{{LLM},type="MetricsAvailable"}}'
PAUSED: Final = f'plimsoll_condition{{{LLM},type="AutotunePaused"}}'
PREDICTED: Final = f'plimsoll_predicted_seconds{{{LLM},latency="itl_p99"}}'
PREDICTED_RUNNING: Final = f"plimsoll_predicted_running{{{LLM}}}"
AVAILABLE: Final = f"plimsoll_slo_availability_ratio{{{LLM}}}"
MEASURED: Final = f'plimsoll_kv_tokens{{{LLM},source="measured"}}'


def replicas(state: str) -> str:
    return f'plimsoll_replicas{{{LLM},state="{state}"}}'


def slo(latency: str) -> str:
    return f'plimsoll_slo_seconds{{{LLM},latency="{latency}"}}'


def steady(value: float) -> str:
    return f"{value:g}+0x{MINUTES}"


def rising(a_minute: float, start: float = 0) -> str:
    return f"{start:g}{a_minute:+g}x{MINUTES}"


def since(minute: int, before: str, after: str) -> str:
    """Values that change at a minute, at 30 of which is looked."""
    return f"{before}x{minute - 1} {after}x{MINUTES - minute}"


def counted(*minutes: int) -> str:
    """One more at each of these."""
    return " ".join(str(sum(each <= minute for each in minutes)) for minute in range(MINUTES + 1))


def held(since: int, until: int) -> str:
    return " ".join(str(int(since <= minute < until)) for minute in range(MINUTES + 1))


def histogram(name: str, buckets: Mapping[str, float]) -> dict[str, str]:
    """Cumulative counts that come every minute."""
    found = {f'{name}_bucket{{{POD},le="{bound}"}}': rising(count) for bound, count in buckets.items()}
    return found | {f"{name}_count{{{POD}}}": rising(max(buckets.values()))}


def ttft(**buckets: float) -> dict[str, str]:
    return histogram("vllm:time_to_first_token_seconds", _bounds(buckets))


def itl(**buckets: float) -> dict[str, str]:
    return histogram("vllm:inter_token_latency_seconds", _bounds(buckets))


def prompts(**buckets: float) -> dict[str, str]:
    return histogram("vllm:request_prompt_tokens", _bounds(buckets))


def _bounds(buckets: Mapping[str, float]) -> dict[str, float]:
    """le_0_5 is 0.5, inf is +Inf."""
    return {
        "+Inf" if name == "inf" else name.removeprefix("le_").replace("_", "."): count
        for name, count in buckets.items()
    }


def others(name: str) -> str:
    """The same series of the operator's other pod."""
    return name.replace("plimsoll-0", "plimsoll-1")


def operators(series: Mapping[str, str], until: int, other: int = MINUTES) -> dict[str, str | None]:
    """The operator's figures of these end at a minute, as its pod does, and another pod has them from a later one on."""
    told: dict[str, str | None] = {}
    for name, values in series.items():
        value, rise, _ = (
            re.split(r"(?=[+-])|x", values, maxsplit=2) if name.startswith("plimsoll_") else ("", "", "")
        )
        if value:
            told[name] = f"{value}{rise}x{until - 1} stale"
            told[others(name)] = f"_x{other} {value}{rise}x{MINUTES - other}"
    return told


WELL: Final[Mapping[str, str]] = {
    KV: steady(0.4),
    RUNNING: steady(4),
    WAITING: steady(0),
    FINISHED: rising(60),
    ERRORS: steady(0),
    PREEMPTIONS: steady(0),
    **ttft(le_0_5=60, le_3=60, le_10=60, inf=60),
    **itl(le_0_01=3000, le_0_025=6000, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000),
    **prompts(le_1000=60, le_5000=60, le_10000=60, inf=60),
    LEADS: steady(1),
    TURNS: rising(10),
    FAILED: steady(0),
    **{
        replicas(state): steady(0)
        for state in ("starting", "failed", "waiting_gpus", "waiting_nodes", "waiting_quota")
    },
    replicas("wanted"): steady(1),
    replicas("ready"): steady(1),
    slo("ttft_p99"): steady(2),
    slo("itl_p99"): steady(0.1),
    AVAILABLE: steady(0.99),
    PREDICTED: steady(0.027),
    PREDICTED_RUNNING: steady(4),
    MEASURED: steady(95_000),
    f'plimsoll_kv_tokens{{{LLM},source="predicted"}}': steady(100_000),
    f'plimsoll_tensor_parallel{{{LLM},link="pcie"}}': steady(2),
    PAUSED: steady(0),
    METRICS: steady(1),
    RESTARTS: steady(0),
    AGAIN: steady(0),
    # Somebody else's engine, which is full and preempts: none of ours.
    'vllm:kv_cache_usage_perc{namespace="other",pod="vllm-7c9f8d6b-x2k4p"}': steady(1),
    'vllm:num_preemptions_total{namespace="other",pod="vllm-7c9f8d6b-x2k4p"}': rising(60),
    'vllm:request_success_total{namespace="other",pod="vllm-7c9f8d6b-x2k4p"}': rising(60),
}
