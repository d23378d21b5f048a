"""Lengths as people write them, and that what is drawn has the percentiles that were asked for."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.load.lengths import Fixed, Lengths, LogNormal, Uniform, parse_lengths
from plimsoll.load.problems import LoadError


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("512", Fixed(512)),
        (" 7 ", Fixed(7)),
        ("100..400", Uniform(100, 400)),
        ("5..5", Uniform(5, 5)),
        ("p50=512,p95=2048", LogNormal(512, 2048, 0.95)),
        ("p99=9000, p50=300", LogNormal(300, 9000, 0.99)),
    ],
)
def test_lengths_are_read(text: str, meant: Lengths):
    assert parse_lengths(text, "--input-tokens") == meant
    assert parse_lengths(str(meant), "--input-tokens") == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no length in tokens"),
        ("0", "no length in tokens"),
        ("-5", "no length in tokens"),
        ("1e3", "no length in tokens"),
        ("400..100", "ends before it begins"),
        ("p50=512", "p50 with one of p90, p95, p99"),
        ("p95=512,p99=600", "p50 with one of"),
        ("p50=512,p95=100", "p95 must not be below p50"),
        ("p50=512,p75=1000", "p50 with one of"),
        ("99999999", "from 1 to 16,777,216"),
    ],
)
def test_a_wrong_length_names_the_option_the_value_and_the_forms(text: str, said: str):
    with pytest.raises(LoadError) as caught:
        parse_lengths(text, "--input-tokens")
    assert said in str(caught.value)
    assert str(caught.value).startswith("--input-tokens: ")


@example(median=200, spread=1.0078125, share=0.9, seed=0)
@given(
    median=st.integers(200, 20_000),
    spread=st.floats(1.0, 8.0),
    share=st.sampled_from([0.90, 0.95, 0.99]),
    seed=st.integers(0, 1000),
)
def test_a_log_normal_has_the_percentiles_it_was_given(median: int, spread: float, share: float, seed: int):
    lengths = LogNormal(median, round(median * spread), share)
    chance = random.Random(seed)
    drawn = [lengths.draw(chance) for _ in range(2000)]
    assert min(drawn) >= 1
    below_median = sum(one < median for one in drawn) / len(drawn)
    to_median = sum(one <= median for one in drawn) / len(drawn)
    below_upper = sum(one <= lengths.upper for one in drawn) / len(drawn)
    # More than four deviations of a share of 2,000; where lengths are nearly alike, many are the median itself.
    assert below_median - 0.1 < 0.5 < to_median + 0.1
    assert below_upper > share - 0.05


@given(low=st.integers(1, 500), width=st.integers(0, 500), seed=st.integers(0, 100))
def test_a_range_is_kept(low: int, width: int, seed: int):
    chance = random.Random(seed)
    assert all(low <= Uniform(low, low + width).draw(chance) <= low + width for _ in range(50))


@pytest.mark.parametrize(
    "lengths", [Fixed(300), Uniform(100, 400), LogNormal(200, 900, 0.95), LogNormal(300, 300, 0.9)]
)
@pytest.mark.parametrize("tokens", [0, 1, 99, 299, 300, 399, 400, 5000])
def test_the_share_within_a_length_is_that_of_what_is_drawn(lengths: Lengths, tokens: int):
    chance = random.Random(0)
    drawn = [lengths.draw(chance) <= tokens for _ in range(4000)]
    assert lengths.share_within(tokens) == pytest.approx(sum(drawn) / len(drawn), abs=0.04)
