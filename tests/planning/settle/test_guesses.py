"""Adapters beside guesses: the engine starts only where one step can check every guess of all that may run."""

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, finding, planned, pool

ADAPTERS = {"items": [{"name": "a", "source": "hf://example/adapter"}], "maxRank": 16}


def asked(tokens=3, *, adapters=True, version="0.33.0", **engine):
    return deployment(
        speculative={"method": "ngram", "tokens": tokens},
        engine={"version": version, **engine},
        replicas=1,
        **({"adapters": ADAPTERS} if adapters else {}),
    )


@pytest.mark.parametrize("version", ["0.20.2", "0.32.0", "0.33.0"])
@pytest.mark.parametrize(
    "engine", [{}, {"maxSequences": 1000}, {"maxBatchedTokens": 512}, {"maxBatchedTokens": 17}], ids=str
)
def test_a_step_holds_every_guess_of_all_that_may_run(version, engine):
    settings = planned(asked(16, version=version, **engine), pool("L4-24GB", 8, 2)).sets[0].settings
    assert settings.max_num_batched_tokens >= settings.max_num_seqs * 17
    assert settings.max_num_seqs == engine.get("maxSequences", settings.max_num_seqs)
    assert settings.max_num_batched_tokens == engine.get("maxBatchedTokens", settings.max_num_batched_tokens)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"maxSequences": 256, "maxBatchedTokens": 1000}, "less than 1024: 4 tokens for each request"),
        ({"maxBatchedTokens": 3}, "less than 4: 4 tokens for each request"),
    ],
    ids=str,
)
def test_a_pair_that_somebody_wrote_is_refused_with_what_would_do(engine, words):
    made = planned(asked(**engine))
    assert made.outcome is Outcome.INVALID
    told = finding(made, "StepBelowGuesses")
    assert told.field == "engine.maxBatchedTokens"
    assert words in told.message


@pytest.mark.parametrize("others", [{"adapters": False}, {"version": "0.18.0"}], ids=str)
def test_a_pair_that_the_engine_takes_stays_as_it_is(others):
    (chosen,) = planned(asked(maxSequences=256, maxBatchedTokens=512, **others)).sets
    assert (chosen.settings.max_num_seqs, chosen.settings.max_num_batched_tokens) == (256, 512)
