"""Alerts with remedies: one module each, all of them in ALERTS. The chart's rules, the list in the docs and the runbooks' heads are made of it."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.answers_fail import ANSWERS_FAIL
from plimsoll.alerts.autotune_paused import AUTOTUNE_PAUSED
from plimsoll.alerts.base import Alert
from plimsoll.alerts.crash_loop import CRASH_LOOP
from plimsoll.alerts.few_serving import FEW_SERVING
from plimsoll.alerts.itl_over_slo import ITL_OVER_SLO
from plimsoll.alerts.kv_pressure import KV_PRESSURE
from plimsoll.alerts.metrics_stale import METRICS_STALE
from plimsoll.alerts.not_serving import NOT_SERVING
from plimsoll.alerts.operator_gone import OPERATOR_GONE
from plimsoll.alerts.prediction_error import PREDICTION_ERROR
from plimsoll.alerts.preemption import PREEMPTION
from plimsoll.alerts.prefill_contention import PREFILL_CONTENTION
from plimsoll.alerts.queue_growth import QUEUE_GROWTH
from plimsoll.alerts.stalled import STALLED
from plimsoll.alerts.tensor_parallel_stall import TENSOR_PARALLEL_STALL
from plimsoll.alerts.ttft_over_slo import TTFT_OVER_SLO
from plimsoll.alerts.turns_failing import TURNS_FAILING
from plimsoll.alerts.uneven_load import UNEVEN_LOAD
from plimsoll.alerts.waiting_for_gpus import WAITING_FOR_GPUS
from plimsoll.alerts.waiting_for_nodes import WAITING_FOR_NODES

ALERTS: Final[tuple[Alert, ...]] = (
    ANSWERS_FAIL,
    AUTOTUNE_PAUSED,
    CRASH_LOOP,
    FEW_SERVING,
    ITL_OVER_SLO,
    KV_PRESSURE,
    METRICS_STALE,
    NOT_SERVING,
    OPERATOR_GONE,
    PREDICTION_ERROR,
    PREEMPTION,
    PREFILL_CONTENTION,
    QUEUE_GROWTH,
    STALLED,
    TENSOR_PARALLEL_STALL,
    TTFT_OVER_SLO,
    TURNS_FAILING,
    UNEVEN_LOAD,
    WAITING_FOR_GPUS,
    WAITING_FOR_NODES,
)
"""Sorted by name."""
