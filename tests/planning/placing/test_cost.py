"""Costs are told in what is delivered: output tokens, or requests where nothing is decoded."""

import pytest

from plimsoll.planning.plan import Outcome
from tests.planning.asking import deployment, finding, planned, pool, reasons


@pytest.mark.parametrize("task", ["embed", "rerank", "classify"])
def test_what_decodes_nothing_is_priced_by_the_request_and_waits_for_no_tokens(task):
    model = {"source": "hf://Qwen/Qwen3-Embedding-0.6B", "task": task}
    asked = deployment(model=model, workload={"inputTokens": {"p95": 2000}}, slo={"itlP99Ms": 1})
    made = planned(asked, pool("L4-24GB", price_per_hour="0.5"))
    cost = made.sets[0].cost
    assert (cost.per_million_output_tokens, cost.per_million_requests is None) == (None, False)
    assert made.sets[0].settings.max_model_len == 2816
    assert (made.sets[0].load.output_tokens, made.sets[0].load.generates) == (1, False)
    assert "for each request" in made.choice
    assert finding(made, "NothingDecoded").field == "slo.itlP99Ms"
    assert "WorkloadAssumed" not in reasons(made)


def test_an_encoder_is_not_asked_to_generate():
    model = {"source": "hf://BAAI/bge-m3", "task": "generate"}
    made = planned(deployment(model=model), pool("L4-24GB"))
    assert (made.outcome, finding(made, "NoGenerator").field) == (Outcome.INVALID, "model.task")
