"""A handful of questions for a fleet of any size, and rows that become samples without believing everything."""

import math
import re

import pytest

from plimsoll.control.joining import joined
from plimsoll.facts.engines import engine_facts, engine_names, engine_profile
from plimsoll.facts.pod_sample import PodSample
from plimsoll.prometheus.answers import part_of, samples_of
from plimsoll.prometheus.queries import LLM_OF_POD, SAME_LOOK, SET_OF_POD, Selector, queries
from plimsoll.prometheus.vocabulary import Vocabulary, vocabulary
from tests.prometheus.serving import vector

VERSIONS = ("0.6.0", "0.9.0", "0.10.2", "0.20.2", "0.33.0")
ALL = vocabulary(
    [
        *(engine_facts("vllm", version).metrics for version in VERSIONS),
        *(engine_profile(name).metrics for name in engine_names()),
    ]
)
WORDS = vocabulary([engine_facts("vllm", "0.33.0").metrics])
POD = {"namespace": "team", "pod": "chat-0a1b2c3d-7c9f8d6b5f-x2k4p"}
AGES = vector((POD, 990.0))
RUNNING = "vllm:num_requests_running"
MOST = 12
"""Queries of one look."""


def samples(answers, words=WORDS):
    return samples_of({about: part_of(about, rows, words) for about, rows in answers.items()})


def test_their_number_is_bounded_whatever_engines_there_are():
    for tick in range(6):
        assert len(queries(ALL, tick)) <= MOST


def test_histograms_take_turns_and_all_have_had_one_after_nine_ticks():
    asked = [set(queries(WORDS, tick)) for tick in range(9)]
    assert set.union(*asked) >= {"ttft", "itl", "e2e", "prompt_lengths", "output_lengths"}
    assert all(len(each) == 7 for each in asked)


