import json

import learning

ROW = {
    "engine": "V1",
    "vllm_version": "v0.18.0",
    "model": "Qwen/Qwen3-32B",
    "gpu": "H200",
    "tp": 1,
    "gpu_memory_utilization": 0.9,
    "max_model_len": 8192,
    "model_weights_gib": 62.0,
    "available_kv_gib": 55.0,
    "max_num_seqs": 256,
}


def told(tmp_path, capsys, *rows, flags=("--json",)):
    file = tmp_path / "starts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert learning.main([str(file), *flags]) == 0
    return capsys.readouterr().out


def test_a_start_teaches_another_of_the_model_with_another_context(tmp_path, capsys):
    found = json.loads(told(tmp_path, capsys, ROW, {**ROW, "max_model_len": 32768}))
    assert found["pairs"] == found["better"] == 2
    assert found["worse"] == 0
    assert found["after_median_pct"] < 0.1 < found["before_median_pct"]


def test_starts_of_other_models_gpus_or_versions_are_no_pairs(tmp_path, capsys):
    others = [{**ROW, "gpu": "H100"}, {**ROW, "vllm_version": "v0.20.0"}, {**ROW, "model": "Qwen/Qwen3-0.6B"}]
    found = json.loads(told(tmp_path, capsys, ROW, *others))
    assert found["pairs"] == found["worse"] == 0


def test_a_start_that_logged_no_room_teaches_nothing(tmp_path, capsys):
    silent = {**ROW, "available_kv_gib": None, "kv_tokens": 220_000}
    found = json.loads(told(tmp_path, capsys, ROW, silent))
    assert found["pairs"] == 1


def test_every_pair_is_listed_with_what_differs(tmp_path, capsys):
    text = told(tmp_path, capsys, ROW, {**ROW, "tp": 2, "max_model_len": 4096}, flags=("--rows",))
    assert text.count("(differs: parallelism, context)") == 2
    assert "2 pairs" in text
