"""How many tokens a step takes: with a full step, too, the promised gap is kept, and prompts still come first in time."""

from math import ceil

import pytest

from plimsoll.api.config import OperatorConfig
from plimsoll.facts.learned import NOTHING
from plimsoll.facts.models import lookup
from plimsoll.planning.ask.reading import read
from plimsoll.planning.planner import PlanFacts, plan
from plimsoll.planning.settle.chunk import LEAST_BATCHED
from plimsoll.planning.speed.rates import classes_of, committed_rates
from plimsoll.planning.speed.roofline import Work, decode_step, launch, prompt
from tests.planning.asking import LLAMA, LLAMA_70B, QWEN_MOE, deployment, inventory, pool, reasons

LENGTHS = {"inputTokens": {"p50": 1000, "p95": 4000}, "outputTokens": {"p50": 300}, "contextTokens": 16384}


def planned(model, gpu, itl, ttft=5000, **spec):
    asked = deployment(
        model,
        workload={**LENGTHS, "requestsPerSecond": "20"},
        slo={"ttftP99Ms": ttft, "itlP99Ms": itl},
        scaling={"min": 1, "max": 30},
        **spec,
    )
    fleet, facts = inventory(pool(gpu, 8, 30)), PlanFacts(model=lookup(model))
    return plan(asked, fleet, facts).sets[0], read(asked, fleet, facts, NOTHING, OperatorConfig()).task


def full_step_ms(chosen, task, gpu):
    work = Work.of(task.model.architecture, gpu, chosen.layout, chosen.settings.kv_dtype)
    rates = committed_rates(classes_of(work, task.engine))
    decode = rates.of(decode_step(work, float(chosen.max_concurrency), 1150.0))
    prompts = rates.of(prompt(work, float(chosen.settings.max_num_batched_tokens)))
    return 1000 * (decode + prompts + rates.of(launch(work)))


@pytest.mark.parametrize("itl", [300, 100, 50])
@pytest.mark.parametrize("model", [LLAMA, QWEN_MOE, LLAMA_70B])
def test_a_full_step_at_the_planned_load_ends_within_the_promised_gap(model, itl):
    chosen, task = planned(model, "H100-SXM-80GB", itl)
    # Where the layout runs as many as it can, they are known to one part in sixteen, and its step no better.
    assert full_step_ms(chosen, task, pool().gpu) <= 1.01 * itl


def test_steps_are_smaller_than_a_gpu_likes_only_where_the_promise_needs_it():
    tight, loose = (planned(LLAMA_70B, "H100-SXM-80GB", itl)[0].settings for itl in (50, 100))
    assert tight.max_num_batched_tokens < LEAST_BATCHED <= loose.max_num_batched_tokens
    assert tight.max_num_batched_tokens >= tight.max_num_seqs


def test_experts_are_counted_as_they_are_computed():
    # By active parameters alone these steps would hold 8,192 tokens, and last 120 ms.
    chosen, task = planned(QWEN_MOE, "H100-SXM-80GB", 50)
    assert chosen.settings.max_num_batched_tokens <= 1024
    assert full_step_ms(chosen, task, pool().gpu) <= 50


def test_without_a_promise_it_is_the_engine_s_own():
    loose, _ = planned(LLAMA, "H100-SXM-80GB", 5000)
    assert loose.settings.max_num_batched_tokens >= 8192


def test_a_promise_kept_for_long_prompts_is_not_given_up_for_short_gaps():
    tight, _ = planned(LLAMA_70B, "H100-SXM-80GB", 100, ttft=60_000)
    torn, _ = planned(LLAMA_70B, "H100-SXM-80GB", 100, ttft=600)
    assert tight.settings.max_num_batched_tokens <= torn.settings.max_num_batched_tokens


def test_ranks_that_take_requests_each_for_itself_have_the_room_of_a_step_each():
    eight = {"tensor": 1, "data": 8, "expertParallel": False}
    chosen, task = planned("Qwen/Qwen3-235B-A22B", "H200-SXM-141GB", 50, ttft=1200, topology=eight)
    assert chosen.layout.data == 8
    assert full_step_ms(chosen, task, pool("H200-SXM-141GB").gpu) <= 50


def test_what_a_user_sets_is_obeyed_and_the_rule_is_told():
    obeyed, _ = planned(LLAMA, "H100-SXM-80GB", 50, engine={"maxBatchedTokens": 4096})
    assert obeyed.settings.max_num_batched_tokens == 4096
    told = next(
        value
        for value in planned(LLAMA, "H100-SXM-80GB", 50)[0].values
        if value.name == "max_num_batched_tokens"
    )
    assert "85% of the ITL target" in told.formula


@pytest.mark.parametrize(("itl", "ttft"), [(30, 1200), (50, 800), (50, 3000)])
def test_the_longest_prompt_has_the_room_that_those_who_are_answered_leave_in_a_step(itl, ttft):
    chosen, task = planned(LLAMA_70B, "H100-SXM-80GB", itl, ttft=ttft)
    room = chosen.settings.max_num_batched_tokens - chosen.max_concurrency
    assert ceil(4000 / room) * full_step_ms(chosen, task, pool().gpu) <= ttft


@pytest.mark.parametrize(
    ("context", "gpu", "step"),
    [(8192, "L4-24GB", 8192), (512, "L4-24GB", 2048), (8192, "H100-SXM-80GB", 8192), (None, "L4-24GB", 8192)],
)
def test_a_model_that_looks_both_ways_takes_its_longest_request_in_one_step(context, gpu, step):
    workload = {} if context is None else {"workload": {"contextTokens": context}}
    asked, facts = deployment("hf://BAAI/bge-m3", **workload), PlanFacts(model=lookup("BAAI/bge-m3"))
    settings = plan(asked, inventory(pool(gpu)), facts).sets[0].settings
    assert settings.max_num_batched_tokens == step
    assert not settings.prefix_caching


@pytest.mark.parametrize(("said", "kept"), [({}, False), ({"engine": {"prefixCaching": True}}, True)])
def test_a_preset_does_not_make_a_model_that_looks_both_ways_keep_prefixes(said, kept):
    facts = PlanFacts(model=lookup("BAAI/bge-m3"))
    asked = deployment("hf://BAAI/bge-m3", workload={"preset": "chat-shared-prompts"}, **said)
    assert plan(asked, inventory(pool()), facts).sets[0].settings.prefix_caching is kept


@pytest.mark.parametrize(("context", "told"), [(8192, True), (2048, False)])
def test_a_step_that_a_user_sets_too_small_for_a_model_that_looks_both_ways_is_told(context, told):
    facts = PlanFacts(model=lookup("BAAI/bge-m3"))
    asked = deployment(
        "hf://BAAI/bge-m3", engine={"maxBatchedTokens": 2048}, workload={"contextTokens": context}
    )
    made = plan(asked, inventory(pool()), facts)
    assert ("StepBelowRequest" in reasons(made)) is told
    assert made.sets[0].settings.max_num_batched_tokens == 2048
