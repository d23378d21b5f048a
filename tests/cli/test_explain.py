"""`plimsoll explain`: every decided value, every term and every field has an answer; unknown names have near ones."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.api.problems import all_fields
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.learned import learned
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.learned_speed import Speed
from plimsoll.facts.snapshot import read_snapshot, write_snapshot
from plimsoll.planning.plan import Plan
from tests.cli.running import Ran, plimsoll

CHAT = Path(__file__).parents[2] / "examples" / "02-chat.yaml"


def explain(*words: str) -> Ran:
    return plimsoll("explain", "-f", str(CHAT), "--fleet", "8xH100", *words)


def test_without_a_name_all_values_are_listed():
    ran = explain()
    assert ran.code == 0
    for name in ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "utilization", "kv_dtype"):
        assert f"  {name} " in ran.out


def test_a_value_has_formula_inputs_source_and_what_would_change_it():
    ran = explain("max_num_seqs")
    assert ran.code == 0
    for part in (
        "max_num_seqs = ",
        "because",
        "with",
        "from",
        "set it with  spec.engine.maxSequences",
        "would change",
    ):
        assert part in ran.out


@pytest.mark.parametrize(
    "name", ["maxModelLen", "max-model-len", "workload.contextTokens", "spec.workload.context_tokens"]
)
def test_a_value_is_found_in_every_spelling(name: str):
    assert "max_model_len = 4096" in explain(name).out


@pytest.mark.parametrize("name", ["weights", "activation", "graphs", "context", "kv", "headroom"])
def test_a_term_of_the_ledger_is_explained(name: str):
    ran = explain(name)
    assert ran.code == 0
    assert f"  {name} = " in ran.out
    assert "memory ledger" in ran.out


def test_the_preset_is_shown_as_the_source_of_what_it_set():
    assert "preset chat" in explain("workload.contextTokens").out


def test_every_field_of_the_resource_has_an_answer():
    unanswered = [
        path for path in all_fields(LLMDeploymentSpec)[::17] if explain(path, "-o", "json").code != 0
    ]
    assert unanswered == []


def test_what_nobody_set_is_told_with_what_was_decided():
    ran = explain("topology.tensor")
    assert "nobody set it" in ran.out
    assert "  layout = tp" in ran.out


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("max_model_length", "max_model_len"),
        ("contextTokens", "workload.contextTokens"),
        ("kv_dtyp", "kv_dtype"),
        ("tensor", "topology.tensor"),
        ("ttft", "slo.ttftP99Ms"),
        ("gpu", "topology.gpuProducts"),
    ],
)
def test_an_unknown_name_has_near_ones(name: str, near: str):
    ran = explain(name)
    assert ran.code == 3
    assert near in ran.err


@pytest.mark.parametrize(
    ("flag", "found"),
    [
        ("gpu_memory_utilization", "utilization = "),
        ("tensor_parallel_size", "topology.tensor = not set"),
        ("enable-prefix-caching", "prefix_caching = "),
        ("block_size", "block_size = 16 tokens"),
        ("max_num_seqs", "max_num_seqs = "),
    ],
)
def test_the_engine_s_own_names_are_known(flag: str, found: str):
    assert f"  {found}" in explain(flag).out


def test_a_group_was_set_by_those_who_set_something_in_it():
    said = explain("slo").out
    assert "  slo = {ttftP99Ms: " in said
    assert "nobody set it" not in said
    assert "user" in explain("scaling").out


def test_a_field_is_shown_as_it_would_be_written():
    assert "model.source = hf://" in explain("model.source").out
    named = CHAT.read_text().replace("spec:\n", "spec:\n  paused: true\n")
    ran = plimsoll("explain", "-f", "-", "--fleet", "8xH100", "paused", stdin=named)
    assert "paused = true" in ran.out


@pytest.mark.parametrize("name", ["engine.version", "engine_version"])
def test_the_version_of_the_engine_is_told_though_nobody_set_it(name: str):
    said = explain(name).out
    assert "engine_version = vllm 0." in said
    assert "no version is set" in said


def test_of_what_does_not_fit_no_number_of_replicas_is_promised():
    ran = plimsoll("explain", "-f", str(CHAT), "--fleet", "1xT4", "replicas")
    said = " ".join(ran.out.split())
    assert ran.code == 2
    assert "replicas = none because nothing fits; else" in said


@pytest.mark.parametrize("name", ["max_model_len", "weights", "replicas"])
def test_where_nothing_could_be_decided_the_reason_is_the_answer(name: str):
    wrong = CHAT.read_text().replace("    preset: chat", "    preset: chat\n    contextTokens: 10000000")
    ran = plimsoll("explain", "-f", "-", "--fleet", "8xH100", name, stdin=wrong)
    assert ran.code == 3
    assert "is no value of a plan" not in ran.err
    assert "workload.contextTokens is 10,000,000" in " ".join(ran.out.split())


def test_json_holds_the_same():
    data = json.loads(explain("max_num_seqs", "-o", "json").out)
    assert data[0]["name"] == "chat"
    assert data[0]["values"][0]["field"] == "engine.maxSequences"
    assert data[0]["values"][0]["inputs"]


def test_of_a_resource_that_is_wrong_the_reason_is_told():
    wrong = CHAT.read_text().replace("preset: chat", "preset: chatt")
    ran = plimsoll("explain", "-f", "-", "--fleet", "8xH100", stdin=wrong)
    assert ran.code == 3
    assert "no such preset" in ran.out


def test_the_number_of_replicas_is_explained():
    said = " ".join(explain("replicas").out.split())
    assert "replicas = " in said
    assert "as many as 6 requests a second, the mean 1.4 times as long as a typical one, need" in said
    assert "requestsPerSecond 6" in said
    assert "a replica carries" in said


def test_an_empty_name_is_no_value_of_a_plan():
    assert explain("").code == 3


FLEET = CHAT.parent / "fleet.yaml"
FIGURES = ("ttft_ms", "tpot_ms", "output_tokens_per_second")


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_predicted_says_whether_a_ramp_has_taught_it(name: str, tmp_path: Path):
    known = read_snapshot(FLEET.read_text())
    asked = ("-f", str(CHAT), "--snapshot")
    before = plimsoll("explain", *asked, str(FLEET), name)
    assert f"{name} = " in before.out
    assert "performance model, calibrated" in before.out
    plan = Plan.from_data(json.loads(plimsoll("plan", *asked, str(FLEET), "-o", "json").out)["plans"][0])
    chosen = plan.sets[0]
    speed = Speed(
        key=LearnedKey(
            model=plan.model_digest,
            gpu=chosen.hardware.gpu,
            engine=f"{plan.engine}-{plan.engine_version}",
            flags=str(chosen.layout),
        ),
        ttft=0.8,
        tpot=0.8,
        ttft_spread=1.5,
        tpot_spread=1.2,
        input_tokens=chosen.load.input_tokens,
        output_tokens=chosen.load.output_tokens,
        points=4,
        at=1,
    )
    file = tmp_path / "taught.yaml"
    file.write_text(write_snapshot(replace(known, learned=learned([], speeds=[speed]))))
    after = plimsoll("explain", *asked, str(file), name)
    assert "performance model, learned" in after.out
    assert "TPOT x 0.80" in after.out
    assert "4 loads of " in after.out
