"""What engines export, under old names and new ones, one engine or several, and as one value for a stretch of time."""

import pytest

from plimsoll.load.engine import EngineWindow, Look, exported_names, look, window
from plimsoll.load.exposition import Sample, read_exposition

NEW = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"b\\" {c}"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2 1700000000000
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_preemptions_total{engine="0",model_name="m"} 1e1
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e9
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 6
vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 12
vllm:request_queue_time_seconds_count{engine="0",model_name="m"} 4
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf",model_name="m"} 4
vllm:prefix_cache_hits_total 10
vllm:prefix_cache_queries_total 40
process_start_time_seconds 1.7e+09
this is no sample
"""
OLD = """
vllm:num_requests_running{model_name="m"} 3
vllm:gpu_cache_usage_perc{model_name="m"} 0.4
vllm:gpu_prefix_cache_hits_total 1
"""
SGLANG = 'sglang:num_running_reqs{model_name="m"} 9\nsglang:num_queue_reqs 1\nsglang:token_usage 0.3\n'
OURS = frozenset({("team", "chat-0"), ("team", "chat-1")})


def gpu(value: float, metric: str = "DCGM_FI_DEV_GPU_UTIL", **labels: str) -> str:
    """A line of a GPU exporter."""
    told = ",".join(f'{name}="{text}"' for name, text in {"gpu": "0", **labels}.items())
    return f"{metric}{{{told}}} {value}\n"


MINE = gpu(40, namespace="team", pod="chat-0") + gpu(60, namespace="team", pod="chat-1")
STRANGERS = gpu(90, namespace="team", pod="other-0") + gpu(90, namespace="else", pod="chat-0") + gpu(90)


def test_samples_are_read_with_their_labels():
    samples = list(read_exposition(NEW))
    assert samples[0] == Sample("vllm:num_requests_running", {"engine": "0", "model_name": 'a "b" {c}'}, 3.0)
    assert len(samples) == 15
    assert samples[2].value == 2


@pytest.mark.parametrize("line", ["", "# x", "a{", "a b c d", "1a 2", "a{b=1} x", "a"])
def test_what_is_no_sample_is_left_out(line: str):
    assert list(read_exposition(line)) == []


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        (
            NEW,
            Look(
                started=(1.7e9,),
                running=7,
                waiting=2,
                kv_usage=0.75,
                preemptions=10,
                finished=11,
                queue_s=12,
                queued=4,
                prefix_hits=10,
                prefix_queries=40,
            ),
        ),
        (OLD, Look(running=3, kv_usage=0.4, prefix_hits=1)),
        (SGLANG, Look(running=9, waiting=1, kv_usage=0.3)),
        ("", Look()),
    ],
)
def test_metrics_are_found_under_whatever_name_they_have(page: str, seen: Look):
    assert look([page]) == seen


@pytest.mark.parametrize(
    ("page", "busy"),
    [
        (MINE, 0.5),
        (MINE + STRANGERS, 0.5),
        (STRANGERS, None),
        (gpu(40), None),
        (gpu(40, pod="chat-0"), None),
        (gpu(0.9, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", namespace="team", pod="chat-0") + MINE, 0.9),
        (gpu(0.9, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", namespace="else", pod="chat-0") + MINE, 0.5),
        # As a Prometheus hands on what it fetched from an exporter.
        (gpu(40, namespace="team", pod="chat-0", exported_namespace="else", exported_pod="chat-0"), None),
        (gpu(40, namespace="gpu", pod="exporter", exported_namespace="team", exported_pod="chat-0"), 0.4),
    ],
)
def test_gpus_count_where_the_exporter_says_that_a_pod_of_the_deployment_has_them(
    page: str, busy: float | None
):
    assert look([page], OURS) == Look(gpu_busy=busy)
    assert look([page]) == Look(), "of whom nobody knows the pods, no GPU is known either"


def test_pages_of_several_pods_are_one_look():
    both = look([NEW, NEW])
    assert (both.running, both.kv_usage, both.finished) == (14, 0.75, 22)


def test_every_logical_name_that_a_look_reads_is_a_fact():
    assert {
        "running",
        "waiting",
        "kvUsage",
        "preemptions",
        "requestSuccess",
        "queueTime",
        "prefillTime",
    } <= set(exported_names())
    assert exported_names()["kvUsage"].index("vllm:kv_cache_usage_perc") < exported_names()["kvUsage"].index(
        "vllm:gpu_cache_usage_perc"
    )


def stretch(*looks: Look) -> EngineWindow:
    found = window(looks)
    assert found is not None
    return found


def test_gauges_are_averaged_and_counters_are_subtracted():
    found = stretch(
        Look(running=2, waiting=0, kv_usage=0.2, preemptions=5, finished=10, queue_s=1, queued=10),
        Look(running=6, waiting=4, kv_usage=0.8, preemptions=9, finished=30, queue_s=7, queued=30),
    )
    assert (found.running_mean, found.running_max, found.waiting_mean) == (4, 6, 2)
    assert (found.kv_usage_mean, found.kv_usage_max) == (0.5, 0.8)
    assert (found.preemptions, found.finished, found.queue_ms) == (4, 20, 300)


def test_what_is_not_exported_is_none_and_never_zero():
    found = stretch(Look(running=1), Look(running=1))
    assert (found.waiting_mean, found.kv_usage_max, found.preemptions, found.queue_ms, found.gpu_busy) == (
        None,
        None,
        None,
        None,
        None,
    )
    assert window([]) is None
    assert window([Look(gpu_busy=0.5)]) is None


def test_counters_of_different_engines_are_not_subtracted():
    found = stretch(
        Look(started=(1.0,), running=1, preemptions=5), Look(started=(2.0,), running=1, preemptions=9)
    )
    assert found.several
    assert found.preemptions is None


def test_a_counter_that_fell_is_no_number():
    assert stretch(Look(running=1, preemptions=9), Look(running=1, preemptions=1)).preemptions is None


@pytest.mark.parametrize(
    ("running", "waiting", "held"),
    [
        ([16, 16, 15, 16], [3, 5, 2, 1], 16),
        ([16, 9, 12, 5], [3, 5, 2, 1], None),
        ([16, 16, 16, 16], [0, 0, 0, 0], None),
        ([8, 16, 16, 16], [0, 4, 5, 6], 16),
        ([16, 2, 3, 4], [9, 0, 0, 0], None),
    ],
)
def test_a_limit_shows_where_running_stands_still_while_others_wait(
    running: list[float], waiting: list[float], held: float | None
):
    looks = [Look(running=one, waiting=other) for one, other in zip(running, waiting, strict=True)]
    assert stretch(*looks).held_at == held
