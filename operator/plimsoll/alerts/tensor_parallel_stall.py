"""GPUs that have only PCIe between them wait for one another in every layer."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import (
    ENOUGH,
    ITL_MEDIAN,
    KV_USAGE,
    PREDICTED,
    PREDICTED_RUNNING,
    PREEMPTED,
    READY,
    RUNNING,
    SAME,
    TENSOR,
)
from plimsoll.alerts.thresholds import KV_FULL, PREEMPTED_WARN, STALL, STALL_LEAST

TENSOR_PARALLEL_STALL: Final = Alert(
    name="TensorParallelStall",
    summary=f"GPUs of {WHO} seem to wait for one another over PCIe.",
    description=(
        "Half of the gaps between tokens last {{ $value | humanizeDuration }} or more, far longer than planned even for the slowest, though no more "
        "requests run than it was planned with, the KV pool is not full, and each layer is cut over GPUs without NVLink. Use fewer GPUs a replica (spec.topology.tensor, or a "
        "quantised model that fits one), pipeline stages in their place (spec.topology.pipeline), or GPUs with NVLink."
    ),
    levels=(
        Level(
            "warning",
            f'{ITL_MEDIAN} > {SAME} ({STALL} * {PREDICTED}{{latency="itl_p99"}}) '
            f"and {SAME} {ITL_MEDIAN} > {STALL_LEAST} "
            f"and {SAME} {RUNNING} <= {SAME} ({PREDICTED_RUNNING} * {SAME} {READY}) "
            f'and {SAME} {TENSOR}{{link="pcie"}} > 1 {ENOUGH} '
            f"unless {SAME} {PREEMPTED} > {PREEMPTED_WARN} unless {SAME} {KV_USAGE} > {KV_FULL}",
            "10m",
            keeps=SWINGS,
        ),
    ),
)
