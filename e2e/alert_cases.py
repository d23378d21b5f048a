"""What each alert is seen to fire by, and just not to: half an hour of metrics in which all is well, and what is changed of it.

A case says everything that fires then, so that no alert fires beside another unless it should.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from alert_case import Case, case
from alert_series import (
    AGAIN,
    AT_MAX,
    AVAILABLE,
    CONDITION,
    DRAINS_BESIDE,
    ERRORS,
    FAILED,
    FINISHED,
    KV,
    LEADS,
    LIMITED,
    LLM,
    MEASURED,
    METRICS,
    MINUTES,
    OVER_BUDGET,
    PAUSED,
    POD,
    PREDICTED,
    PREDICTED_RUNNING,
    PREEMPTIONS,
    REFUSED,
    RESTARTS,
    RUNNING,
    STALLED,
    TURNS,
    WAITING,
    WAITING_BESIDE,
    WAITING_TRIED,
    WELL,
    counted,
    held,
    itl,
    operators,
    others,
    prompts,
    replicas,
    rising,
    since,
    slo,
    steady,
    ttft,
)

NOTHING_OF_ENGINES: Final = {name: None for name in WELL if name.startswith("vllm:") and POD in name}

IN_SGLANG: Final = {
    "vllm:kv_cache_usage_perc": "sglang:token_usage",
    "vllm:num_requests_running": "sglang:num_running_reqs",
    "vllm:num_requests_waiting": "sglang:num_queue_reqs",
    "vllm:time_to_first_token_seconds": "sglang:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds": "sglang:inter_token_latency_seconds",
}
"""What another engine exports of it; nothing else."""
IN_OLD_VLLM: Final = {
    **{name: name for name in IN_SGLANG},
    "vllm:kv_cache_usage_perc": "vllm:gpu_cache_usage_perc",
    "vllm:inter_token_latency_seconds": "vllm:time_per_output_token_seconds",
}


JOBS: Final = ('job="pods"', 'job="services"')
PAIR: Final = ('prometheus_replica="0"', 'prometheus_replica="1"')


def twice(series: Mapping[str, str], looks: Sequence[str] = JOBS) -> dict[str, str | None]:
    """All is well but for these, and two jobs or two Prometheis scrape each pod."""
    told: dict[str, str | None] = dict(NOTHING_OF_ENGINES)
    for name, values in {**WELL, **series}.items():
        if name.startswith("vllm:") and POD in name:
            told |= {name.replace(POD, f'{POD},instance="i",{look}'): values for look in looks}
    return told


def beside(series: Mapping[str, str]) -> dict[str, str]:
    """These as another job tells them of the same pods."""
    return {name.replace(POD, f'{POD},job="another"'): values for name, values in series.items()}


def said_in(words: Mapping[str, str], series: Mapping[str, str]) -> dict[str, str | None]:
    """All is well but for these, told by an engine that has other names."""
    told: dict[str, str | None] = dict(NOTHING_OF_ENGINES)
    for name, values in {**WELL, **series}.items():
        for ours, theirs in words.items():
            if name.startswith(ours) and POD in name:
                told[name.replace(ours, theirs)] = values
    return told


CASES: Final = (
    Case("all is well"),
    case("all is well, as SGLang says it", said_in(IN_SGLANG, {})),
    case("the pool is full, as SGLang says it", said_in(IN_SGLANG, {KV: steady(0.9)}), "KVPressure"),
    case("the queue grows, as SGLang says it", said_in(IN_SGLANG, {WAITING: rising(2)}), "QueueGrowth"),
    case(
        "first tokens are late and gaps long, as SGLang says it",
        said_in(IN_SGLANG, {**ttft(le_0_5=0, le_3=60, le_10=60, inf=60),
            **itl(le_0_01=0, le_0_025=3000, le_0_075=3000, le_0_15=6000, le_0_5=6000, inf=6000)}),
        "TTFTOverSLO", "ITLOverSLO",
    ),
    case(
        "the pool is full and gaps are long, as an old vLLM says it",
        said_in(IN_OLD_VLLM, {KV: steady(0.9), **itl(le_0_01=0, le_0_025=3000, le_0_075=3000, le_0_15=6000, le_0_5=6000, inf=6000)}),
        "KVPressure", "ITLOverSLO",
    ),
    case("all is well, and two jobs scrape each pod", twice({})),
    case("a short queue stands, and two jobs scrape each pod", twice({WAITING: steady(6), RUNNING: steady(6)})),
    case("a short queue stands, and two Prometheis scrape each pod", twice({WAITING: steady(6), RUNNING: steady(6)}, PAIR)),
    case("a queue stands, and two jobs scrape each pod", twice({WAITING: steady(9)}), "QueueGrowth"),
    case("few first tokens are late, and two jobs scrape each pod", twice(ttft(le_0_5=0, le_3=6, le_10=6, inf=6))),
    case(
        "two engines of a pod have a short queue each",
        {WAITING: steady(6), WAITING.replace("}", ',engine="1"}'): steady(6)},
        "QueueGrowth",
    ),
    case("the pool is full", {KV: steady(0.9)}, "KVPressure"),
    case("the pool is as full as it may be", {KV: steady(0.85)}),
    case("the pool has been full for four minutes", {KV: since(27, "0.4", "0.9")}),
    case("the pool is full but for the moment", {KV: since(29, "0.9", "0.8")}, "KVPressure"),
    case("the pool is full no more", {KV: since(23, "0.9", "0.8")}),
    case("two in a hundred are preempted", {PREEMPTIONS: rising(1.2)}, "Preemption"),
    case("one in two hundred is preempted", {PREEMPTIONS: rising(0.3)}),
    case("one in ten is preempted", {PREEMPTIONS: rising(6)}, "Preemption", "Preemption!"),
    case("all are preempted, and none has ended for long", {PREEMPTIONS: rising(6), FINISHED: steady(9)}, "Preemption", "Preemption!"),
    case("one is preempted every four minutes, and few are finished", {PREEMPTIONS: counted(*range(1, 30, 4)), FINISHED: rising(4)}, "Preemption"),
    case("one burst of preemptions", {PREEMPTIONS: since(26, "0", "9")}),
    case("the queue grows", {WAITING: rising(2)}, "QueueGrowth"),
    case("the queue stands", {WAITING: steady(50)}, "QueueGrowth"),
    case("the queue is long and will soon be gone", {WAITING: rising(-1.5, 60)}),
    case("the queue is short for the moment", {WAITING: since(29, "50", "6")}, "QueueGrowth"),
    case("the queue has gone", {WAITING: since(23, "50", "6")}),
    case("a short queue grows", {WAITING: rising(0.2)}),
    case("a queue grows that is short beside what runs", {WAITING: rising(1), RUNNING: steady(400)}),
    case("one replica has a queue, and another has none", {WAITING: steady(50), WAITING_BESIDE: steady(0), RUNNING: steady(400)}, "UnevenLoad"),
    case("a replica that drains has no queue", {WAITING: steady(50), WAITING_BESIDE: steady(0), DRAINS_BESIDE: steady(1), RUNNING: steady(400)}),
    case("a replica that serves on has none", {WAITING: steady(50), WAITING_BESIDE: steady(0), DRAINS_BESIDE: steady(0), RUNNING: steady(400)}, "UnevenLoad"),
    case("each replica has a queue", {WAITING: steady(50), WAITING_BESIDE: steady(20), RUNNING: steady(400)}),
    case("one replica had a queue until four minutes ago", {WAITING: since(26, "50", "1"), WAITING_BESIDE: steady(0), RUNNING: steady(400)}, "UnevenLoad"),
    case("one replica has had a queue for four minutes", {WAITING: since(27, "1", "50"), WAITING_BESIDE: steady(0), RUNNING: steady(400)}),
    case("a replica with other settings has no queue", {WAITING: steady(50), WAITING_TRIED: steady(0), RUNNING: steady(400)}),
    case(
        "one replica has a queue and another has none, beside one with other settings",
        {WAITING: steady(50), WAITING_BESIDE: steady(0), WAITING_TRIED: steady(20), RUNNING: steady(400)}, "UnevenLoad",
    ),
    case("one replica has the same queue, which two jobs scrape", twice({WAITING: steady(50), RUNNING: steady(400)})),
    case("first tokens are late", {**ttft(le_0_5=0, le_3=60, le_10=60, inf=60)}, "TTFTOverSLO"),
    case("first tokens are very late", {**ttft(le_0_5=0, le_3=0, le_10=60, inf=60)}, "TTFTOverSLO", "TTFTOverSLO!"),
    case("first tokens are late and nothing was promised", {**ttft(le_0_5=0, le_3=60, le_10=60, inf=60), slo("ttft_p99"): None}),
    case("few first tokens are late", {**ttft(le_0_5=5, le_3=6, le_10=6, inf=6)}),
    case("most of few first tokens are late", {**ttft(le_0_5=0, le_3=1, le_10=6, inf=6), slo("ttft_p99"): steady(3)}, "TTFTOverSLO"),
    case("most of few first tokens are very late", {**ttft(le_0_5=0, le_3=0, le_10=6, inf=6)}, "TTFTOverSLO", "TTFTOverSLO!"),
    case("the four first tokens of five minutes are late", {**ttft(le_0_5=0, le_3=0, le_10=0.8, inf=0.8)}),
    case(
        "few requests come, and most of their gaps are long",
        {**ttft(le_0_5=2, le_3=2, le_10=2, inf=2), **itl(le_0_01=0, le_0_025=40, le_0_075=40, le_0_15=200, le_0_5=200, inf=200)},
        "ITLOverSLO",
    ),
    case(
        "few requests come, and some of their gaps are long",
        {**ttft(le_0_5=2, le_3=2, le_10=2, inf=2), **itl(le_0_01=0, le_0_025=140, le_0_075=140, le_0_15=200, le_0_5=200, inf=200)},
    ),
    case("gaps are long", {**itl(le_0_01=0, le_0_025=3000, le_0_075=3000, le_0_15=6000, le_0_5=6000, inf=6000)}, "ITLOverSLO"),
    case(
        "gaps are very long, and GPUs wait for one another",
        {**itl(le_0_01=0, le_0_025=0, le_0_075=0, le_0_15=0, le_0_5=6000, inf=6000)},
        "ITLOverSLO", "ITLOverSLO!", "TensorParallelStall",
    ),
    case(
        "long prompts cut in",
        {
            **itl(le_0_01=3000, le_0_025=5800, le_0_075=5800, le_0_15=6000, le_0_5=6000, inf=6000),
            **prompts(le_1000=0, le_5000=30, le_10000=60, inf=60),
            slo("itl_p99"): steady(0.2),
        },
        "PrefillContention",
    ),
    case(
        "gaps spike and prompts are short",
        {
            **itl(le_0_01=3000, le_0_025=5800, le_0_075=5800, le_0_15=6000, le_0_5=6000, inf=6000),
            slo("itl_p99"): steady(0.2),
        },
    ),
    case(
        "gaps spike since answers are preempted",
        {
            **itl(le_0_01=3000, le_0_025=5800, le_0_075=5800, le_0_15=6000, le_0_5=6000, inf=6000),
            **prompts(le_1000=0, le_5000=30, le_10000=60, inf=60),
            slo("itl_p99"): steady(0.2),
            PREEMPTIONS: rising(1.2),
        },
        "Preemption",
    ),
    case(
        "GPUs wait for one another over PCIe",
        {**itl(le_0_01=0, le_0_025=0, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000)},
        "TensorParallelStall",
    ),
    case(
        "gaps are as predicted, in the middle of a wide bucket",
        {**itl(le_0_01=0, le_0_025=6000, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000), PREDICTED: steady(0.009)},
    ),
    case(
        "as slow, with more requests than the prediction is of",
        {**itl(le_0_01=0, le_0_025=0, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000), RUNNING: steady(5)},
    ),
    case(
        "as slow, with as many requests as two replicas are planned for",
        {
            **itl(le_0_01=0, le_0_025=0, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000),
            RUNNING: steady(8),
            replicas("ready"): steady(2),
            replicas("wanted"): steady(2),
        },
        "TensorParallelStall",
    ),
    case(
        "as slow, and nothing measured can be held against what was predicted",
        {**itl(le_0_01=0, le_0_025=0, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000), PREDICTED_RUNNING: None},
    ),
    case(
        "as slow, over NVLink",
        {
            **itl(le_0_01=0, le_0_025=0, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000),
            f'plimsoll_tensor_parallel{{{LLM},link="pcie"}}': None,
            f'plimsoll_tensor_parallel{{{LLM},link="nvlink"}}': steady(2),
        },
    ),
    case(
        "as slow, and the pool is full",
        {**itl(le_0_01=0, le_0_025=0, le_0_075=6000, le_0_15=6000, le_0_5=6000, inf=6000), KV: steady(0.9)},
        "KVPressure",
    ),
    case("one request in thirty fails", {ERRORS: rising(2)}, "AnswersFail!"),
    case("one request in two hundred fails", {ERRORS: rising(0.3)}),
    case("one request in thirty is refused by an engine whose queue is full", {REFUSED: rising(2)}, "AnswersFail!"),
    case("one request in two hundred is refused", {REFUSED: rising(0.3)}),
    case("three of five requests are refused, while a queue stands that may not grow", {REFUSED: rising(90), WAITING: steady(8), RUNNING: steady(60)}, "AnswersFail!"),
    case("some fail and some are refused, and together they are too many", {ERRORS: rising(0.4), REFUSED: rising(0.4)}, "AnswersFail!"),
    case("requests are refused and no errors are counted", {ERRORS: None, REFUSED: rising(2)}, "AnswersFail!"),
    case("none is finished, as all are refused", {FINISHED: steady(9), ERRORS: None, REFUSED: rising(60)}, "AnswersFail!"),
    case("the first requests that are ever refused come in one burst", {REFUSED: "_x19 400x100"}, "AnswersFail!", at="28m"),
    case("engines that refused many in their time are seen for the first time", {REFUSED: "_x24 400x100", FINISHED: "_x24 9000+60x100", ERRORS: "_x24 0x100"}, at="28m"),
    case("engines that refused many in their time are scraped by another job too", {REFUSED: steady(400), **beside({REFUSED: "_x19 400x100", FINISHED: "_x19 1140+60x100"})}, at="28m"),
    case("the labels of engines that refused many in their time change", {REFUSED: "400x18 stale", FINISHED: "0+60x18 stale", **beside({REFUSED: "_x19 400x100", FINISHED: "_x19 1140+60x100"})}, at="28m"),
    case("the first requests that are ever refused come as labels change", {FINISHED: "0+60x18 stale", **beside({REFUSED: "_x19 400x100", FINISHED: "_x19 1140+60x100"})}, "AnswersFail!", at="28m"),
    case("requests are refused, which two jobs scrape", twice({REFUSED: rising(0.4)})),
    case("one request in thirty fails and nothing was promised", {ERRORS: rising(2), AVAILABLE: None}),
    case("eight requests a minute come, and all fail", {FINISHED: steady(9), ERRORS: rising(8)}, "AnswersFail!"),
    case("of eight requests a minute one in twenty fails", {FINISHED: rising(7.6), ERRORS: rising(0.4)}, "AnswersFail!"),
    case("of eight requests a minute one in two hundred fails", {FINISHED: rising(7.96), ERRORS: rising(0.04)}, at="90m"),
    case("a request comes every other minute, and all fail", {FINISHED: steady(9), ERRORS: rising(0.5)}, "AnswersFail!"),
    case("few requests come, and failed until half an hour ago", {FINISHED: rising(4), ERRORS: since(30, "0+1", "30+0")}, at="60m"),
    case("many requests failed until half an hour ago, and one in two hundred does now", {ERRORS: f"0+30x29 900.3+0.3x{MINUTES}"}, at="55m"),
    case("one request in seventy has failed for half an hour, three in five minutes", {ERRORS: rising(0.85)}, "AnswersFail!"),
    case("the one request of the hour fails", {FINISHED: steady(9), ERRORS: since(28, "0", "1")}),
    case("a replica waits for GPUs", {replicas("waiting_gpus"): steady(1)}, "WaitingForGPUs"),
    case("a replica waits for quota", {replicas("waiting_quota"): steady(2)}, "WaitingForGPUs"),
    case("a replica has waited for GPUs for a moment", {replicas("waiting_gpus"): since(27, "0", "1")}),
    case("replicas are given up after ten minutes without GPUs, and asked for again", {replicas("waiting_gpus"): held(7, 17), LIMITED: since(7, "0", "1")}, "WaitingForGPUs", at="45m"),
    case("replicas are given up without GPUs, and a budget is used up besides", {replicas("waiting_gpus"): held(7, 17), LIMITED: since(7, "0", "1"), OVER_BUDGET: since(7, "0", "1")}, "WaitingForGPUs", at="45m"),
    case("a replica that waited for GPUs has its place", {replicas("waiting_gpus"): held(7, 17), LIMITED: held(7, 17)}, at="23m"),
    case("a replica that waited for GPUs has its place, and no more are allowed", {replicas("waiting_gpus"): held(7, 17), LIMITED: "_x7 1x9 stale", AT_MAX: f"_x17 1x{MINUTES}", CONDITION: since(7, "0", "1")}, at="26m"),
    case("replicas are given up without GPUs, and no operator told for some minutes", {replicas("waiting_gpus"): held(7, 17), LIMITED: "_x7 1x10 stale _x8 1x90", LEADS: "1x17 stale _x8 1x90"}, "WaitingForGPUs", at="36m"),
    case("a deployment that waited for GPUs is gone", {replicas("waiting_gpus"): "1x16 stale", LIMITED: "1x16 stale", replicas("wanted"): "1x16 stale"}, at="26m"),
    case("a replica waited for a moment, and no more are allowed", {replicas("waiting_gpus"): held(7, 9), LIMITED: since(7, "0", "1")}),
    case("a replica waited long ago, and no more are allowed", {replicas("waiting_gpus"): held(7, 17), LIMITED: since(7, "0", "1")}, at="63m"),
    case("a node does not come", {replicas("waiting_nodes"): steady(1)}, "WaitingForNodes"),
    case("a node has been waited for for a quarter of an hour", {replicas("waiting_nodes"): since(15, "0", "1")}),
    case("the pool is smaller than planned", {MEASURED: steady(80_000)}, "PredictionError"),
    case("the pool is larger than planned", {MEASURED: steady(120_000)}),
    case("the pool was smaller than planned when a replica last ran", {MEASURED: steady(80_000), replicas("ready"): steady(0), replicas("wanted"): steady(0)}),
    case("nobody has measured the pool", {MEASURED: None}),
    case("engines crash", {RESTARTS: rising(0.5), AGAIN: rising(0.5)}, "CrashLoop!"),
    case("an engine crashed once", {RESTARTS: since(22, "0", "1")}),
    case("eight replicas restart once, as their node does", {RESTARTS: since(22, "0", "8"), replicas("failed"): held(22, 24)}),
    case("three of twenty replicas restart once each", {RESTARTS: counted(20, 24, 28)}),
    case("one replica restarts for the third time in a quarter of an hour", {RESTARTS: counted(20, 24, 28), AGAIN: counted(24, 28)}, "CrashLoop!"),
    case("an engine crashes ever later", {RESTARTS: counted(3, 7, 10, 15, 20, 28), AGAIN: counted(7, 10, 20, 28), replicas("failed"): held(23, 28)}, "CrashLoop!"),
    case("an engine crashed again and again, and no more", {RESTARTS: counted(3, 7, 10), AGAIN: counted(7, 10), replicas("failed"): held(5, 10)}),
    case("an engine has crashed, and an hour has few such", {RESTARTS: counted(3, 28), AGAIN: counted(28), replicas("failed"): held(23, 28)}),
    case("nobody sees the engines", NOTHING_OF_ENGINES, "MetricsStale"),
    case("Prometheus sees the engines, and the operator cannot read it", {METRICS: steady(0)}, "MetricsStale"),
    case("the operator cannot read it, and no replica is ready", {METRICS: steady(0), replicas("ready"): steady(0)}),
    case("nobody sees the engines, of which none is ready", {**NOTHING_OF_ENGINES, replicas("ready"): steady(0)}),
    case("the last replica has gone, which served", {replicas("ready"): since(23, "1", "0"), replicas("starting"): steady(1)}, "NotServing!"),
    case("the last replica is gone for a moment", {replicas("ready"): since(27, "1", "0")}),
    case("the engines are gone with their queue", {**NOTHING_OF_ENGINES, replicas("ready"): since(20, "1", "0"), replicas("failed"): since(20, "0", "1")}, "NotServing!"),
    case("none has served for more than an hour", {replicas("ready"): since(10, "1", "0")}, "NotServing", "NotServing!", at="90m"),
    case(
        "none has served for more than an hour, of which no operator told for some minutes",
        {LEADS: "1x79 stale _x4 1x40", replicas("wanted"): "1x79 stale _x4 1x40", replicas("ready"): "1x9 0x69 stale _x4 0x40"},
        "NotServing!", at="95m",
    ),
    case(
        "none has served for more than an hour, and then it sleeps, is woken and loads its model",
        {replicas("wanted"): "1x84 0x3 1x40", replicas("ready"): "1x9 0x110"}, at="97m",
    ),
    case("one serves again after more than an hour", {replicas("ready"): f"1x9 0x80 1x{MINUTES}"}, at="93m"),
    case("one of three serves", {replicas("wanted"): steady(3), replicas("failed"): steady(2)}, at="44m"),
    case("one of three serves for longer than models load", {replicas("wanted"): steady(3), replicas("failed"): steady(2)}, "FewServing", at="47m"),
    case(
        "one of four serves, one starts, one fails, and one has no place",
        {replicas("wanted"): steady(4), replicas("starting"): steady(1), replicas("failed"): steady(1), replicas("waiting_gpus"): steady(1)},
        "FewServing", "WaitingForGPUs", at="47m",
    ),
    case(
        "one of three serves, and two have no place",
        {replicas("wanted"): steady(3), replicas("waiting_gpus"): steady(2)}, "WaitingForGPUs", at="47m",
    ),
    case("as many serve as start", {replicas("ready"): steady(2), replicas("wanted"): steady(4), replicas("starting"): steady(2)}, at="90m"),
    case("it has never served, and loads its first replica", {replicas("ready"): steady(0)}, at="44m"),
    case("it has never served, and will not", {replicas("ready"): steady(0)}, "NotServing", at="47m"),
    case("it sleeps", {replicas("ready"): since(15, "1", "0"), replicas("wanted"): since(15, "1", "0")}, at="90m"),
    case(
        "it slept and is woken, and loads its model",
        {replicas("ready"): since(10, "1", "0"), replicas("wanted"): f"1x9 0x9 1x{MINUTES}", replicas("starting"): since(20, "0", "1")},
        at="44m",
    ),
    *(
        case(
            "it slept for some minutes, is woken, and loads its model for nearly as long as it may",
            {replicas("ready"): f"1x9 0x{MINUTES}", replicas("wanted"): f"1x9 0x4 1x{MINUTES}", replicas("starting"): f"0x14 1x{MINUTES}"},
            at=at,
        )
        for at in ("45m", "52m", "58m")
    ),
    case(
        "it slept, was woken, served for a moment and serves no more",
        {replicas("ready"): f"1x9 0x14 1x5 0x{MINUTES}", replicas("wanted"): f"1x9 0x9 1x{MINUTES}"}, "NotServing!",
        at="45m",
    ),
    case(
        "it slept, was woken, served for long and serves no more",
        {replicas("ready"): f"1x9 0x14 1x29 0x{MINUTES}", replicas("wanted"): f"1x9 0x9 1x{MINUTES}"}, "NotServing!",
        at="65m",
    ),
    case("nothing will change until a person acts", {STALLED: steady(1)}, "Stalled"),
    case("nothing would have changed for a moment", {STALLED: since(27, "0", "1")}),
    case("no layout fits, and nothing has ever served", {STALLED: steady(1), replicas("ready"): steady(0)}, "Stalled", "NotServing", at="50m"),
    case("retuning has paused", {PAUSED: steady(1)}, "AutotunePaused"),
    case("nobody speaks of retuning", {PAUSED: None}),
    case("no operator acts", {LEADS: steady(0)}, "OperatorGone", "OperatorGone!"),
    case("two operators take turns in acting for some minutes before they end", {LEADS: "1 1 1 0 stale _ " * 20, others(LEADS): "0 stale _ 1 1 1 " * 20}, "OperatorGone"),
    case("one operator alone acts for a moment again and again", {LEADS: "1 stale _ _ " * 30}, "OperatorGone"),
    case("operators take over from one another three times in ten minutes", {LEADS: f"1x9 0x4 1x2 0x{MINUTES}", others(LEADS): f"0x9 1x4 0x2 1x{MINUTES}"}),
    case("no operator is seen", {name: None for name in WELL if name.startswith("plimsoll_")}, "OperatorGone", "OperatorGone!"),
    case(
        "the operator goes while first tokens are late and answers fail",
        {**operators(WELL, 15), **ttft(le_0_5=0, le_3=60, le_10=60, inf=60), ERRORS: rising(2)}, "OperatorGone!", "TTFTOverSLO", "AnswersFail!",
    ),
    case("first tokens become late once the operator has gone", {**operators(WELL, 15), **ttft(le_0_5=0, le_3=60, le_10=60, inf=60)}, "OperatorGone", "OperatorGone!", "TTFTOverSLO", at="70m"),
    case("first tokens are late more than an hour after the operator has gone", {**operators(WELL, 15), **ttft(le_0_5=0, le_3=60, le_10=60, inf=60)}, "OperatorGone", "OperatorGone!", at="85m"),
    case(
        "an operator that took over and held a narrower promise has gone too",
        {
            **ttft(le_0_5=0, le_3=60, le_10=60, inf=60), **operators({**WELL, slo("ttft_p99"): steady(10)}, 20, 20),
            others(LEADS): "_x20 1x19 stale", others(slo("ttft_p99")): "_x20 10x9 1x9 stale",
        },
        "OperatorGone", "OperatorGone!", "TTFTOverSLO", "TTFTOverSLO!", at="75m",
    ),
    case("a promise is taken back while an operator acts", {**ttft(le_0_5=0, le_3=60, le_10=60, inf=60), slo("ttft_p99"): "2+0x10 stale"}),
    case(
        "an operator takes over from another while a node does not come, the pool is too small and retuning has paused",
        {
            **operators({**WELL, replicas("waiting_nodes"): "1+0x40", MEASURED: steady(80_000), PAUSED: steady(1), METRICS: steady(0)}, 26, 28),
        }, "WaitingForNodes", "PredictionError", "AutotunePaused", "MetricsStale",
    ),
    case("an operator takes over from another, and all is well", operators(WELL, 26, 28)),
    case("another operator acts", {LEADS: steady(0), 'plimsoll_leads{namespace="plimsoll",pod="plimsoll-1"}': steady(1)}),
    case("a third of the turns fail", {FAILED: rising(3)}, "TurnsFailing"),
    case("a turn in twenty fails", {FAILED: rising(0.5)}),
    case("no turn is taken and none fails", {TURNS: steady(5), FAILED: steady(1)}),
    case(
        "two operators speak of it for a moment",
        {KV: steady(0.9), f'plimsoll_replicas{{{LLM.replace("plimsoll-0", "plimsoll-1")},state="ready"}}': steady(1)},
        "KVPressure",
    ),
)  # fmt: skip
