"""`plimsoll memory`: tables whose rows move the way memory does, from what is said on the command line alone."""

import json
from pathlib import Path

import pytest

from plimsoll.cli.memory import TENSORS, UTILIZATIONS
from tests.cli.running import plimsoll

TINY = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1024,
    "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
}  # fmt: skip


def rows(*options: str) -> list[dict]:  # type: ignore[type-arg]
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", *options, "-o", "json")
    assert ran.err == ""
    held: list[dict] = json.loads(ran.out)["rows"]  # type: ignore[type-arg]
    return held


def tokens(row: dict) -> float:  # type: ignore[type-arg]
    capacity = row["ledger"]["capacity"]
    return 0.0 if capacity is None else float(capacity["tokens"]["mid"])


def test_without_a_sweep_the_usual_sizes_are_compared():
    assert [row["tensor"] for row in rows()] == list(TENSORS)


def test_one_size_is_shown_term_by_term():
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "2")
    assert ran.code == 0
    for word in ("[WWW", "TERM", "weights", "KV cache", "Verdict"):
        assert word in ran.out


def test_more_utilization_is_never_fewer_tokens():
    swept = rows("--tp", "2", "--sweep", "utilization")
    assert [row["utilizationPercent"] for row in swept] == list(UTILIZATIONS)
    counted = [tokens(row) for row in swept]
    assert counted == sorted(counted)


def test_a_context_sweep_ends_at_the_model_s_limit():
    lengths = [row["contextTokens"] for row in rows("--tp", "2", "--sweep", "context")]
    assert lengths == [2048, 4096, 8192, 16384, 32768, 40960]


@pytest.mark.parametrize(("written", "tokens"), [("16384", 16384), ("16K", 16384), ("16k", 16000)])
def test_a_length_may_be_written_short(written: str, tokens: int):
    assert [row["contextTokens"] for row in rows("--tp", "2", "--context-tokens", written)] == [tokens]


@pytest.mark.parametrize("written", ["long", "16.5K", "-1", "0", "15"])
def test_a_length_that_is_none_is_told_with_what_would_be_right(written: str):
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", f"--context-tokens={written}")
    assert ran.code == 3
    assert written in ran.err
    assert "write" in ran.err or "use at least 16" in ran.err


def test_smaller_cache_entries_are_more_tokens():
    swept = rows("--tp", "2", "--sweep", "kv-dtype")
    assert swept[0]["kvDtype"] == "auto"
    assert [row["kvDtype"] for row in swept].count("fp8") == 1
    counted = [tokens(row) for row in swept if row["refused"] is None]
    assert len(counted) >= 3
    assert counted == sorted(counted)


def test_a_size_that_the_heads_forbid_says_so():
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "2,3")
    assert ran.code == 0
    assert "64 attention heads do not divide by 3" in ran.out


def test_nothing_that_fits_is_exit_code_2():
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "L4", "--tp", "1")
    assert ran.code == 2
    assert "does not fit" in ran.out


def test_concurrency_is_shared_out():
    text = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "2,4", "--concurrency", "64").out
    assert "TOKENS EACH" in text


@pytest.mark.parametrize("sweep", ["utilization", "context", "tp", "kv-dtype"])
def test_tables_fit_the_page(sweep: str):
    out = plimsoll(
        "memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "1,2", "--sweep", sweep, "--concurrency", "9"
    ).out
    assert max(map(len, out.splitlines())) <= 125
    assert "…" not in out


def test_a_folder_is_a_model(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    ran = plimsoll("memory", str(tmp_path), "--gpu", "L4")
    assert ran.code == 0
    assert "folder" in ran.out


def test_an_older_engine_counts_as_it_did():
    old, new = (
        plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "2", "--engine-version", v)
        for v in ("0.9.0", "0.33.0")
    )
    assert "vllm 0.9.0" in old.out
    assert old.out != new.out


def test_an_engine_that_keeps_states_for_the_asking_only_has_more_room_for_tokens():
    asked = ("memory", "Qwen/Qwen3-Next-80B-A3B-Instruct", "--gpu", "H200", "--tp", "4", "-o", "json")
    asking, always = (
        json.loads(plimsoll(*asked, "--engine-version", version).out)["rows"]
        for version in ("0.27.1", "0.28.0")
    )
    assert tokens(asking[0]) > tokens(always[0])


