"""The benchmark in a size that says nothing but that it runs; what it counts, unlike what it times, holds on any machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import reconcile
from cluster import Cluster
from reconcile_ground import Sizes


def test_starts_and_rest_write_nothing(whole_lab: Cluster, tmp_path: Path) -> None:
    sizes = Sizes(singles=2, burst=6, start=(3, 6, 8), edits=6, idle_minutes=0.05)
    found = asyncio.run(reconcile.measure(whole_lab, sizes, reconcile.PARTS, tmp_path))
    assert {count: one["writes"] for count, one in found["start"].items()} == {"3": 0, "6": 0, "8": 0}
    assert found["idle"]["writes"] == 0
    assert found["burst"]["n"] == 6
    assert found["restored"]["hands"] == 17, (
        "six kinds are deleted and relabelled, and all but revisions edited"
    )
    assert found["restored"]["never"] == []
    assert set(found) == {"single", "burst", "start", "edits_1000", "restored", "idle", "peer", "machine"}
