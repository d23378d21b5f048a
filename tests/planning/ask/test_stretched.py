"""A context that is stretched beyond the model's own: what the engine is told of it, and what is said where it cannot be told."""

import json

import pytest

from plimsoll.facts.resolve import Resolver
from plimsoll.planning.plan import Outcome, Severity
from plimsoll.planning.planner import PlanFacts, plan
from tests.planning.asking import LLAMA, deployment, finding, inventory, planned, pool, reasons

QWEN = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "vocab_size": 151936,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16", "rope_theta": 1000000,
}  # fmt: skip


def stretched(kind="yarn", tokens=131_072, *, factor="4.0", original=32768, **config):
    asked = deployment(
        model={"source": "hf://a/b", "architecture": {"config": json.dumps(QWEN | config)}},
        longContext={"ropeType": kind, "factor": factor, "originalTokens": original},
        workload={"contextTokens": tokens},
    )
    return plan(asked, inventory(pool()), PlanFacts(model=Resolver().resolve(asked.spec.model)))


@pytest.mark.parametrize(
    ("kind", "positions"),
    [("yarn", 131_072), ("linear", None), ("dynamic", None)],
)
def test_the_engine_is_told_how_far_a_context_reaches_unless_it_multiplies_it_itself(kind, positions):
    made = stretched(kind)
    assert made.outcome is Outcome.FITS
    assert made.sets[0].settings.rope.positions == positions


def test_a_factor_below_the_model_s_own_reach_takes_none_of_it():
    assert stretched(factor="1.0", tokens=40_960).sets[0].settings.rope.positions == 40_960


@pytest.mark.parametrize(("tokens", "severity"), [(200_000, Severity.ERROR), (100_000, Severity.WARNING)])
def test_a_context_beyond_the_model_s_own_is_not_planned_around_a_base_that_nobody_knows(tokens, severity):
    long = {"ropeType": "yarn", "factor": "2.0"}
    made = planned(deployment(longContext=long, workload={"contextTokens": tokens}))
    assert finding(made, "RopeBaseUnknown").severity is severity
    assert {"model.revision,", "model.architecture.config"} <= set(
        finding(made, "RopeBaseUnknown").remedy.split()
    )
    assert "RopeBaseUnknown" not in reasons(stretched())


@pytest.mark.parametrize("source", [LLAMA, "google/gemma-3-27b-it"])
def test_where_the_user_tells_the_engine_themselves_nothing_need_be_known(source):
    told = {"extraArgs": ['--hf-overrides={"rope_parameters":{"rope_type":"yarn"}}']}
    made = planned(deployment(source, longContext={"ropeType": "yarn", "factor": "2.0"}, engine=told))
    assert made.outcome is Outcome.FITS
    assert not {"RopeBaseUnknown", "RopeByLayer"} & set(reasons(made))


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ({"rope_scaling": None}, None),
        ({"partial_rotary_factor": 0.25}, '{"partial_rotary_factor":0.25}'),
        (
            {"rope_scaling": {"type": "yarn", "factor": 40, "beta_fast": 32, "original_max_position_embeddings": 4096}},
            '{"beta_fast":32}',
        ),
    ],
    ids=["plain", "partly rotated", "stretched before"],
)  # fmt: skip
def test_the_engine_is_told_again_what_else_the_checkpoint_says_of_its_positions(own, others):
    assert stretched(**own).sets[0].settings.rope.others == others


@pytest.mark.parametrize("tokens", [131_072, 40_960])
@pytest.mark.parametrize(
    ("kind", "own", "reason", "words"),
    [
        ("yarn", {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}, "rope_theta": 1e6}, "RopeByLayer", "near and far"),
        ("yarn", {"model_type": "gemma3_text", "rope_local_base_freq": 10000, "sliding_window": 512}, "RopeByLayer", "near and far"),
        ("llama3", {}, "RopeKeysUnknown", "low_freq_factor and high_freq_factor"),
        ("longrope", {"rope_scaling": {"short_factor": [1.0] * 48}}, "RopeKeysUnknown", "short_factor and long_factor"),
    ],
)  # fmt: skip
def test_a_kind_that_the_engine_could_not_be_told_whole_is_an_error(kind, own, reason, words, tokens):
    made = stretched(kind, tokens, **own)
    assert made.outcome is Outcome.INVALID
    assert words in finding(made, reason).message


def test_a_kind_whose_keys_the_checkpoint_has_is_planned():
    own = {"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}}
    assert stretched("llama3", **own).outcome is Outcome.FITS