def test_a_model_that_keeps_no_cache_shows_no_tokens_and_no_requests():
    ran = plimsoll("memory", "BAAI/bge-m3", "--gpu", "L4", "--tp", "1,2")
    rows = [line.split() for line in ran.out.splitlines() if line.startswith((" 1", " 2"))]
    assert [(row[3], row[5:8]) for row in rows] == [("-", ["-", "-", "-"])] * 2


def test_a_reason_names_the_knobs_of_its_rows():
    ran = plimsoll("memory", "Qwen/Qwen3-8B", "--gpu", "A10G", "--tp", "1,3", "--sweep", "kv-dtype")
    assert "tp 1; kv dtype auto: does not fit" in ran.out
    assert "tp 3: heads: 32 attention heads" in ran.out


@pytest.mark.parametrize("version", ["none", "newest", "v"])
def test_a_version_that_names_no_release_is_refused(version: str) -> None:
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--engine-version", version)
    assert ran.code == 3
    assert f"--engine-version: {version!r} names no release of vLLM" in ran.err


@pytest.mark.parametrize(("written", "meant"), [("0.9", "as 90"), (".85", "as 85"), ("0.925", "as 92")])
def test_a_fraction_as_the_engine_takes_it_is_told_in_percent(written: str, meant: str):
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--utilization", written)
    assert ran.code == 3
    assert f"{written} is a fraction; write it in percent, {meant}" in ran.err


@pytest.mark.parametrize("written", [".9.5", "0.9x", "nan", "101"])
def test_what_is_no_percent_is_told_to_be_none(written: str):
    ran = plimsoll("memory", "Qwen/Qwen3-32B", "--gpu", "H100", "--utilization", written)
    assert ran.code == 3
    assert "Invalid value for '--utilization'" in ran.err


def test_a_cache_that_the_engine_has_no_kernels_for_is_no_row_that_fits():
    asked = ("memory", "Qwen/Qwen3-32B", "--gpu")
    ran = plimsoll(*asked, "H100", "--sweep", "kv-dtype", "--engine-version", "0.28.0")
    [row] = [line for line in ran.out.splitlines() if line.split()[:1] == ["nvfp4"]]
    assert "cannot run" in row
    assert "nvfp4: cache-format: a cache of NVFP4 needs" in " ".join(ran.out.split())
    assert plimsoll(*asked, "B200", "--kv-dtype", "nvfp4", "--engine-version", "0.28.0").code == 0
    assert plimsoll(*asked, "H100", "--kv-dtype", "nvfp4", "--engine-version", "0.33.0").code == 0


def test_latents_of_four_bits_have_a_format_of_their_own_and_a_row_of_no_other():
    asked = ("memory", "deepseek-ai/DeepSeek-V3.2", "--gpu", "B200", "--tp", "8")
    plain = plimsoll(*asked, "--kv-dtype", "nvfp4", "-o", "json")
    assert plain.code == 2
    assert "write fp8 or, where the engine reads it, nvfp4_ds_mla" in plain.out
    assert plimsoll(*asked, "--kv-dtype", "nvfp4_ds_mla").code == 0
    swept = plimsoll(*asked, "--sweep", "kv-dtype", "-o", "json")
    assert '"nvfp4_ds_mla"' in swept.out
    assert '"nvfp4"' not in swept.out


def test_latents_have_no_row_of_a_format_that_is_scaled_by_head():
    asked = ("memory", "deepseek-ai/DeepSeek-R1", "--gpu", "H200", "--tp", "8")
    assert "per_token_head" not in plimsoll(*asked, "--sweep", "kv-dtype", "-o", "json").out
    for word in ("int4_per_token_head", "fp8_e5m2"):
        refused = plimsoll(*asked, "--kv-dtype", word)
        assert refused.code == 2
        assert "caches latents, which the engine keeps in no such format" in " ".join(refused.out.split())
    assert plimsoll(*asked, "--kv-dtype", "fp8_e4m3").code == 0