@pytest.mark.parametrize("turns", range(1, 10))
def test_who_looks_less_often_asks_for_more_at_a_time_each_of_them_once(turns):
    looks = -(-9 // turns)
    asked = [queries(ALL, turns * look, turns) for look in range(looks)]
    assert set.union(*map(set, asked)) >= {"ttft", "itl", "e2e", "prompt_lengths", "output_lengths"}
    assert all(len(each) <= MOST for each in asked)


def test_old_names_are_asked_for_beside_new_ones_and_the_new_ones_come_first():
    assert ALL.of("kvUsage")[:2] == ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    assert "sglang:token_usage" in queries(ALL, 0)["kv"]
    itl = queries(ALL, 1)["itl"]
    assert itl.index("vllm:inter_token_latency_seconds") < itl.index("vllm:time_per_output_token_seconds")


@pytest.mark.parametrize(
    ("pod", "llm"),
    [
        ("chat-0a1b2c3d-7c9f8d6b5f-x2k4p", "chat"),
        ("chat-0a1b2c3d-7c9f8d6b-x2k4p", "chat"),  # Kubernetes' hash of the template looks like one of ours
        ("chat-20251121-0a1b2c3d-7c9f8d6b-x2k4p", "chat-20251121"),
        ("chat-0a1b2c3d-0-0", "chat"),
        ("chat-0a1b2c3d-12", "chat"),
        ("chat-7c9f8d6b-x2k4p", None),  # somebody else's
    ],
)
def test_a_pods_name_tells_its_set_and_its_deployment(pod: str, llm: str | None):
    found = [re.fullmatch(pattern, pod) for pattern in (LLM_OF_POD, SET_OF_POD)]
    assert [one and one[1] for one in found] == [llm, llm and f"{llm}-0a1b2c3d"]


@pytest.mark.parametrize("about", ["load", "counters", "errors", "pools", "ttft", "itl", "prompt_lengths"])
def test_what_is_added_up_is_of_one_look_at_each_pod_by_whoever_looked_last(about: str):
    (asked,) = {each[about] for each in (queries(WORDS, turn) for turn in range(9)) if about in each}
    once = f' and on ({SAME_LOOK}) topk by (namespace, pod) (1, timestamp({{__name__="{RUNNING}"}}))'
    assert asked.count(once) == len(re.findall(r"\b(?:sum|count) by ", asked))


QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@pytest.mark.parametrize("words", [WORDS, ALL], ids=["one engine", "all engines"])
def test_every_selector_of_every_question_names_the_cluster_and_there_are_no_more_questions(
    words: Vocabulary,
):
    select = Selector({"cluster": "eu-1", "env": "prod"})
    exported = re.compile(rf"\b(?:{'|'.join(name for names in words.names.values() for name in names)})")
    for turn in range(9):
        plain, matched = queries(words, turn), queries(words, turn, select=select)
        assert matched.keys() == plain.keys()
        for about, query in matched.items():
            assert query.replace(', cluster="eu-1", env="prod"}', "}") == plain[about]
            unquoted = QUOTED.sub('""', query)
            assert exported.search(unquoted) is None, "a metric without a selector"
            found = re.findall(r"\{[^}]*\}", unquoted)
            assert [one for one in found if not one.endswith(', cluster="", env=""}')] == []
            assert found


def test_a_value_of_a_label_stays_within_its_quotes():
    asked = Selector({"cluster": 'eu "1" \\ ä} or vector(1)'})(["up"])
    assert asked == '{__name__="up", cluster="eu \\"1\\" \\\\ ä} or vector(1)"}'
    assert QUOTED.sub('""', asked) == '{__name__="", cluster=""}'


def test_an_engine_that_lacks_a_name_is_not_asked_for_it():
    tgi = vocabulary([engine_profile("tgi").metrics])
    assert set(queries(tgi, 0)) <= {"load", "ages", "itl"}
    assert queries(Vocabulary({}), 0) == {}


def test_what_stands_in_for_gaps_is_asked_only_of_engines_that_count_none():
    assert "per_output_token" not in queries(WORDS, 1)["itl"]
    assert "tgi_request_mean_time_per_token" in queries(vocabulary([engine_profile("tgi").metrics]), 1)["itl"]
    both = queries(ALL, 1)["itl"]
    assert "vllm:request_time_per_output_token" not in both
    assert both.index("sglang:inter_token_latency") < both.index("trtllm_time_per_output_token")


def test_rows_become_samples():
    answers = {
        "ages": AGES,
        "kv": vector(({**POD, "__name__": "vllm:kv_cache_usage_perc"}, 0.5)),
        "load": vector(
            ({**POD, "__name__": RUNNING}, 7), ({**POD, "__name__": "vllm:num_requests_waiting"}, 0)
        ),
        "counters": vector(
            ({**POD, "__name__": "vllm:num_preemptions_total"}, 3),
            ({**POD, "__name__": "vllm:request_success_total"}, 40),
            ({**POD, "__name__": "vllm:admission_rejections_total"}, 6),
        ),
        "errors": vector(({**POD, "__name__": "vllm:request_success_total"}, 2)),
        "pools": vector(({**POD, "num_gpu_blocks": "100", "block_size": "16"}, 2)),
    }
    assert samples(answers) == {
        ("team", POD["pod"]): PodSample(
            pod=POD["pod"],
            at=990.0,
            kv_fraction=0.5,
            running=7.0,
            waiting=0.0,
            kv_tokens=1600,
            block_size=16,
            preemptions=3.0,
            finished=40.0,
            errors=2.0,
            refused=6.0,
        )
    }


def test_an_engine_that_has_refused_nobody_does_not_say_so():
    finished = vector(({**POD, "__name__": "vllm:request_success_total"}, 40))
    assert samples({"ages": AGES, "counters": finished})["team", POD["pod"]].refused == 0.0
    assert samples({"ages": AGES})["team", POD["pod"]].refused is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "x", 7.5])
def test_a_figure_that_cannot_be_is_not_believed(value):
    answers = {"ages": AGES, "kv": vector(({**POD, "__name__": "vllm:kv_cache_usage_perc"}, value))}
    assert samples(answers)["team", POD["pod"]].kv_fraction is None


@pytest.mark.parametrize("row", [{}, {"metric": POD}, {"metric": POD, "value": []}, {"value": [1, "2"]}])
def test_rows_that_are_none_are_passed_over(row):
    seen = samples({"ages": [*AGES, row], "kv": [row], "pools": [row], "ttft": [row]})
    assert list(seen) == [("team", POD["pod"])]


