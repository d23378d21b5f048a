"""Rows of measured points are read as what ran, and scored only with constants that never saw their like.

The figures are made up; measured ones are not part of the project.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import latency_accuracy
import layout_choice
from latency_rows import read_rows
from plimsoll.facts.architecture import Part
from plimsoll.facts.dtypes import Dtype
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.speed.formats import stored_format

HEADER = (
    "model,system,vllm_version,precision,input_tokens,output_tokens,concurrency,"
    "tp,pp,attention_dp,moe_tp,moe_ep,ttft_ms,tpot_ms"
)
DENSE = "Qwen/Qwen3-32B,h100_sxm,0.18.0,,1024,1024"
MOE = "MiniMaxAI/MiniMax-M2.5,b200_sxm,,fp8,1024,1024"


@pytest.fixture
def file(tmp_path: Path):
    def write(*rows: str) -> Path:
        path = tmp_path / "points.csv"
        path.write_text("\n".join((HEADER, *rows)) + "\n", encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("row", "layout", "concurrency"),
    [
        (f"{DENSE},16,2,1,,1,1,100,20", Layout(tensor=2), 16),
        (f"{MOE},16,4,1,1,1,4,100,20", Layout(tensor=4, expert_parallel=True), 16),
        (f"{MOE},16,4,1,4,1,16,100,20", Layout(data=4, expert_parallel=True), 64),
        (f"{MOE},16,1,1,8,1,8,100,20", Layout(data=8, expert_parallel=True), 128),
        (f"{MOE},16,2,1,1,2,0,100,20", Layout(tensor=2), 16),
    ],
    ids=[
        "tensor",
        "expert parallel",
        "attention over the same devices",
        "attention over its own",
        "empty is one",
    ],
)
def test_a_row_is_read_as_the_layout_that_ran(file, row, layout, concurrency):
    (found,), skipped = read_rows([file(row)])
    assert not skipped
    assert found.layout == layout
    assert found.load.concurrency == concurrency
    assert (found.ttft, found.tpot) == (0.1, 0.02)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("Nobody/Knows,h100_sxm,,,1024,1024,16,2,1,,1,1,100,20", "unknown model Nobody/Knows"),
        ("Qwen/Qwen3-32B,abacus_sxm,,,1024,1024,16,2,1,,1,1,100,20", "unknown system abacus_sxm"),
        ("Qwen/Qwen3-32B,h100_sxm,,fp3,1024,1024,16,2,1,,1,1,100,20", "unknown precision fp3"),
        (f"{DENSE},many,2,1,,1,1,100,20", "concurrency is not a number"),
        (f"{DENSE},16,2,1,,1,1,,20", "ttft_ms was not measured"),
        (f"{DENSE},16,2,1,,1,1,100,0", "tpot_ms was not measured"),
    ],
)
def test_what_cannot_be_used_is_counted_by_its_reason(file, row, reason):
    rows, skipped = read_rows([file(row)])
    assert not rows
    assert skipped == {reason: 1}


def test_precision_picks_the_checkpoint_that_stores_it(file):
    rows, _ = read_rows(
        [
            file(
                "meta-llama/Llama-3.1-70B,h200_sxm,,fp8,1024,1024,16,2,1,1,1,1,100,20",
                "MiniMaxAI/MiniMax-M2.5,b200_sxm,,fp4,1024,1024,16,2,1,1,1,1,100,20",
                "openai/gpt-oss-120b,h100_sxm,,fp4,1024,1024,16,2,1,1,1,1,100,20",
            )
        ]
    )
    stored = [stored_format(row.model.architecture, Part.EXPERTS) for row in rows]
    assert stored == [Dtype.FP8, Dtype.NVFP4, Dtype.MXFP4]


def made_up(models: dict[str, float]) -> list[str]:
    """Points of each model, `slower` than the plainest roofline by a factor of its own."""
    return [
        f"{name},{1024},{1024},{running},{tensor},1,1,1,1,{100 * slower + running},{(30 / tensor + running / 10) * slower}"
        for name, slower in models.items()
        for tensor in (2, 4)
        for running in (4, 16, 64)
    ]


PAIRS = {
    "Qwen/Qwen3-32B,h100_sxm,0.18.0,": 1.0,
    "Qwen/Qwen3-32B,h200_sxm,0.18.0,": 0.9,
    "meta-llama/Llama-3.1-70B,h200_sxm,0.18.0,fp8": 1.3,
}


def test_a_pairs_own_points_have_no_part_in_its_score(file):
    rows, _ = read_rows([file(*made_up(PAIRS))])
    changed, _ = read_rows([file(*made_up(PAIRS | {"Qwen/Qwen3-32B,h100_sxm,0.18.0,": 7.0}))])
    pair = ("Qwen/Qwen3-32B", "h100_sxm")
    before, after = (
        [item.answer.tpot_ms for item in latency_accuracy.score_left_out(points) if item.row.pair == pair]
        for points in (rows, changed)
    )
    assert before == after


def test_the_report_has_the_keys_that_readers_expect(file, capsys):
    assert latency_accuracy.main([str(file(*made_up(PAIRS), "a,b,,,1,1,1,1,1,1,1,1,1,1")), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for kind in ("tpot", "ttft"):
        assert {"rows", "median_pct", "p90_pct", "by_model"} <= set(found[kind])
        assert found[kind]["rows"] == 18
    assert found["skipped"] == {"unknown model a": 1}


CHOICE = "Qwen/Qwen3-32B,h100_sxm,0.18.0,,1024,1024,16"


def test_rules_hit_where_they_keep_the_limits_at_the_best_throughput_per_gpu(file, capsys):
    path = file(
        f"{CHOICE},1,1,1,1,1,3000,60",  # too slow for any limit
        f"{CHOICE},2,1,1,1,1,150,18",  # the best within 50/2000 and 20/1000
        f"{CHOICE},4,1,1,1,1,100,12",  # the best within 15/500
        f"{CHOICE},8,1,1,1,1,90,9",  # the only one within 10/500
        f"{CHOICE},8,1,1,1,1,9000,90",  # of a layout measured twice the first row counts
        "Qwen/Qwen3-32B,h200_sxm,0.18.0,,1024,1024,16,2,1,1,1,1,150,17",  # alone: no case
    )
    assert layout_choice.main([str(path), "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["limits"]
    assert [(line["tpot_ms"], line["ttft_ms"]) for line in lines] == list(layout_choice.LIMITS)
    assert [line["cases"] for line in lines] == [1, 1, 1, 1]
    assert [line["fewest_gpus"] for line in lines] == [0, 0, 0, 0]
    assert [line["most_gpus"] for line in lines] == [0, 0, 0, 1]


def test_a_pair_that_is_alone_is_scored_by_the_product_or_not_at_all(file, capsys):
    seen = file(f"{DENSE},16,2,1,,1,1,100,20")
    assert latency_accuracy.main([str(seen), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tpot"]["rows"] == 0
    assert found["tpot"]["median_pct"] is None
    assert found["skipped"] == {"alone in its file, and the product's constants have seen it": 1}

    unseen = file("Qwen/Qwen3-32B,l40s,0.18.0,,1024,1024,16,2,1,,1,1,100,20")
    assert latency_accuracy.main([str(unseen), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tpot"]["rows"] == found["product_on_unseen"]["tpot"]["rows"] == 1


def test_a_file_that_is_no_file_of_points_says_what_it_lacks(file, tmp_path, capsys):
    with pytest.raises(SystemExit):
        layout_choice.main([str(tmp_path / "nowhere.csv")])
    assert "measured points are no part of the project" in capsys.readouterr().err
    bare = tmp_path / "bare.csv"
    bare.write_text("model,system\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        latency_accuracy.main([str(bare)])
    assert (
        "has no column concurrency, input_tokens, output_tokens, tp, tpot_ms, ttft_ms"
        in capsys.readouterr().err
    )
