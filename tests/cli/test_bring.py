"""`plimsoll import` as a command: YAML on stdout that plans, the account of every word on stderr and over the YAML."""

import json
from pathlib import Path

import pytest
import yaml

from plimsoll.api.loading import load_deployments
from tests.cli.running import plimsoll

LINE = "vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --swap-space 4 --gpu-memory-utilization 0.9"


def test_a_command_line_in_quotes_becomes_a_valid_resource():
    ran = plimsoll("import", LINE)
    assert ran.code == 0
    loaded = load_deployments(ran.out).or_raise()
    assert loaded[0].spec.topology.tensor == 2
    assert loaded[0].spec.memory.utilization_percent == 90


def test_the_words_of_a_command_line_mean_the_same_as_its_text():
    assert plimsoll("import", "--", *LINE.split()).out == plimsoll("import", LINE).out


def test_a_file_and_stdin_mean_the_same(tmp_path: Path):
    file = tmp_path / "serve.sh"
    file.write_text(LINE)
    outs = {plimsoll("import", "-f", str(file)).out, plimsoll("import", "-f", "-", stdin=LINE).out}
    assert outs == {plimsoll("import", LINE).out}


def test_what_was_lost_is_on_stderr_and_over_the_resource():
    ran = plimsoll("import", LINE)
    said = ran.err.splitlines()
    assert any(line.startswith("lost: --swap-space 4") for line in said)
    assert [f"# {line}" for line in said] == [line for line in ran.out.splitlines() if line.startswith("#")]


def test_the_result_can_be_piped_into_a_plan():
    ran = plimsoll("plan", "-f", "-", "--fleet", "8xH100", stdin=plimsoll("import", LINE).out)
    assert ran.code == 0


def test_several_services_become_several_documents():
    compose = {
        "services": {
            name: {"image": "vllm/vllm-openai:v0.20.2", "command": ["--model", model]}
            for name, model in (("a", "Qwen/Qwen3-8B"), ("b", "Qwen/Qwen3-4B"))
        }
    }
    ran = plimsoll("import", "-f", "-", stdin=yaml.safe_dump(compose))
    assert ran.code == 0
    assert len(load_deployments(ran.out).or_raise()) == 2


def test_a_name_can_be_chosen():
    ran = plimsoll("import", LINE, "--name", "mine")
    assert load_deployments(ran.out).or_raise()[0].metadata.name == "mine"


@pytest.mark.parametrize(
    ("text", "kind"), [(LINE, "LLMDeployment"), (f"{LINE}\nvllm serve Qwen/Qwen3-4B", "List")]
)
def test_json_holds_the_same_resources_and_the_account_stays_on_stderr(text: str, kind: str):
    as_json, as_yaml = plimsoll("import", text, "-o", "json"), plimsoll("import", text)
    document = json.loads(as_json.out)
    assert document["kind"] == kind
    assert load_deployments(as_json.out).or_raise() == load_deployments(as_yaml.out).or_raise()
    assert as_json.err == as_yaml.err != ""


@pytest.mark.parametrize("name", ["Not A Name", "x" * 80, "-"])
def test_a_name_that_no_object_may_bear_is_refused(name: str):
    ran = plimsoll("import", LINE, "--name", name)
    assert ran.code == 3
    assert "name" in ran.err
    assert ran.out == ""


def test_a_file_s_name_in_place_of_a_command_line_is_told_to_take_f():
    ran = plimsoll("import", "docker-compose.yaml")
    assert ran.code == 3
    assert "plimsoll import -f docker-compose.yaml" in ran.err


def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path: Path):
    file = tmp_path / "other.yaml"
    file.write_text("kind: ConfigMap")
    ran = plimsoll("import", "-f", str(file))
    assert ran.code == 3
    assert ran.err.startswith(f"error: {file}: nothing that serves a model here (ConfigMap)")
