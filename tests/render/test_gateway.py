"""What a gateway is told: never more than the context holds or the plan can answer, and nothing that is not known."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import Ran, plimsoll

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = ("--snapshot", str(EXAMPLES / "fleet.yaml"))


def ran(*files: str) -> Ran:
    words = [word for file in files for word in ("-f", str(EXAMPLES / file))]
    return plimsoll("render", *words, *FLEET, "--gateway", "litellm")


def told(*files: str, code: int = 0) -> dict[str, Any]:
    made = ran(*files)
    assert made.code == code, made.err
    found: dict[str, Any] = yaml.safe_load(made.out)
    return found


def planned(file: str) -> dict[str, Any]:
    made = plimsoll("plan", "-f", str(EXAMPLES / file), *FLEET, "-o", "json")
    return next(iter(yaml.safe_load(made.out)["plans"]))


@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("01-minimal.yaml", 0.5),
        ("02-chat.yaml", 0.5),
        ("03-code-completion.yaml", 0.5),
        ("04-long-documents.yaml", 0.1),
        ("07-cpu.yaml", 0.5),
    ],
)
def test_lengths_and_rates_are_the_plans(file: str, least: float):
    (entry,) = told(file)["model_list"]
    sets = planned(file)["sets"]
    params, info = entry["litellm_params"], entry["model_info"]
    (context,) = {one["settings"]["max_model_len"] for one in sets}
    assert least * context - 1 <= params["max_tokens"] <= 0.75 * context
    assert params["max_tokens"] == info["max_output_tokens"]
    assert info["max_input_tokens"] < context
    most = yaml.safe_load((EXAMPLES / file).read_text())["spec"].get("scaling", {}).get("max", 0)
    replicas = [one["replicas"] for one in sets]
    replicas[0] += max(0, most - sum(replicas))
    assert params["max_parallel_requests"] == sum(
        one["max_concurrency"] * number for one, number in zip(sets, replicas, strict=True)
    )
    rate = sum(
        one["performance"]["requests_per_second"] * number for one, number in zip(sets, replicas, strict=True)
    )
    assert params["rpm"] <= 60 * rate < params["rpm"] + 1
    load = sets[0]["load"]
    assert params["tpm"] == params["rpm"] * (load["input_tokens"] + load["output_tokens"])


@pytest.mark.parametrize("drain", ["{}", "{drainSeconds: 5}"])
def test_it_waits_for_answers_of_the_whole_context_whatever_is_waited_for_at_a_drain(
    tmp_path: Path, drain: str
):
    asked = tmp_path / "chat.yaml"
    asked.write_text((EXAMPLES / "01-minimal.yaml").read_text() + f"  rollout: {drain}\n")
    (entry,) = told(str(asked))["model_list"]
    (chosen,) = planned(str(asked))["sets"]
    slowest = chosen["settings"]["max_model_len"] * chosen["performance"]["tpot_ms"]["high"] / 1000
    assert entry["litellm_params"]["timeout"] > slowest


def test_a_prompt_as_long_as_one_that_is_declared_is_not_refused_for_the_answer_that_is_asked_for():
    made = ran("04-long-documents.yaml")
    (entry,) = yaml.safe_load(made.out)["model_list"]
    (chosen,) = planned("04-long-documents.yaml")["sets"]
    room = chosen["settings"]["max_model_len"] - entry["litellm_params"]["max_tokens"]
    assert room == 114_688, "p95 of the preset"
    assert f"requests whose prompt is longer than {room} tokens have to say max_tokens themselves" in made.err


@pytest.mark.parametrize(
    ("workload", "least"),
    [
        ("{contextTokens: 8192, inputTokens: {p50: 2500}}", 4096),
        ("{inputTokens: {p50: 3000}, outputTokens: {p50: 300}}", 4096),
        ("{contextTokens: 4096, inputTokens: {p95: 4000}}", 1024),
        ("{contextTokens: 8192, inputTokens: {p99: 8000}, outputTokens: {p50: 300, p99: 3000}}", 3000),
    ],
    ids=["half of the prompts are known", "of both half", "a long answer", "as long as one that is declared"],
)
def test_no_answer_as_long_as_many_are_is_cut_for_long_prompts(tmp_path: Path, workload: str, least: int):
    asked = tmp_path / "chat.yaml"
    asked.write_text((EXAMPLES / "01-minimal.yaml").read_text() + f"  workload: {workload}\n")
    (entry,) = told(str(asked))["model_list"]
    assert entry["litellm_params"]["max_tokens"] >= least


def test_an_adapter_is_asked_for_by_its_own_name(tmp_path: Path):
    asked = tmp_path / "chat.yaml"
    items = "[{name: law, source: hf://a/law}, {name: tax, source: hf://a/tax}]"
    text = (EXAMPLES / "01-minimal.yaml").read_text()
    asked.write_text(f"{text}  adapters: {{maxRank: 16, items: {items}}}\n")
    made = ran(str(asked))
    entries = {one["model_name"]: one["litellm_params"] for one in yaml.safe_load(made.out)["model_list"]}
    assert [params["model"] for params in entries.values()] == [f"hosted_vllm/{name}" for name in entries]
    assert list(entries) == ["Qwen/Qwen3-32B", "law", "tax"]
    assert len({params["api_base"] for params in entries.values()}) == 1
    assert "its 2 adapters are each allowed what all of it can answer" in made.err


@pytest.mark.parametrize(("said", "times"), [("scaling: {max: 8}", 8), ("replicas: 1", 1)])
def test_what_scales_is_let_have_the_load_of_all_replicas_that_may_come(
    tmp_path: Path, said: str, times: int
):
    asked = tmp_path / "chat.yaml"
    asked.write_text((EXAMPLES / "01-minimal.yaml").read_text() + f"  {said}\n")
    (entry,) = told(str(asked))["model_list"]
    (chosen,) = planned(str(asked))["sets"]
    assert chosen["replicas"] == 1
    assert entry["litellm_params"]["max_parallel_requests"] == times * chosen["max_concurrency"]
    assert entry["litellm_params"]["rpm"] == int(60 * times * chosen["performance"]["requests_per_second"])


def test_it_reaches_the_service_under_the_served_name():
    (entry,) = told("02-chat.yaml")["model_list"]
    assert entry["model_name"] == "meta-llama/Llama-3.3-70B-Instruct"
    assert entry["litellm_params"]["model"] == "hosted_vllm/meta-llama/Llama-3.3-70B-Instruct"
    assert entry["litellm_params"]["api_base"] == "http://chat.support.svc:80/v1"
    assert "api_key" not in entry["litellm_params"]


def test_further_names_share_the_rates_and_a_key_is_named_not_written():
    found = told("08-rich.yaml")
    (entry,) = found["model_list"]
    assert entry["litellm_params"]["api_key"] == "os.environ/ASSISTANT_API_KEY"
    assert found["router_settings"]["model_group_alias"] == {"gpt-oss-120b": "assistant"}


def test_one_that_answers_at_once_has_no_length_of_answers():
    (entry,) = told("06-embeddings.yaml")["model_list"]
    assert entry["model_info"]["mode"] == "embedding"
    assert "max_tokens" not in entry["litellm_params"]


def test_several_deployments_are_one_file_and_what_does_not_fit_is_left_out():
    found = told("02-chat.yaml", "10-too-big.yaml", "06-embeddings.yaml", code=2)
    assert [one["model_info"]["mode"] for one in found["model_list"]] == ["chat", "embedding"]
