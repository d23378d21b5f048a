"""The operator's own metrics: what each is called, what it tells, and by which labels. Whoever exports, alerts or draws takes it here.

Labels of a resource are `llm_namespace` and `llm`, and not `namespace`: a scraper writes the operator's own namespace there. No label has
more values than there are resources, pools or words of a table of ours, and the series of a resource go with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Own:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()


LLM: Final = ("llm_namespace", "llm")

INFO: Final = Own("plimsoll_info", "gauge", "1, with the release that runs.", ("version",))
LEADS: Final = Own(
    "plimsoll_leads",
    "gauge",
    "Whether this process acts: 1, or 0 while it waits for the Lease, or has not seen yet what is in the cluster.",
)
DEPLOYMENTS: Final = Own("plimsoll_deployments", "gauge", "LLMDeployments seen.")
TURNS: Final = Own("plimsoll_turns_total", "counter", "Turns taken: one look at one deployment each.")
TURNS_FAILED: Final = Own(
    "plimsoll_turns_failed_total",
    "counter",
    "Turns that failed and are tried again; reason is the API server's status, Unreachable, NotLeading, or Bug.",
    ("reason",),
)
TURN_SECONDS: Final = Own("plimsoll_turn_seconds", "histogram", "How long turns took.")
TURNS_WAITING: Final = Own("plimsoll_turns_waiting", "gauge", "Deployments that a turn is due for.")
TURNS_RUNNING: Final = Own("plimsoll_turns_running", "gauge", "Turns under way.")
API_CALLS: Final = Own(
    "plimsoll_api_calls_total", "counter", "Calls to the API server.", ("verb", "resource", "code")
)
ADMISSION_LISTENS: Final = Own(
    "plimsoll_admission_listens", "gauge", "Whether the webhook listens: 1 or 0, where it is on."
)
ADMISSION_REVIEWS: Final = Own(
    "plimsoll_admission_reviews_total",
    "counter",
    "Admission requests answered, where the webhook is on.",
    ("answer",),
)
ADMISSION_SECONDS: Final = Own("plimsoll_admission_seconds_total", "counter", "Time in them.")
CONTROL_TICKS: Final = Own(
    "plimsoll_control_ticks_total", "counter", "Looks at live metrics, each of the whole fleet."
)
CONTROL_SECONDS: Final = Own("plimsoll_control_seconds_total", "counter", "Time in them.")
METRICS_REACHABLE: Final = Own(
    "plimsoll_metrics_reachable", "gauge", "Whether the source of live metrics answered last time: 1 or 0."
)
PLANS: Final = Own(
    "plimsoll_plans_total",
    "counter",
    "Plans made anew, by why (FirstPlan, SpecChanged, ...) and what came of it. A pinned plan that stands is not counted.",
    ("reason", "outcome"),
)
DECISIONS: Final = Own(
    "plimsoll_decisions_total",
    "counter",
    "Decisions told as events, by what they are about (a condition, Scale, Retune or RampRecorded) and the reason.",
    ("about", "reason"),
)
ALERTS_RECEIVED: Final = Own(
    "plimsoll_alerts_received_total",
    "counter",
    "Alerts that came to the webhook: woke, repeated (within ten seconds), resolved, unknown (no such deployment) or refused.",
    ("result",),
)
POOL_DEVICES: Final = Own(
    "plimsoll_pool_devices",
    "gauge",
    "Devices of the nodes that take pods: free; held by deployments; or others, which are used by other pods, or promised to pods on their way.",
    ("pool", "gpu", "state"),
)
REPLICAS: Final = Own(
    "plimsoll_replicas",
    "gauge",
    "Replicas: wanted, ready, starting, failed, and waiting_gpus, waiting_nodes, waiting_quota.",
    (*LLM, "state"),
)
DEVICES: Final = Own("plimsoll_llm_devices", "gauge", "Devices that all sets ask for.", LLM)
SLO: Final = Own(
    "plimsoll_slo_seconds",
    "gauge",
    "Promised latency, from spec.slo with presets and defaults: ttft_p99, itl_p99. Absent where none is promised.",
    (*LLM, "latency"),
)
AVAILABILITY: Final = Own(
    "plimsoll_slo_availability_ratio",
    "gauge",
    "Promised share of requests that are answered. Absent where none is promised.",
    LLM,
)
PREDICTED: Final = Own(
    "plimsoll_predicted_seconds",
    "gauge",
    "The plan's prediction of the same latencies. Absent where none is possible.",
    (*LLM, "latency"),
)
PREDICTED_RUNNING: Final = Own(
    "plimsoll_predicted_running",
    "gauge",
    "Running requests of a replica at which these latencies are predicted. Absent where what is measured cannot be held against them.",
    LLM,
)
KV_TOKENS: Final = Own(
    "plimsoll_kv_tokens",
    "gauge",
    "Tokens that the KV pool of a replica holds: predicted by the plan, and measured as the engine reports.",
    (*LLM, "source"),
)
TENSOR_PARALLEL: Final = Own(
    "plimsoll_tensor_parallel",
    "gauge",
    "GPUs over which each layer is cut, by what joins them: nvlink, pcie, ... or unknown.",
    (*LLM, "link"),
)
CONDITION: Final = Own(
    "plimsoll_condition",
    "gauge",
    "Conditions: 1 is True, 0 is False; Unknown and absent ones are left out, and so is MetricsAvailable where only a wake query has no answer.",
    (*LLM, "type"),
)
SCALING_LIMITED: Final = Own(
    "plimsoll_scaling_limited",
    "gauge",
    "1, by each reason why the condition ScalingLimited is True, also those that only its message tells. Absent where it is not.",
    (*LLM, "reason"),
)
RESTARTS: Final = Own(
    "plimsoll_engine_restarts_total",
    "counter",
    "Restarts of replicas' engines that were seen, those of all pods of a group together as one. Pods that are replaced count on.",
    LLM,
)
RESTARTS_AGAIN: Final = Own(
    "plimsoll_engine_restarts_again_total",
    "counter",
    "Of these, restarts of a replica that had restarted within the hour before: what crashes again and again, and not what a node's restart takes with it.",
    LLM,
)
CPU_SECONDS: Final = Own("process_cpu_seconds_total", "counter", "Processor time of this process.")
MEMORY: Final = Own("process_resident_memory_bytes", "gauge", "Memory of this process.")

ALL: Final = (
    INFO, LEADS, DEPLOYMENTS, TURNS, TURNS_FAILED, TURN_SECONDS, TURNS_WAITING, TURNS_RUNNING, API_CALLS,
    ADMISSION_LISTENS, ADMISSION_REVIEWS, ADMISSION_SECONDS, CONTROL_TICKS, CONTROL_SECONDS, METRICS_REACHABLE, PLANS, DECISIONS,
    ALERTS_RECEIVED, POOL_DEVICES, REPLICAS, DEVICES, SLO, AVAILABILITY, PREDICTED, PREDICTED_RUNNING, KV_TOKENS, TENSOR_PARALLEL, CONDITION, SCALING_LIMITED,
    RESTARTS, RESTARTS_AGAIN, CPU_SECONDS, MEMORY,
)  # fmt: skip
