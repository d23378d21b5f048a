"""How long a request may be where nobody says it: what 99 of 100 requests of the declared lengths keep within."""

import random
import re

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, finding, planned, pool, reasons

P95 = 1.6449


def context(prompt, answer, *pools):
    made = planned(deployment(workload={"inputTokens": prompt, "outputTokens": answer}), *pools)
    assert made.outcome is Outcome.FITS
    return made.sets[0].settings.max_model_len


@pytest.mark.parametrize(
    ("prompt", "answer", "tokens"),
    [
        ({"p50": 500, "p99": 5000}, {"p50": 200, "p99": 1000}, 6144),
        ({"p50": 500, "p95": 800, "p99": 900}, {"p50": 200, "p95": 300, "p99": 400}, 1536),
        ({"p50": 500, "p95": 2000}, {"p50": 500, "p95": 2000}, 7168),
        ({"p50": 500, "p95": 500}, {"p50": 200, "p95": 200}, 768),
        ({"p95": 2000}, {"p95": 2000}, 5376),
        ({"p50": 1000}, {"p50": 1000}, 5376),
    ],
    ids=["p99", "p99 before all", "p50 and p95", "no spread", "p95 alone", "p50 alone"],
)
def test_the_context_is_the_p99_of_both_as_told_or_as_the_other_percentiles_have_it(prompt, answer, tokens):
    assert context(prompt, answer) == tokens


@pytest.mark.parametrize("alike", [False, True], ids=["each for itself", "long answers to long prompts"])
@pytest.mark.parametrize("lengths", [(512, 2048, 256, 768), (1024, 3072, 256, 512), (800, 3000, 200, 700)])
def test_of_100_requests_with_the_declared_p50_and_p95_one_at_most_is_refused(lengths, alike):
    chance = random.Random(1)
    median, p95, answered, p95_answered = lengths
    limit = context({"p50": median, "p95": p95}, {"p50": answered, "p95": p95_answered})
    refused = 0
    for _ in range(20_000):
        far = chance.gauss(0, 1)
        other = far if alike else chance.gauss(0, 1)
        prompt = median * (p95 / median) ** (far / P95)
        refused += prompt + answered * (p95_answered / answered) ** (other / P95) > limit
    assert refused <= 220  # with what chance adds


def test_what_only_follows_from_p95_keeps_nothing_from_fitting_and_is_cut_to_what_was_told():
    lengths = {"inputTokens": {"p50": 1000, "p95": 12_000}, "outputTokens": {"p50": 300, "p95": 1000}}
    large = planned(deployment(workload=lengths))
    small = planned(deployment(workload=lengths), pool("L4-24GB", 1, 1))
    assert large.sets[0].settings.max_model_len > 30_000
    assert "ContextShortened" not in reasons(large)
    assert (small.outcome, small.sets[0].settings.max_model_len) == (Outcome.FITS, 13_056)
    assert "ContextShortened" in reasons(small)


@pytest.mark.parametrize(
    ("workload", "field", "words"),
    [
        (
            {"inputTokens": {"p50": 500, "p99": 9000}},
            "inputTokens",
            "p99 is 9,000, .* one in a hundred of the prompts is",
        ),
        (
            {"outputTokens": {"p50": 6000}},
            "outputTokens",
            "p50 is 6,000, .* half of the answers is cut short",
        ),
        (
            {"outputTokens": {"p50": 100, "p95": 5000, "p99": 6000}},
            "outputTokens",
            "p95 is 5,000, .* one in twenty",
        ),
    ],
)
def test_that_declared_lengths_do_not_fit_into_the_context_is_told(workload, field, words):
    told = finding(planned(deployment(workload={"contextTokens": 4096, **workload})), "LengthsAboveContext")
    assert told.field == f"workload.{field}"
    assert re.search(words, told.message)


def test_of_lengths_that_fit_and_where_the_models_own_limit_is_told_nothing_more_is_said():
    fits = {"contextTokens": 4096, "inputTokens": {"p95": 4095}, "outputTokens": {"p99": 1000}}
    assert "LengthsAboveContext" not in reasons(planned(deployment(workload=fits)))
    beyond = {"inputTokens": {"p50": 200_000}, "outputTokens": {"p50": 100}}
    assert {"WorkloadAboveModel", "LengthsAboveContext"} & set(
        reasons(planned(deployment(workload=beyond)))
    ) == {"WorkloadAboveModel"}


def test_where_nothing_is_answered_a_prompt_may_take_all_of_the_context():
    def told(p99):
        return planned(
            deployment("BAAI/bge-large-en-v1.5", workload={"inputTokens": {"p50": 200, "p99": p99}})
        )

    alike = {"contextTokens": 512, "inputTokens": {"p50": 512}}
    made = planned(deployment("BAAI/bge-large-en-v1.5", workload=alike))
    assert "LengthsAboveContext" not in reasons(made)
    assert told(512).sets[0].settings.max_model_len == 512
    assert "LengthsAboveContext" not in reasons(told(512))
    asked = {"contextTokens": 512, "inputTokens": {"p50": 200, "p99": 513}}
    beyond = finding(planned(deployment("BAAI/bge-large-en-v1.5", workload=asked)), "LengthsAboveContext")
    assert "a request holds at most 512 tokens: at least one in a hundred of the prompts" in beyond.message


@pytest.mark.parametrize("lengths", [{"p50": 4097}, {"p95": 4096}, {"p50": 100, "p95": 4096}])
def test_a_context_that_most_prompts_do_not_fit_into_is_refused(lengths):
    with pytest.raises(ValueError, match="must be above inputTokens"):
        deployment(workload={"contextTokens": 4096, "inputTokens": lengths})


@pytest.mark.parametrize("lengths", [{"p99": 9000}, {"p50": 500, "p99": 9000}])
def test_one_that_the_longest_prompts_do_not_fit_into_may_be_meant_and_is_told(lengths):
    """As the p99 alone says nothing of most prompts, and who runs it so would be left without an operator."""
    for said in ({"contextTokens": 4096}, {"preset": "chat"}):
        made = planned(deployment(workload={**said, "inputTokens": lengths}))
        assert made.sets[0].settings.max_model_len < 9000
        assert "p99 is 9,000" in finding(made, "LengthsAboveContext").message
