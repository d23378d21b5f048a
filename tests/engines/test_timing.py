from dataclasses import replace

import pytest

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.timing import (
    LEAST_WAIT,
    MOST_DRAIN,
    MOST_WAIT,
    answer_seconds,
    drain_seconds,
    reads_from,
    start_seconds,
    wait_seconds,
)
from plimsoll.planning.interval import Interval
from plimsoll.planning.load import Load, Performance
from tests.engines.sets import chosen


def spec(source="hf://a/b", **groups):
    return LLMDeploymentSpec.model_validate({"model": {"source": source}, **groups})


def predicted(*, tpot=50.0, ttft=1000.0, output=256, generates=True, **settings):
    made = chosen(**settings)
    performance = Performance(
        ttft_ms=Interval(0.0, ttft / 2, ttft),
        tpot_ms=Interval(0.0, tpot / 2, tpot),
        output_tokens_per_second=1.0,
        requests_per_second=1.0,
        bound="memory",
        running=1,
    )
    load = Load(input_tokens=1, output_tokens=output, concurrency=1, generates=generates)
    return replace(made, performance=performance, load=load)


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (spec(), "hub"),
        (spec("s3://bucket/x"), "hub"),
        (spec(storage={"weights": {"claim": {"name": "c"}}}), "hub"),
        (spec(storage={"weights": {"claim": {"name": "c", "readOnly": True}}}), "volume"),
        (spec("pvc://claim/x"), "volume"),
        (spec("oci://r/x:1"), "node"),
        (spec("/opt/model"), "node"),
        (spec(storage={"weights": {"image": {"reference": "r/x"}}}), "node"),
    ],
)
def test_a_start_is_timed_by_what_the_weights_come_through(asked, where):
    assert reads_from(asked) == where


@pytest.mark.parametrize(
    ("asked", "bytes_", "seconds"),
    [
        (spec(), 0, 630),
        (spec(), 140_000_000_000, 3430),
        (spec("pvc://claim/x"), 140_000_000_000, 1700),
        (spec(rollout={"deadlineSeconds": 7200}), 140_000_000_000, 7200),
        (spec(rollout={"deadlineSeconds": 60}), 140_000_000_000, 3430),
    ],
)
def test_no_limit_on_a_start_is_stricter_than_its_bytes_or_its_owner(asked, bytes_, seconds):
    assert start_seconds(asked, bytes_) == seconds


@pytest.mark.parametrize(
    ("asked", "entry", "seconds"),
    [
        (spec(workload={"outputTokens": {"p99": 2000}}), predicted(), 101),
        (spec(workload={"outputTokens": {"p95": 1000}}), predicted(), 51),
        (spec(workload={"outputTokens": {"p50": 500}}), predicted(), 101),
        (spec(), predicted(), 53),  # four typical answers of 256 tokens
        (spec(workload={"outputTokens": {"p99": 1_000_000}}), predicted(max_model_len=4000), 201),
        (spec(), predicted(generates=False), 2),
        (spec(), chosen(), None),
    ],
)
def test_a_long_answer_takes_its_tokens_at_the_slow_end_of_the_prediction(asked, entry, seconds):
    assert answer_seconds(asked, entry) == seconds


@pytest.mark.parametrize(
    ("asked", "entry", "seconds"),
    [
        (spec(rollout={"drainSeconds": 0}), predicted(), 0),
        (spec(rollout={"drainSeconds": 5000}), predicted(), 5000),
        (spec(), chosen(), 120),
        (spec(), predicted(generates=False), 30),
        (spec(workload={"outputTokens": {"p99": 100_000}}), predicted(max_model_len=100_000), MOST_DRAIN),
    ],
)
def test_a_drain_is_the_owner_s_word_or_a_long_answer_within_bounds(asked, entry, seconds):
    assert drain_seconds(asked, entry) == seconds


@pytest.mark.parametrize(
    ("asked", "entry", "seconds"),
    [
        (spec(), predicted(max_model_len=40_000), 4002),
        (spec(rollout={"drainSeconds": 0}), predicted(max_model_len=40_000), 4002),
        (spec(workload={"outputTokens": {"p99": 2000}}), predicted(max_model_len=40_000), 802),
        (spec(workload={"outputTokens": {"p99": 20_000}}), predicted(max_model_len=40_000), 4002),
        (spec(workload={"outputTokens": {"p99": 20}}), predicted(max_model_len=40_000), LEAST_WAIT),
        (spec(), predicted(generates=False, max_model_len=40_000), LEAST_WAIT),
        (spec(), chosen(max_model_len=40_000), 8000),
        (spec(), chosen(max_model_len=1_000_000), MOST_WAIT),
    ],
    ids=[
        "the whole context",
        "whatever is waited for at a drain",
        "far more than is declared",
        "no more than the context",
        "as long as clients wait",
        "no tokens",
        "no prediction",
        "a day",
    ],
)
def test_a_gateway_waits_longer_than_the_longest_answer_that_the_engine_would_end(asked, entry, seconds):
    assert wait_seconds(asked, entry) == seconds
