from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.engines import (
    EngineNotPlannedError,
    UnknownEngineError,
    engine_facts,
    engine_names,
    engine_profile,
)
from plimsoll.prometheus.vocabulary import COUNTERS

GIB = 1 << 30


@pytest.mark.parametrize(
    ("version", "gpu", "gib", "unified", "expected"),
    [
        ("0.33.0", "hopper", 79.2, False, (8192, 1024)),
        ("0.33.0", "hopper", 139.8, False, (8192, 1024)),
        ("0.33.0", "blackwell", 180.0, False, (16384, 1024)),
        ("0.33.0", "cdna3", 191.5, False, (16384, 1024)),
        ("0.33.0", "ampere", 79.2, False, (2048, 256)),
        ("0.33.0", "ada", 44.4, False, (2048, 256)),
        ("0.33.0", "blackwell", 119.6, True, (2048, 256)),
        ("0.32.0", "blackwell", 119.6, True, (8192, 1024)),
        ("0.27.0", "blackwell", 180.0, False, (8192, 1024)),
        ("0.28.0", "blackwell", 180.0, False, (16384, 1024)),
        ("0.11.0", "hopper", 79.2, False, (8192, 1024)),
        ("0.8.5", "ampere", 79.2, False, (8192, 1024)),
        ("0.9.0", "ampere", 79.2, False, (2048, 256)),
        ("0.6.6", "hopper", 79.2, False, (2048, 256)),
    ],
)
def test_batch_defaults_follow_memory_and_class(version, gpu, gib, unified, expected):
    facts = engine_facts("vllm", version)
    assert facts.batch_defaults(int(gib * GIB), gpu, unified_memory=unified) == expected


@pytest.mark.parametrize(
    ("version", "has"),
    [("0.20.2", False), ("0.31.0", False), ("0.32.0", True), ("0.32.1", True), ("0.33.0", True)],
)
def test_a_watermark_is_told_only_to_versions_whose_own_parser_takes_it(version, has):
    assert ("--watermark" in engine_facts("vllm", version).flags) is has


@pytest.mark.parametrize(("version", "ahead"), [("0.12.0", False), ("0.14.0", True), ("0.33.0", True)])
def test_steps_are_chosen_ahead_by_versions_that_do_so_by_themselves(version, ahead):
    assert engine_facts("vllm", version).steps_ahead is ahead


@pytest.mark.parametrize(("ranks", "expected"), [(1, (2048, 128)), (2, (4096, 256))])
def test_batch_defaults_on_cpus_grow_with_ranks(ranks, expected):
    assert engine_facts().batch_defaults(64 * GIB, "cpu", ranks=ranks) == expected


@pytest.mark.parametrize(("length", "tokens"), [(1024, 2048), (8192, 8192), (32768, 32768), (65536, 2048)])
def test_the_first_engine_steps_over_whole_prompts_up_to_32k(length, tokens):
    assert engine_facts("vllm", "0.6.6").batch_defaults(24 * GIB, "ada", max_model_len=length)[0] == tokens


@given(
    st.integers(1, 400 * GIB), st.sampled_from(["hopper", "ampere", "cpu", "cdna3"]), st.integers(1, 1 << 20)
)
def test_defaults_keep_a_token_for_every_sequence_and_stay_within_what_sequences_hold(memory, gpu, length):
    tokens, sequences = engine_facts().batch_defaults(memory, gpu, max_model_len=length)
    assert 1 <= sequences <= tokens
    assert tokens <= 1024 * length


@pytest.mark.parametrize(
    ("version", "utilization", "graphs", "line"),
    [
        ("0.6.0", 0.90, False, "pool"),
        ("0.11.2", 0.90, False, "pool"),
        ("0.19.0", 0.90, False, "pool"),
        ("0.20.0", 0.92, True, "pool"),
        ("0.20.1", 0.92, True, "request"),
        ("0.33.0", 0.92, True, "request"),
    ],
)
def test_the_budget_rules_are_those_of_the_version(version, utilization, graphs, line):
    facts = engine_facts("vllm", version)
    assert (facts.utilization_default, facts.graphs_in_budget, facts.kv_tokens_line) == (
        utilization,
        graphs,
        line,
    )


@pytest.mark.parametrize(
    ("version", "taken", "said"),
    [
        ("0.33.0", "0.33.0", None),
        (None, "0.33.0", None),
        (
            "0.19.0",
            "0.18.0",
            "there are no facts of vLLM 0.19.0 itself; those of 0.18.0, the nearest lower version, are used",
        ),
        ("0.40.1", "0.33.0", "nearest lower"),
        ("0.1.0", "0.2.0", "older than every version that is known"),
        ("built at home", "0.33.0", "'built at home' names no release of vLLM"),
    ],
)
def test_a_version_without_facts_takes_the_nearest_lower_one_and_says_so(version, taken, said):
    facts = engine_facts("vllm", version)
    assert facts.facts_version == taken
    assert (facts.approximated_from is None) if said is None else (said in (facts.approximated_from or ""))


@pytest.mark.parametrize(
    ("version", "logical", "names"),
    [
        ("0.33.0", "kvUsage", ("vllm:kv_cache_usage_perc",)),
        ("0.9.2", "kvUsage", ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")),
        ("0.8.5", "kvUsage", ("vllm:gpu_cache_usage_perc",)),
        ("0.33.0", "interToken", ("vllm:inter_token_latency_seconds",)),
        ("0.11.0", "interToken", ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")),
        ("0.8.5", "swapped", None),
        ("0.20.2", "admissionRejections", None),
        ("0.33.0", "admissionRejections", ("vllm:admission_rejections_total",)),
    ],
)
def test_metrics_carry_the_names_of_their_version(version, logical, names):
    assert engine_facts("vllm", version).metrics.get(logical) == names


def test_kv_dtypes_come_from_the_parsers_own_list_where_there_is_one():
    assert "nvfp4_ds_mla" in engine_facts("vllm", "0.33.0").kv_dtypes
    assert "nvfp4_ds_mla" not in engine_facts("vllm", "0.20.2").kv_dtypes
    assert engine_facts("vllm", "0.8.5").kv_dtypes == ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")


@pytest.mark.parametrize("name", [n for n in engine_names() if not engine_profile(n).plans])
def test_an_engine_that_cannot_be_planned_says_why(name):
    with pytest.raises(EngineNotPlannedError, match=r"nothing can be planned for .+: .+"):
        engine_facts(name)


def test_an_unknown_engine_names_the_known_ones():
    with pytest.raises(UnknownEngineError, match="known are sglang, tensorrt-llm, tgi, vllm"):
        engine_profile("llamacpp")


def test_releases_are_listed_in_the_order_they_appeared():
    days = list(engine_profile("vllm").releases.values())
    assert all(earlier < later for earlier, later in pairwise(days))


@pytest.mark.parametrize(
    "said", [engine_facts("vllm").metrics, engine_profile("sglang").metrics], ids=["vllm", "sglang"]
)
def test_what_is_read_as_a_counter_is_exported_as_one(said):
    """Both are exported from Python, whose client ends the name of each counter so: of a gauge an increase means nothing."""
    names = [name for word in COUNTERS for name in said.get(word, ())]
    assert len(names) >= 4
    assert [name for name in names if not name.endswith("_total")] == []
