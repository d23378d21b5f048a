"""Crash points of every path, side by side; `benchmarks/crashes.py` takes them all."""

from __future__ import annotations

from pathlib import Path

from cluster import Cluster
from turns.crashes import matrix


def test_whatever_write_it_ends_after_the_next_one_finishes_the_work_and_rests(
    whole_lab: Cluster, tmp_path: Path
) -> None:
    outcome = matrix(whole_lab, tmp_path, every=5, quiet_seconds=5)
    assert outcome.faults == ()
    assert outcome.late_writes == 0
    assert outcome.struck >= 10
