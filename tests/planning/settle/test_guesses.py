"""Adapters beside guesses: the engine starts only where one step can check every guess of all that may run."""

from dataclasses import replace

import pytest

from plimsoll.facts.models import lookup
from plimsoll.planning.plan import Outcome
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.planning.settle.changed import changed_set, retained
from tests.planning.asking import LLAMA, LLAMA_70B, deployment, finding, inventory, planned, pool

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


@pytest.mark.parametrize(
    ("version", "method", "taken"),
    [
        ("0.20.2", "eagle", False),
        ("0.20.2", "eagle3", False),
        ("0.20.2", "draft", True),
        ("0.33.0", "eagle", True),
        ("0.33.0", "eagle3", True),
    ],
)
def test_a_head_is_beside_stages_only_where_the_version_leaves_it_whole(version, method, taken):
    asked = deployment(
        LLAMA_70B,
        speculative={"method": method, "model": LLAMA},
        topology={"tensor": 4, "pipeline": 2},
        engine={"version": version},
        replicas=1,
    )
    told = PlanFacts(model=lookup(LLAMA_70B), draft=lookup(LLAMA))
    made = plan(asked, inventory(pool()), told)
    assert bool(made.sets) is taken, made.findings
    assert any("eagle head" in one.message for one in made.findings) is not taken


@pytest.mark.parametrize(("version", "kept"), [("0.33.0", False), ("0.18.0", True)])
def test_a_retuned_step_goes_into_no_plan_whose_guesses_it_does_not_hold(version, kept):
    before, fresh = (planned(asked(version=version, maxSequences=most)) for most in (64, 128))
    (chosen,) = before.sets
    cut = replace(chosen.settings, max_num_batched_tokens=256)
    tuned = changed_set(
        chosen,
        cut,
        field="max_num_batched_tokens",
        value="256",
        why="gaps were too long",
        engine=before.engine,
        version=before.engine_version,
    )
    (made,) = retained(fresh, replace(before, sets=(tuned,))).sets
    assert (made.settings.max_num_batched_tokens == 256) is kept