def test_of_two_names_of_one_figure_the_better_one_counts_in_any_order():
    rows = [
        ({**POD, "__name__": "vllm:kv_cache_usage_perc"}, 0.5),
        ({**POD, "__name__": "vllm:gpu_cache_usage_perc"}, 0.1),
    ]
    for order in (rows, rows[::-1]):
        seen = samples({"ages": AGES, "kv": vector(*order)}, ALL)
        assert seen["team", POD["pod"]].kv_fraction == 0.5


@pytest.mark.parametrize("blocks", ["None", "²", "9" * 5000])
def test_an_engine_without_a_cache_has_no_pool(blocks):
    answers = {"ages": AGES, "pools": vector(({**POD, "num_gpu_blocks": blocks, "block_size": "16"}, 1))}
    assert samples(answers)["team", POD["pod"]].kv_tokens is None


def test_buckets_become_histograms_by_set():
    labels = {"namespace": "team", "set": "chat-0a1b2c3d"}
    rows = vector(
        ({**labels, "le": "+Inf"}, 10),
        ({**labels, "le": "0.1"}, 4),
        ({**labels, "le": "1.0"}, 9.9999999),
        (labels, 5.5),
        ({"namespace": "team", "le": "0.1"}, 3),
    )
    (histogram,) = part_of("ttft", rows, WORDS).histograms.values()
    assert (histogram.bounds, histogram.sum) == ((0.1, 1.0, math.inf), 5.5)
    assert histogram.quantile(0.4) == pytest.approx(0.1)


def test_a_bound_that_is_written_in_two_ways_is_one_bound():
    labels = {"namespace": "team", "set": "chat-0a1b2c3d"}
    counted = (("1", 3), ("+Inf", 12), ("0.5", 2), ("1.0", 5))
    rows = vector(*(({**labels, "le": bound}, count) for bound, count in counted), (labels, 5.5))
    (histogram,) = part_of("ttft", rows, WORDS).histograms.values()
    assert (histogram.bounds, histogram.counts) == ((0.5, 1.0, math.inf), (2.0, 8.0, 12.0))


@pytest.mark.parametrize(
    ("counts", "total", "read"),
    [((1, 4, 10), 5.5, True), ((9, 4, 10), 5.5, False), ((1, 2), 5.5, False), ((1, 4, 10), "NaN", False)],
    ids=["whole", "falling", "without an end", "without a sum"],
)
def test_buckets_that_fall_do_not_end_or_have_no_sum_are_no_histogram(counts, total, read):
    labels = {"namespace": "team", "set": "chat-0a1b2c3d"}
    bounds = ("0.1", "1", "+Inf")
    rows = vector(
        *(({**labels, "le": bound}, count) for bound, count in zip(bounds, counts, strict=False)),
        (labels, total),
    )
    assert bool(part_of("ttft", rows, WORDS).histograms) is read


@pytest.mark.parametrize("bound", ["NaN", "-1", "-Inf"])
def test_a_bound_that_nothing_can_be_below_is_not_believed(bound):
    labels = {"namespace": "team", "set": "chat-0a1b2c3d"}
    counted = ((bound, 1), ("1", 2), ("+Inf", 3))
    rows = vector(*(({**labels, "le": each}, count) for each, count in counted), (labels, 5.5))
    (histogram,) = part_of("ttft", rows, WORDS).histograms.values()
    assert (histogram.bounds, histogram.counts) == ((1.0, math.inf), (2.0, 3.0))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the newest last", "the newest first"])
def test_of_a_name_that_comes_again_the_pod_that_was_scraped_last_counts(order):
    seen = [({**POD, "uid": "uid-1"}, 970), ({**POD, "uid": "uid-2"}, 1000)]
    answers = {"ages": part_of("ages", vector(*(seen[place] for place in order)), WORDS)}
    assert samples_of(answers)["team", POD["pod"]] == PodSample(pod="uid-2", at=1000)


def test_a_name_that_comes_again_is_another_pod():
    key = ("team", "chat-0a1b2c3d-0-0")
    live = {key: "uid-2"}
    assert joined({key: PodSample(pod="uid-1", at=0)}, live) == ()
    assert joined({key: PodSample(pod="uid-2", at=0)}, live) == (PodSample(pod="uid-2", at=0),)
    assert joined({key: PodSample(pod=key[1], at=0)}, live) == (PodSample(pod="uid-2", at=0),)
    assert joined({("team", "gone"): PodSample(pod="gone", at=0)}, live) == ()
