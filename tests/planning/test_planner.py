"""Whole plans: what bad input is told, what good input gets, and what may never change."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.api.config import OperatorConfig
from plimsoll.api.presets import built_in_presets
from plimsoll.facts.gpus import GIB
from plimsoll.facts.inventory import Taint
from plimsoll.planning.memory.ledger import Verdict
from plimsoll.planning.plan import Outcome, Plan
from plimsoll.planning.planner import plan
from tests.planning.asking import (
    LLAMA,
    LLAMA_70B,
    QWEN_32B,
    QWEN_MOE,
    R1,
    SMALL,
    cpu_pool,
    deployment,
    facts,
    finding,
    inventory,
    planned,
    pool,
    reasons,
)

GOLDEN = Path(__file__).parent / "golden"
CHAT = {"preset": "chat"}
MIXED = (
    pool(nodes=3, price_per_hour="2.5"),
    pool("L40S-48GB", 4, 4, price_per_hour="0.9"),
    pool("H200-SXM-141GB", price_per_hour="3.6", free={8: 1, 4: 1}),
    pool("L4-24GB", 1, 6, price_per_hour="0.5"),
)


@pytest.mark.parametrize(
    ("asked", "reason", "field", "words"),
    [
        (
            deployment(workload={"contextTokens": 1_000_000}),
            "ContextAboveModel",
            "workload.contextTokens",
            "set at most 131,072",
        ),
        (
            deployment(quantization={"method": "awq"}),
            "QuantizationNeedsCheckpoint",
            "quantization.method",
            "holds bfloat16 weights",
        ),
        (
            deployment("Qwen/Qwen3-32B-AWQ", quantization={"method": "gptq"}),
            "QuantizationMismatch",
            "quantization.method",
            "quantized with 'awq'",
        ),
        (
            deployment(quantization={"method": "fp9"}),
            "UnknownQuantization",
            "quantization.method",
            "does not know",
        ),
        (
            deployment(topology={"gpuProducts": ["H1000"]}),
            "UnknownGPU",
            "topology.gpuProducts",
            "'H1000', which is not known",
        ),
        (
            deployment(topology={"tensor": 3}),
            "TopologyContradiction",
            "topology.tensor",
            "32 attention heads do not divide by 3",
        ),
        (
            deployment(topology={"expertParallel": True}),
            "NoExperts",
            "topology.expertParallel",
            "no experts to spread",
        ),
        (deployment(topology={"data": 2}), "DataOfDense", "topology.data", "replicas: 2"),
        (
            deployment(memory={"kvCacheDtype": "fp16"}),
            "UnknownKvDtype",
            "memory.kvCacheDtype",
            "it knows auto",
        ),
        (
            deployment("deepseek-ai/DeepSeek-V3.2", memory={"kvCacheDtype": "nvfp4"}),
            "KvDtypeNotOfLatents",
            "memory.kvCacheDtype",
            "write fp8 or, where the engine reads it, nvfp4_ds_mla",
        ),
        (
            deployment(speculative={"method": "mtp"}),
            "NoPredictionLayers",
            "speculative.method",
            "carries no prediction layers",
        ),
        (
            deployment(speculative={"method": "draft", "model": "example/unknown"}),
            "ModelUnreadable",
            "speculative.model",
            "example/unknown",
        ),
        (deployment(workload={"preset": "chatt"}), "InvalidSpec", "workload.preset", "chat"),
        (deployment("example/nobody-knows-this"), "ModelUnreadable", "model.source", "nothing is known"),
        (
            deployment(model={"source": LLAMA, "trustRemoteCode": True}),
            "NotTrusted",
            "model.trustRemoteCode",
            "trust.remoteCode does not list",
        ),
        (
            deployment(engine={"extraArgs": ["--max_num_seqs=7"]}),
            "FlagOwned",
            "engine.extraArgs[0]",
            "--max-num-seqs is written by Plimsoll",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_bad_input_is_told_with_field_and_what_would_be_right(asked, reason, field, words):
    made = planned(asked)
    assert made.outcome is Outcome.INVALID
    assert made.sets == ()
    told = finding(made, reason)
    assert told.field == field
    assert words in told.message


@pytest.mark.parametrize(
    ("asked", "pools", "reason", "words"),
    [
        (deployment(), [], "NoGPUs", "holds no GPU nodes"),
        (deployment(R1), [pool("L4-24GB")], "DoesNotFit", "nearest is"),
        (
            deployment(),
            [pool(taints=(Taint(key="team", value="x", effect="NoSchedule"),))],
            "NoGPUs",
            "tainted team=x:NoSchedule",
        ),
        (deployment(topology={"nodeSelector": {"disk": "fast"}}), [pool()], "NoGPUs", "disk=fast"),
        (
            deployment(topology={"gpuProducts": ["L40S"]}),
            [pool()],
            "NoGPUs",
            "not among topology.gpuProducts",
        ),
        (deployment(topology={"cpu": {}}), [pool()], "NoGPUs", "asks for CPUs"),
        (deployment(topology={"cpu": {"cores": 96}}), [cpu_pool()], "NoGPUs", "hosts have 64 cores"),
        (deployment(LLAMA_70B, topology={"tensor": 1}), [pool()], "DoesNotFit", "topology.tensor=1"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_what_does_not_fit_says_what_is_in_the_way(asked, pools, reason, words):
    made = plan(asked, inventory(*pools), facts(asked))
    assert made.outcome is Outcome.DOES_NOT_FIT
    told = finding(made, reason)
    assert words in f"{told.message} {told.field}={told.value}"


def test_declared_nodes_are_planned_with_before_they_exist():
    made = planned(deployment(workload=CHAT), pool(free={}, declared_nodes=2))
    assert made.outcome is Outcome.FITS
    assert made.replicas == 1
    assert "NodeDeclared" in reasons(made)


def test_a_context_that_nobody_asked_for_is_inherited_and_said_or_cut_and_said():
    large, small = planned(deployment()), planned(deployment(), pool("L4-24GB", 1, 1))
    assert large.sets[0].settings.max_model_len == 131_072
    assert "ContextInherited" in reasons(large)
    assert small.sets[0].settings.max_model_len < 131_072
    assert "ContextShortened" in reasons(small)
    assert "ContextInherited" not in reasons(small)


def test_lengths_of_the_traffic_set_the_context_and_what_a_user_says_wins():
    lengths = {"inputTokens": {"p50": 500, "p95": 3000}, "outputTokens": {"p50": 200, "p95": 500}}
    assert planned(deployment(workload=lengths)).sets[0].settings.max_model_len == 7168
    said = planned(deployment(workload={**lengths, "contextTokens": 10_000}))
    assert said.sets[0].settings.max_model_len == 10_000


def test_a_fixed_number_of_replicas_is_obeyed_exactly_and_zero_keeps_the_plan():
    assert planned(deployment(workload=CHAT, replicas=3)).replicas == 3
    stopped = planned(deployment(workload=CHAT, replicas=0))
    assert (stopped.outcome, stopped.replicas, stopped.replicas_wanted) == (Outcome.FITS, 0, 0)
    assert stopped.sets
    assert stopped.cost is not None
    assert stopped.cost.gpu_hours_per_hour == 0


@pytest.mark.parametrize("load", [{"concurrency": 700}, {"requestsPerSecond": "90"}])
def test_a_declared_load_is_carried_within_the_bounds(load):
    made = planned(deployment(workload=CHAT | load), *MIXED)
    assert made.outcome is Outcome.FITS
    if "concurrency" in load:
        assert sum(one.replicas * one.max_concurrency for one in made.sets) >= 700
    bounded = planned(deployment(workload=CHAT | load, scaling={"max": 1}), *MIXED)
    assert bounded.replicas <= 1
    more = planned(deployment(workload=CHAT | load, scaling={"min": 9}), *MIXED)
    assert more.replicas == 9


def test_a_load_beyond_the_fleet_is_carried_as_far_as_it_goes_and_said():
    made = planned(deployment(workload=CHAT | {"concurrency": 5000}), pool(nodes=1))
    assert made.outcome is Outcome.SHORT
    assert 0 < made.replicas < made.replicas_wanted
    assert "NoGPUs" in reasons(made)


def test_gpus_in_use_by_others_are_told_with_their_holders():
    made = planned(deployment(LLAMA_70B, workload=CHAT), pool(free={0: 1, 1: 1}, held={"b/other": 8}))
    assert (made.outcome, made.replicas, made.replicas_wanted) == (Outcome.SHORT, 0, 1)
    assert "held by b/other" in finding(made, "NoFreeGPUs").message
    assert made.nearest is not None
    assert made.nearest.ledger.verdict is Verdict.FITS


def test_what_a_deployment_holds_itself_is_free_to_it():
    held = pool(free={0: 2}, held={"team-a/chat": 8})
    assert planned(deployment(workload=CHAT), held).replicas == 1


def test_a_target_that_nothing_keeps_is_planned_nearest_and_said():
    made = planned(deployment(LLAMA_70B, workload=CHAT, slo={"itlP99Ms": 2}), pool())
    assert made.sets[0].meets_slo is False
    assert "Unattainable" in reasons(made)


def test_a_preset_is_corrected_by_the_ledger_where_a_user_is_obeyed():
    crowded = {"workload": CHAT, "slo": {"itlP99Ms": 3_600_000, "ttftP99Ms": 3_600_000}}
    preset = planned(deployment("Qwen/Qwen3-32B", **crowded), pool())
    user = planned(deployment("Qwen/Qwen3-32B", **crowded, engine={"maxSequences": 300}), pool())
    assert preset.sets[0].settings.max_num_seqs < 256
    assert user.sets[0].settings.max_num_seqs == 300


def test_the_cheaper_gpus_win_where_prices_are_known_and_unknown_prices_are_said():
    cheap = (pool(price_per_hour="2.5"), pool("L40S-48GB", 4, price_per_hour="0.1"))
    assert planned(deployment(workload=CHAT), *cheap).sets[0].hardware.gpu == "L40S-48GB"
    unknown = planned(deployment(workload=CHAT), cheap[0], pool("L40S-48GB", 4))
    assert "PricesUnknown" in reasons(unknown)
    assert "GPU-hours" in unknown.choice
    unpriced = planned(deployment(workload=CHAT), cheap[1], pool()).sets[0]
    assert (unpriced.hardware.price_per_hour, unpriced.cost.per_hour) == (None, None)


def test_every_set_explains_its_values_and_three_alternatives_are_kept():
    made = planned(deployment(workload=CHAT), *MIXED)
    named = {value.name for value in made.values}
    assert {
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "utilization",
        "kv_dtype",
        "layout",
    } <= named
    assert all(value.formula and value.source and value.changes for value in made.values)
    assert len(made.alternatives) == 3
    assert all(other.reason for other in made.alternatives)
    assert {row.rule for row in made.rejected} & {"heads", "dense-data"}


def test_advice_names_formats_that_the_gpus_have():
    told = " ".join(row.message for row in planned(deployment(LLAMA_70B, workload=CHAT)).advice)
    assert "FP8 weights" in told
    assert "NVFP4" not in told
    old = planned(deployment(workload=CHAT), pool("A100-SXM-80GB"))
    assert "FP8 weights" not in " ".join(row.message for row in old.advice)


@pytest.mark.parametrize("model", [LLAMA, QWEN_MOE, R1, "google/gemma-3-27b-it", "Qwen/Qwen3-Embedding-8B"])
def test_a_plan_survives_its_bytes_and_the_same_inputs_give_the_same(model):
    asked = deployment(model, workload=CHAT)
    one, other = planned(asked, *MIXED), planned(asked, *reversed(MIXED))
    assert one.to_bytes() == other.to_bytes()
    assert Plan.from_bytes(one.to_bytes()) == one
    assert len(one.to_bytes()) < 250_000


@given(
    model=st.sampled_from([LLAMA, QWEN_32B, LLAMA_70B, QWEN_MOE, SMALL]),
    preset=st.sampled_from(["chat", "batch", "long-documents", "reasoning"]),
    gpu=st.sampled_from(["H100-SXM-80GB", "L40S-48GB", "L4-24GB", "MI300X", "A100-SXM-40GB"]),
    per_node=st.sampled_from([1, 4, 8]),
    load=st.one_of(st.none(), st.integers(1, 2000)),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_that_fits_never_exceeds_a_gpu_a_node_or_the_fleet(model, preset, gpu, per_node, load):
    workload = {"preset": preset} | ({"concurrency": load} if load else {})
    one = pool(gpu, per_node, 3)
    made = planned(deployment(model, workload=workload), one)
    assert made.devices <= one.free_devices
    for chosen in made.sets:
        assert chosen.resources.devices <= per_node
        assert chosen.resources.devices * chosen.pods_per_replica == chosen.layout.gpus
        if chosen.ledger.verdict is Verdict.FITS:
            resident = sum(
                term.bytes.mid for term in chosen.ledger.terms if term.name not in ("headroom", "kv")
            )
            assert resident + chosen.ledger.term("kv").bytes.mid <= chosen.ledger.device_bytes * 1.001
        assert chosen.settings.max_num_seqs <= chosen.settings.max_num_batched_tokens


def golden_fleet():
    return (
        pool(nodes=4, price_per_hour="2.5"),
        pool("H200-SXM-141GB", price_per_hour="3.6"),
        pool("L40S-48GB", 4, 4, price_per_hour="0.9"),
        pool("L4-24GB", 1, 6, price_per_hour="0.5"),
    )


@pytest.mark.parametrize("preset", [one.name for one in built_in_presets()])
def test_plans_of_the_presets_are_as_they_were_reviewed(preset, golden):
    """Layouts and settings only: predicted figures move with every fit, and have tests of their own."""
    model = {"small-gpu": SMALL, "multi-gpu": R1, "reasoning": QWEN_MOE}.get(preset, QWEN_32B)
    made = planned(deployment(model, workload={"preset": preset}), *golden_fleet())
    summary = {
        "model": model,
        "outcome": made.outcome.value,
        "findings": reasons(made),
        "sets": [
            {
                "what": f"{one.replicas} x {one.layout} on {one.hardware}",
                "length": one.settings.max_model_len,
                "batched": one.settings.max_num_batched_tokens,
                "utilization": one.settings.utilization,
                "prefixCaching": one.settings.prefix_caching,
                "pods": one.pods_per_replica,
                "meetsSlo": one.meets_slo,
            }
            for one in made.sets
        ],
        "alternatives": len(made.alternatives),
        "rules": sorted({row.rule for row in made.rejected}),
    }
    golden(GOLDEN / f"{preset}.json", json.dumps(summary, indent=1) + "\n")


def test_an_empty_config_and_none_are_the_same():
    asked = deployment(workload=CHAT)
    one = plan(asked, inventory(pool()), facts(asked))
    assert one == plan(asked, inventory(pool()), facts(asked), config=OperatorConfig())


def test_without_an_admin_s_config_what_it_would_have_to_allow_is_told_and_not_refused():
    asked = deployment(model={"source": LLAMA, "trustRemoteCode": True})
    made = plan(asked, inventory(pool()), facts(asked))
    assert made.outcome is Outcome.FITS
    assert finding(made, "NotTrusted").message.startswith("by the admin's defaults, ")


@pytest.mark.parametrize(
    ("source", "fetched"),
    [("hf://{0}", True), ("s3://bucket/{0}", True), ("pvc://claim/{0}", False), ("oci://registry.example/{0}:1", False)],
)  # fmt: skip
def test_disk_is_asked_for_weights_that_are_fetched_and_not_for_those_that_are_mounted(
    source: str, fetched: bool
) -> None:
    asked = deployment(model={"source": source.format(LLAMA)})
    (chosen,) = plan(asked, inventory(pool()), facts(deployment(source=f"hf://{LLAMA}"))).sets
    assert (chosen.resources.disk_bytes > 12 * GIB) is fetched
    assert chosen.resources.disk_bytes >= 10 * GIB
