"""A context that is stretched beyond the model's own: what the engine is told of it, and what is said where it cannot be told."""

import json

import pytest

from plimsoll.facts.resolve import Resolver
from plimsoll.planning.plan import Outcome, Severity
from plimsoll.planning.planner import PlanFacts, plan
from tests.planning.asking import deployment, finding, inventory, planned, pool, reasons

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
    assert "model.architecture.config" in finding(made, "RopeBaseUnknown").remedy
    assert "RopeBaseUnknown" not in reasons(stretched())
