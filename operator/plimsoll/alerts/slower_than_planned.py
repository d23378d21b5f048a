"""Engines are much slower than the plan said: capacity, scaling and the promised latencies are computed from a speed that is not there."""

from __future__ import annotations

from typing import Final

from plimsoll.alerts.base import SWINGS, WHO, Alert, Level
from plimsoll.alerts.records import ENOUGH, ITL_MEDIAN, KV_USAGE, PREDICTED, PREEMPTED, SAME, TENSOR
from plimsoll.alerts.thresholds import KV_FULL, PREEMPTED_WARN, STALL

SLOWER_THAN_PLANNED: Final = Alert(
    name="SlowerThanPlanned",
    summary=f"Engines of {WHO} are much slower than planned.",
    description=(
        "Half of the gaps between tokens last {{ $value | humanizeDuration }} or more, far longer than planned even for the slowest with as many "
        "requests as a replica is planned to carry, though the KV pool is not full. More replicas run than were planned, or promises are "
        "missed. Look for GPUs that are throttled or shared, and for arguments that make the engine slow, such as --enforce-eager."
    ),
    levels=(
        Level(
            "warning",
            # Where a layer is cut over PCIe, TensorParallelStall says more.
            f'{ITL_MEDIAN} > {SAME} ({STALL} * {PREDICTED}{{latency="itl_p99"}}) {ENOUGH} '
            f'unless {SAME} {TENSOR}{{link="pcie"}} > 1 '
            f"unless {SAME} {PREEMPTED} > {PREEMPTED_WARN} unless {SAME} {KV_USAGE} > {KV_FULL}",
            "15m",
            keeps=SWINGS,
        ),
    ),
)
