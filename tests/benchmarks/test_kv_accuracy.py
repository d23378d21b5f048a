"""The benchmark's reading of rows and its scores, on rows made up here."""

import json

import pytest

import kv_accuracy
from observations import Case, Skipped, read
from plimsoll.facts.dtypes import Dtype

ROW = {
    "engine": "V1",
    "vllm_version": "0.18.0",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "H100",
    "tp": 1,
    "gpu_memory_utilization": 0.9,
    "max_model_len": 8192,
    "available_kv_gib": 54.0,
    "kv_tokens": 442_368,
}


def rows(tmp_path, *changes):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({**ROW, **change}) + "\n" for change in changes), "utf-8")
    return path


def one(tmp_path, **change):
    return next(read([rows(tmp_path, change)]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": None}, "no model named"),
        ({"model": "a model nobody knows"}, "model not in the catalogue"),
        ({"available_kv_gib": None, "kv_tokens": None}, "no result"),
        (
            {"model": "deepseek-ai/DeepSeek-R1", "tp": None},
            "number of GPUs not stated, and one cannot hold the weights",
        ),
    ],
)
def test_a_row_that_cannot_be_scored_says_why(tmp_path, change, reason):
    found = one(tmp_path, **change)
    assert isinstance(found, Skipped)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("gpu", "stated", "name", "gib"),
    [
        ("H100", None, "H100-SXM-80GB", 79.2),
        ("RTX PRO 6000 (95 GiB)", 95.01, "RTX-PRO-6000", 95.0),
        ("A100 MIG 1g.5gb", None, "A100", 4.75),
        ("B300 (sm103)", 276.62, "B300", 276.6),
        (None, 79.19, "", 79.2),
        ("8x H100", None, "H100-SXM-80GB", 79.2),
        ("4090", None, "RTX-4090", 23.5),
    ],
)
def test_names_of_gpus_are_read_as_people_write_them(tmp_path, gpu, stated, name, gib):
    found = one(tmp_path, gpu=gpu, gpu_mem_gib=stated)
    assert found.gpu.name.startswith(name)
    assert found.device_bytes / 2**30 == pytest.approx(gib, abs=0.1)


def test_a_row_without_gpu_and_memory_keeps_what_needs_neither(tmp_path):
    found = one(tmp_path, gpu=None)
    assert isinstance(found, Case)
    assert found.gpu is None


def test_a_flag_that_is_not_stated_is_its_versions_default(tmp_path):
    found = one(tmp_path, gpu_memory_utilization=None, max_model_len=None, vllm_version="0.20.0").settings
    assert (found.utilization, found.max_num_seqs, found.max_num_batched_tokens) == (0.92, 1024, 8192)
    assert found.max_model_len == 131_072


@pytest.mark.parametrize(
    ("change", "attribute", "expected"),
    [
        ({"kv_cache_dtype": "fp8_e4m3"}, "kv_dtype", Dtype.FP8),
        ({"kv_cache_dtype": "auto"}, "kv_dtype", None),
        ({"notes": "--block-size=128"}, "block_size", 128),
        ({"notes": "prefix caching off"}, "prefix_caching", False),
        ({"enforce_eager": True}, "eager", True),
    ],
)
def test_flags_are_read_from_fields_and_remarks(tmp_path, change, attribute, expected):
    assert getattr(one(tmp_path, **change).settings, attribute) == expected


def test_remarks_give_decode_context_adapters_and_drafts(tmp_path):
    found = one(tmp_path, tp=8, notes="decode-context-parallel-size 2; max_loras 2, rank 16; EAGLE draft")
    assert found.layout.decode_context == 2
    assert (found.settings.lora.max_loras, found.settings.lora.max_rank) == (2, 16)
    assert found.settings.speculation.method == "eagle"


def test_terms_that_add_up_to_another_share_than_stated_win(tmp_path):
    printed = {
        "model_weights_gib": 15.0,
        "activation_peak_gib": 4.8,
        "non_torch_gib": 0.1,
        "available_kv_gib": 55.3,
    }
    found = one(tmp_path, **printed)
    assert found.settings.utilization == 0.95
    assert "add up to 0.95" in found.notes[0]


@pytest.mark.parametrize(
    ("tokens", "concurrency", "line"),
    [(819_200, 100.0, "request"), (246_576, 169.82, "pool")],
)
def test_a_version_that_is_a_year_is_its_newest_with_the_rows_own_line(tmp_path, tokens, concurrency, line):
    found = one(
        tmp_path, vllm_version="2026", kv_tokens=tokens, max_concurrency=concurrency, max_model_len=8192
    )
    assert found.engine.kv_tokens_line == line


@pytest.mark.parametrize(
    ("failure", "memory"),
    [
        ("No available memory for the cache blocks", True),
        ("CUDA OOM during CUDA graph capture", True),
        ("max seq len (29000) is larger than the maximum number of tokens", True),
        ("max_num_seqs (1024) exceeds available Mamba cache blocks (939)", True),
        ("Segmentation fault later in start-up", False),
        ("tokenizer not found", False),
    ],
)
def test_failures_for_memory_or_length_are_told_from_others(tmp_path, failure, memory):
    assert one(tmp_path, failed=failure).failed_for_memory is memory


def test_the_object_has_the_keys_that_readers_rely_on(tmp_path, capsys):
    path = rows(
        tmp_path,
        {},
        {"model": None},
        {
            "available_kv_gib": -1.4,
            "kv_tokens": None,
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "failed": "OOM",
        },
        {"failed": "Segmentation fault"},
    )
    assert kv_accuracy.main([str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["given_gib"]["rows"] == 2
    assert found["given_gib"]["rows_within_0_5pct"] == 2
    assert {"rows", "median_pct", "p90_pct", "in_interval_pct", "half_width_pct", "by_class"} <= set(
        found["from_config"]
    )
    assert found["from_config"]["by_class"]["dense"]["rows"] == found["from_config"]["rows"]
    assert found["fit"]["rows"] == 2
    assert found["fit"]["failed_called_fitting"] == 0
    assert found["fit"]["fitting_called_failing"] == 0
    assert found["skipped"]["no model named"] == 1
    assert found["skipped"]["fit: failed otherwise: Segmentation fault"] == 1


def test_every_row_is_listed_on_request(tmp_path, capsys):
    kv_accuracy.main([str(rows(tmp_path, {})), "--rows"])
    out = capsys.readouterr().out
    assert "given_gib: predicted, observed, error" in out
    assert out.count("meta-llama/Llama-3.1-8B-Instruct") == 3
