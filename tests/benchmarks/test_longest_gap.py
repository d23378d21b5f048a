"""What each rung does to the longest gap, told beside what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from longest_gap import BEFORE, best, compared, run, rungs_of

SEEDS = range(1, 31)


def test_the_same_engine_is_no_better_than_itself():
    runs = [run(BEFORE, 0.8 * best(100), 64, seed) for seed in SEEDS]
    told = compared(runs, runs)
    assert told["preemptions_before"] == told["preemptions_after"] > 0
    assert {
        told[name] for name in ("tokens_s_ratio", "ttft_p99_ratio", "e2e_p99_ratio", "gap_mean_ratio")
    } == {1}
    assert told["shorter_of_three_pct"] == 0


@pytest.mark.parametrize("rung", ["watermark 191", "maxSequences 10"])
def test_a_rung_spares_preemptions_and_most_runs_their_longest_gap(rung: str):
    limits = rungs_of([191], [10])[rung]
    rate = 0.8 * best(100)
    before, after = ([run(one, rate, 64, seed) for seed in SEEDS] for one in (BEFORE, limits))
    told = compared(before, after)
    assert told["preemptions_after"] < told["preemptions_before"] / 2
    assert told["gap_mean_ratio"] < 1
    assert told["shorter_of_three_pct"] > 50


def test_an_engine_that_preempts_nobody_has_no_gap_longer_than_a_step():
    alone = run(replace(BEFORE, max_num_seqs=1), 0.01, 8, 1)
    assert alone.preemptions == 0
    assert alone.gap_s < 0.1
