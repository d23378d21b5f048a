"""What is told of both sides of a retune, from what each of their runs has seen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import retune
from cluster.node import Unavailable
from retune import joined, table
from retune_ratios import Side, report_of, words_of

ARGV = (
    "vllm serve /model --served-model-name tiny --port 8000 --load-format dummy --max-model-len 4096 --max-num-seqs 9 "
    "--enable-prefix-caching --enforce-eager --shutdown-timeout 30 --num-gpu-blocks-override=64"
)
KEPT = "--max-model-len 4096 --max-num-seqs 9 --enable-prefix-caching --num-gpu-blocks-override=64"


@pytest.mark.parametrize("before", ["", "python3 /plimsoll/supervisor.pyz serve --port=8079 -- "])
def test_an_engine_beside_the_cluster_is_told_what_its_pod_was_and_nothing_of_where_that_was(before):
    words = words_of((before + ARGV).split())
    assert " ".join(words) == KEPT


def test_figures_are_of_all_runs_of_a_side_together():
    old, new = Side("before", ""), Side("after", "")
    for side, seconds, preempted in ((old, (2.0, 8.0), 90), (old, (1.0, 10.0), 60), (new, (2.0, 4.0), 5)):
        for one in seconds:
            side.e2e.add(one)
            side.ttft.add(one / 4)
            side.gaps.add(one / 2)
        side.preemptions += preempted
        side.tokens, side.seconds = side.tokens + 1000, side.seconds + 10
        side.answered, side.good = side.answered + 2, side.good + 1
    told = report_of(old, new)
    assert (told["preemptions_before"], told["preemptions_after"]) == (150, 5)
    assert told["tokens_s_ratio"] == 1.0
    assert told["e2e_p99_ratio"] == pytest.approx(0.4, rel=0.02)
    assert (told["slo_pct_before"], told["slo_pct_after"]) == (50.0, 50.0)
    assert (told["max_gap_s_before"], told["max_gap_s_after"]) == (5.0, 2.0)
    promised = {
        "preemptions_before", "preemptions_after", "tokens_s_ratio", "e2e_p99_ratio", "slo_pct_before", "slo_pct_after", "ttft_p99_ms",
        "max_gap_s_before", "max_gap_s_after",
    }  # fmt: skip
    assert promised <= told.keys()
    rung = {"state": "Done", "setting": "maxSequences", "before": "32", "after": "9", "reason": "good"}
    shown = table({**told, "rungs": [rung], "crowded": {**told, "runs": [{"seed": 7}]}})
    assert "Done     maxSequences 32 to 9: good" in shown
    assert "seed 7" in shown.partition("more users than places")[2]


def test_a_part_that_is_run_again_takes_the_place_of_what_it_found_before():
    """Its other figures do too, so that rungs of both runs would stand beside figures of one."""
    report: dict[str, Any] = {"rungs": []}
    for part, value in (("loop", "16"), ("bad", "4"), ("loop", "9")):
        report = joined(report, part, {"rungs": [{"after": value}], part: value})
    assert report["rungs"] == [{"after": "4", "part": "bad"}, {"after": "9", "part": "loop"}]
    assert (report["loop"], report["bad"]) == ("9", "4")


LOOP = {
    "rungs": [{"setting": "maxSequences"}],
    "argv_before": ["vllm"],
    "argv_after": ["vllm", "--watermark"],
}


def unavailable(*_: object, **_more: object) -> Any:
    raise Unavailable("no image can be pulled here")


def without_end(*_: object, **_more: object) -> Any:
    raise SystemExit("not ready after 2400 s")


@pytest.mark.parametrize(
    ("bad", "ratios", "rungs"),
    [
        (unavailable, unavailable, 1),
        (without_end, unavailable, 1),
        (lambda *_, **_more: {"rungs": [{"setting": "watermark"}]}, unavailable, 2),
    ],
)
def test_a_part_that_is_over_is_kept_though_the_next_one_does_not_come_to_its_end(
    bad: Callable[..., Any],
    ratios: Callable[..., Any],
    rungs: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retune, "ground", lambda *_: nullcontext())
    monkeypatch.setattr(retune, "loop", lambda *_, **_more: LOOP)
    monkeypatch.setattr(retune, "bad", bad)
    monkeypatch.setattr(retune, "ratios", ratios)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["retune.py", "--kept", str(tmp_path / "kept.json")])
    if bad is without_end:
        with pytest.raises(SystemExit):
            retune.main()
    else:
        assert retune.main() == 1
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept["argv_after"] == LOOP["argv_after"]
    assert len(kept["rungs"]) == rungs
