"""Log lines of vLLM up to 0.33: as its source has them, or as people reported them; the figures that people read in them are asserted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_runtime.startup import GIB, Startup

PREFIX = "(EngineCore_DP0 pid=272) INFO 11-21 20:24:41 [gpu_worker.py:298] "


def gib(value: float) -> int:
    return round(value * GIB)


def after(*lines: str) -> Startup:
    startup = Startup(0.0)
    for at, line in enumerate(lines, 1):
        startup.take(line, float(at))
    return startup


@pytest.mark.parametrize(
    ("printed_by", "line", "figures"),
    [
        ("0.5.3, reported", "Loading model weights took 57.7520 GB", {"weights": gib(57.752)}),
        ("0.6.5, reported", "# GPU blocks: 1478, # CPU blocks: 0", {"blocks": 1478}),
        ("0.6.5, reported", "# cuda blocks: 7351, # CPU blocks: 512", {"blocks": 7351}),
        (
            "0.7, reported",
            ("model weights take 14.96GiB; non_torch_memory takes 1.79GiB; PyTorch activation peak memory takes 1.26GiB; the"
            " rest of the memory reserved for KV Cache is 14.65GiB."),
            {"weights": gib(14.96), "non_torch": gib(1.79), "activation": gib(1.26), "kv": gib(14.65)},
        ),
        ("0.8.5, reported", "Model loading took 7.1217 GiB and 3.42 seconds", {"weights": gib(7.1217)}),
        (
            "0.10.2, reported, to 0.20.2, v1/worker/gpu_worker.py",
            ("Actual usage is 14.08 GiB for weight, 1.97 GiB for peak activation, 0.07 GiB for non-torch memory, and 0.67"
            " GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=5`"),
            {"weights": gib(14.08), "activation": gib(1.97), "non_torch": gib(0.07), "graphs": gib(0.67)},
        ),
        ("0.11.0, reported", "Available KV cache memory: -2.28 GiB", {"kv": gib(-2.28)}),
        (
            "0.11.0, reported",
            "Multiplying the GPU KV cache size by the dcp_world_size 2. GPU KV cache size: 1,723,584 tokens",
            {"kv_tokens": 1723584},
        ),
        (
            "0.11.2, reported",
            "torch peak memory increase: 0.22GiB; non-torch forward increase memory: 0.09GiB; weights memory: 1.24GiB.",
            {"activation": gib(0.22), "non_torch": gib(0.09), "weights": gib(1.24)},
        ),
        ("0.20.2, v1/core/kv_cache_utils.py", "GPU KV cache size: 2,618,281 tokens", {"kv_tokens": 2618281}),
        ("0.20.2, v1/worker/gpu/model_runner.py", "Model loading took 38.8 GiB and 9.876543 seconds", {"weights": gib(38.8)}),
        ("0.20.2 to 0.33.0, v1/worker/gpu_worker.py", "Available KV cache memory: 10.04 GiB", {"kv": gib(10.04)}),
        ("0.20.2 to 0.33.0, v1/worker/gpu_model_runner.py", "Graph capturing finished in 21 secs, took 0.67 GiB", {"graphs": gib(0.67)}),
        ("0.20.2 to 0.33.0, v1/worker/gpu_model_runner.py", "Estimated CUDA graph memory: 0.17 GiB total", {"graphs_estimated": gib(0.17)}),
        ("0.20.2 to 0.33.0, v1/worker/gpu_model_runner.py", "Model loading took 64.38 GiB memory and 31.250412 seconds", {"weights": gib(64.38)}),
        (
            "0.20.2 to 0.33.0, v1/worker/gpu_worker.py",
            "CUDA graph pool memory: 8.57 GiB (actual), 33.06 GiB (estimated), difference: 24.49 GiB (285.8%).",
            {"graphs": gib(8.57), "graphs_estimated": gib(33.06)},
        ),
        (
            "0.20.2 to 0.33.0, v1/worker/gpu_worker.py",
            ("Initial free memory 78.62 GiB, reserved 55.08 GiB memory for KV Cache as specified by kv_cache_memory_bytes config"
            " and skipped memory profiling. This does not respect the gpu_memory_utilization config."),
            {"kv": gib(55.08)},
        ),
        ("0.20.2 to 0.33.0, v1/worker/cpu_worker.py", "Explicitly set (1.0/23.54) GiB for KV cache on node 0.", {"kv": gib(1)}),
        (
            "0.32.0 and 0.33.0, v1/worker/gpu_worker.py",
            ("Actual usage is 39.98 GiB for consumed memory (weights + non-torch), 4.04 GiB for peak activation, and 1.2 GiB"
            " for CUDAGraph memory. Replace"),
            {"consumed": gib(39.98), "activation": gib(4.04), "graphs": gib(1.2)},
        ),
        (
            "0.32.0 and 0.33.0, v1/core/kv_cache_utils.py",
            "CPU KV cache size: 262,144 tokens, Maximum concurrency for 4,096 tokens per request: 64.00x",
            {"kv_tokens": 262144},
        ),
    ],
)  # fmt: skip
def test_a_line_gives_its_figures_and_no_other(printed_by, line, figures):
    for text in (line, PREFIX + line):
        found = {name: value for name, value in after(text).measured._asdict().items() if value is not None}
        assert found == figures, printed_by


def test_weights_are_those_of_the_largest_rank_and_kv_memory_that_of_the_smallest():
    startup = after(
        "(Worker_TP0) Model loading took 30.59 GiB memory and 3 seconds",
        "(Worker_TP1) Model loading took 30.61 GiB memory and 3 seconds",
        "(Worker_TP0) Available KV cache memory: 8.22 GiB",
        "(Worker_TP1) Available KV cache memory: 8.20 GiB",
    )
    assert startup.figures().weights == gib(30.61)
    assert startup.figures().kv == gib(8.2)


def test_the_estimate_for_graphs_is_not_counted_as_activation_too():
    startup = after(
        "Estimated CUDA graph memory: 0.50 GiB total",
        "Actual usage is 15.03 GiB for consumed memory (weights + non-torch), 1.59 GiB for peak activation, and 0.09 GiB for"
        " CUDAGraph memory.",
    )
    assert startup.figures().activation == gib(1.59) - gib(0.5)
    assert startup.figures().graphs == gib(0.09)


@pytest.mark.parametrize(
    ("lines", "cache"),
    [
        (["Directly load AOT compilation from path /c/x"], "warm"),
        (
            ["Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 3.912 s"],
            "warm",
        ),
        (["Dynamo bytecode transform time: 5.91 s"], "cold"),
        (["[backbone] saved AOT compiled function to /c/torch_aot_compile/d1/rank_0_0/model"], "cold"),
        (
            [
                "Directly load AOT compilation from path /c/x",
                "[backbone] Compiling model again due to a load failure from /c/x",
            ],
            "cold",
        ),
        (
            [
                "Directly load the compiled graph(s) for compile range (1, 8) from the cache",
                "Compiling a graph for compile range (8, 16) takes 9.1 s",
            ],
            "cold",
        ),
        (["Enforce eager set, disabling torch.compile"], None),
        # 0.32 on CPUs: what it kept it cannot load, so it compiles again, with the kernels that it finds.
        (
            [
                "(Worker pid=31490) INFO 11-22 17:55:30 [cpu_model_runner.py:87] Warming up model for the compilation...",
                (
                    "(Worker pid=31490) WARNING 11-22 17:55:31 [decorators.py:333] [backbone] Compiling model again due to a load failure"
                    " from /c/torch_aot_compile/c6/rank_0_0/model, reason: 'function' object has no attribute 'finalize_loading'"
                ),
                "(Worker pid=31490) INFO 11-22 17:56:01 [decorators.py:743] [backbone] saved AOT compiled function to /c/model",
                "(Worker pid=31490) INFO 11-22 17:56:04 [monitor.py:91] [backbone] Initial profiling/warmup run took 2.39 s",
            ],
            "cold",
        ),
    ],
)
def test_the_compile_cache_is_cold_as_soon_as_one_graph_is_compiled(lines, cache):
    assert after(*lines).measured.compile_cache == cache


def test_phases_follow_one_another_and_end_when_the_engine_serves():
    startup = Startup(100.0)
    for at, line in (
        (108.0, "(APIServer pid=1) INFO [api_utils.py:286] non-default args: {'model': 'm'}"),
        (112.0, "INFO [core.py:133] Initializing a V1 LLM engine (v0.33.0) with config: model='m'"),
        (115.0, "INFO [gpu_model_runner.py:68] Starting to load model m..."),
        (145.0, "Model loading took 14.99 GiB memory and 30 seconds"),
        (146.0, "Using cache directory: /c/torch_compile_cache/1/rank_0_0/backbone for vLLM's torch.compile"),
        (160.0, "torch.compile took 14.0 s in total"),
        (170.0, "GPU KV cache size: 400,000 tokens"),
        (185.0, "Graph capturing finished in 14 secs, took 0.60 GiB"),
        (188.5, "INFO:     Application startup complete."),
        (300.0, "Starting to load model of somebody else"),
    ):
        startup.take(line, at)
    assert [tuple(phase) for phase in startup.phases(500.0)] == [
        ("imports", 8.0),
        ("config", 4.0),
        ("engine", 3.0),
        ("weights", 30.0),
        ("prepare", 1.0),
        ("compile", 14.0),
        ("profile", 10.0),
        ("warmup", 15.0),
        ("server", 3.5),
    ]
    assert startup.ended == 188.5
    assert startup.version == "0.33.0"


def test_workers_that_lag_behind_do_not_turn_the_phase_back():
    startup = after(
        "Model loading took 1 GiB memory and 2 seconds", "(Worker_TP1) Starting to load model m..."
    )
    assert startup.phase == "prepare"


def test_on_cpus_the_warm_up_is_the_compilation():
    startup = after(
        "Starting to load model m...",
        "INFO [cpu_model_runner.py:87] Warming up model for the compilation...",
        "INFO [monitor.py:91] [backbone] Initial profiling/warmup run took 0.73 s",
    )
    assert [phase.name for phase in startup.phases(9.0)] == ["imports", "weights", "compile", "profile"]


def test_a_rank_without_an_engine_of_its_own_has_phases_too():
    startup = after(
        "(Worker pid=9) INFO [parallel_state.py:1906] world_size=2 rank=1 distributed_init_method=tcp://a:1"
    )
    assert startup.phase == "engine"


def test_how_many_files_are_read_is_part_of_the_text():
    line = "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:02<00:07,  2.5s/it]"
    assert after("Starting to load model m...", line).text() == "loading weights: 1 of 4 files"


@pytest.mark.parametrize(
    "line",
    [
        "(APIServer pid=2) INFO 11-21 20:24:04 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0",
        "INFO 05-01 [api_server.py:1] vLLM API server version 0.32.0",
        "INFO 05-01 [core.py:77] Initializing a V1 LLM engine (v0.32.0) with config: model='m'",
    ],
)
def test_the_version_is_read_from_the_banner(line):
    assert after(line).version == "0.32.0"


@given(st.lists(st.text(max_size=200), max_size=20))
def test_no_line_breaks_the_reader(lines):
    after(
        *lines, "Model loading took . GiB", "GPU KV cache size: , tokens", "Available KV cache memory: -. GiB"
    )
