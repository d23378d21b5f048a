"""What people who know other tools type at first: each is either understood, or told what would be right here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.__main__ import main as operator
from plimsoll.cli.simulate import PolicyName
from tests.cli.running import plimsoll
from tests.cli.test_bad_input import FLEET, planned, resource

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ({"gpu": "H100"}, "spec.topology.gpuProducts"),
        ({"accelerator": "H100"}, "spec.topology.gpuProducts"),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "the plan decides"),
        ({"minReplicas": 1}, "spec.scaling.min"),
        ({"maxModelLen": 8192}, "spec.workload.contextTokens"),
        ({"tensorParallelSize": 2}, "spec.topology.tensor"),
        ({"args": ["--enforce-eager"]}, "spec.engine.extraArgs"),
        ({"engine": {"gpuMemoryUtilization": 0.9}}, "spec.memory.utilizationPercent"),
    ],
)
def test_a_field_of_another_tool_is_told_where_it_stands_here(spec: dict[str, object], meant: str):
    ran = planned(resource(**spec))
    assert ran.code == 3
    assert meant in ran.err
    assert "status." not in ran.err


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ({"workload": {"contextTokens": "32k"}}, "as 32000"),
        ({"workload": {"contextTokens": "32K"}}, "as 32768"),
        ({"workload": {"contextTokens": "4096"}}, "without quotes"),
        ({"memory": {"utilizationPercent": 0.9}}, "in percent, as 90"),
        ({"slo": {"ttftP99Ms": "2s"}}, "in milliseconds, as 2000"),
        ({"slo": {"itlP99Ms": 0.05}}, "in milliseconds, as 50"),
        ({"slo": {"ttftP99Ms": 1.5}}, "without quotes or a point"),
        ({"workload": {"inputTokens": 2000}}, "write {p50: 2000}"),
    ],
)
def test_a_number_with_a_unit_is_told_as_it_is_written_here(spec: dict[str, object], meant: str):
    ran = planned(resource(**spec))
    assert ran.code == 3
    assert meant in ran.err


def test_bounds_that_are_crossed_are_both_told():
    ran = planned(resource(scaling={"min": 5, "max": 2}))
    assert "5" in ran.err
    assert "2" in ran.err


def test_resources_without_a_line_between_them_are_told_to_be_parted():
    ran = plimsoll("plan", "-f", "-", *FLEET, stdin=f"{two_lines('a')}{two_lines('b')}")
    assert ran.code == 3
    assert "a line of --- parts" in ran.err


def two_lines(name: str) -> str:
    return (
        f"apiVersion: plimsoll.dev/v1alpha1\nkind: LLMDeployment\nmetadata: {{name: {name}}}\n"
        "spec: {model: {source: Qwen/Qwen3-8B}}\n"
    )


def test_a_folder_is_all_the_resources_in_it(tmp_path: Path):
    (tmp_path / "b.yaml").write_text(two_lines("b"))
    (tmp_path / "a.yml").write_text(two_lines("a"))
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}')
    (tmp_path / "notes.txt").write_text("no YAML: [")
    ran = plimsoll("plan", "-f", str(tmp_path), *FLEET, "-o", "json")
    assert ran.code == 0
    assert [plan["name"] for plan in json.loads(ran.out)["plans"]] == ["a", "b"]
    assert "Secret c" in ran.err


@pytest.mark.parametrize(
    ("head", "kind", "told"),
    [
        ("serving.kserve.io/v1beta1", "InferenceService", True),
        ("apps/v1", "Deployment", True),
        ("v1", "Secret", False),
    ],
)
def test_a_resource_of_another_operator_is_shown_to_import(head: str, kind: str, told: bool, tmp_path: Path):
    file = tmp_path / "old.yaml"
    file.write_text(f"apiVersion: {head}\nkind: {kind}\nmetadata: {{name: chat}}\n")
    ran = plimsoll("plan", "-f", str(file), *FLEET)
    assert ran.code == 3
    assert f"no LLMDeployment in it (found {kind} chat)" in ran.err
    assert (f"plimsoll import -f {file}" in ran.err) is told


def test_a_folder_without_resources_is_told(tmp_path: Path):
    ran = plimsoll("plan", "-f", str(tmp_path), *FLEET)
    assert ran.code == 3
    assert f"{tmp_path}: holds no file that ends in .yaml, .yml or .json" in ran.err
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}')
    ran = plimsoll("plan", "-f", str(tmp_path), *FLEET)
    assert ran.code == 3
    assert f"{tmp_path}: no LLMDeployment in it" in ran.err
    assert "passed over, as a plan reads nothing of it: Secret c" in ran.err


def test_the_folder_of_examples_is_planned_on_the_fleet_that_lies_in_it():
    ran = plimsoll("plan", "-f", str(EXAMPLES), "--snapshot", str(EXAMPLES / "fleet.yaml"))
    assert ran.code in (0, 2)  # one of them shows what does not fit
    assert "error:" not in ran.err
    assert "fleet.yaml: passed over" in ran.err


@pytest.mark.parametrize(
    ("fleet", "hint"),
    [
        ("H100", "1xH100"),
        ("8H100", "8xH100"),
        ("H100x8", "8xH100"),
        ("H100:8", "8xH100"),
        ("9999999xH100", "at most 999,999 GPUs"),
        ("999999x8xH100", "at most 99,999 nodes"),
    ],
)
def test_a_fleet_in_another_spelling_is_told_in_ours(fleet: str, hint: str):
    ran = plimsoll("plan", "-f", "-", "--fleet", fleet, stdin=resource())
    assert ran.code == 3
    assert hint in ran.err


@pytest.mark.parametrize("command", ["plan", "explain", "render", "simulate"])
def test_a_gpu_is_told_to_be_a_fleet(command: str):
    ran = plimsoll(command, "-f", "-", "--gpu", "H100", stdin=resource())
    assert ran.code == 3
    assert "--fleet 8xH100" in ran.err
    assert "--output" not in ran.err


@pytest.mark.parametrize("gpus", ["8xH100", "H100,L40S"])
def test_a_table_is_told_to_be_of_one_gpu(gpus: str):
    ran = plimsoll("memory", "Qwen/Qwen3-8B", "--gpu", gpus)
    assert ran.code == 3
    assert "one GPU by its name, as H100" in ran.err


@pytest.mark.parametrize("flag", ["-tp", "--max-model-len"])
def test_a_command_line_without_quotes_is_told_to_have_them(flag: str):
    ran = plimsoll("import", "vllm", "serve", "Qwen/Qwen3-32B", flag, "2")
    assert ran.code == 3
    assert "plimsoll import -- vllm serve" in ran.err


def test_a_slip_in_an_option_of_import_itself_brings_the_near_one():
    ran = plimsoll("import", "--filenam", "x.yaml")
    assert ran.code == 3
    assert "--filename" in ran.err


def test_a_name_that_cannot_be_is_told_as_the_name():
    ran = plimsoll("import", "vllm serve Qwen/Qwen3-32B", "--name", "Bad_Name")
    assert ran.code == 3
    assert "--name" in ran.err
    assert "Bad_Name" in ran.err
    assert "hf://" not in ran.err


def test_a_version_that_is_none_is_refused_and_not_ignored():
    ran = plimsoll("import", "vllm serve Qwen/Qwen3-32B", "--engine-version", "latest")
    assert ran.code == 3
    assert "--engine-version: 'latest' names no release of vLLM" in ran.err


def test_what_a_deployment_refuses_is_told_in_the_words_of_plan():
    ran = plimsoll("import", "vllm serve Qwen/Qwen3-32B --max-num-seqs -5")
    assert ran.code == 0
    assert "must be at least 1" in ran.out
    assert "Input should" not in ran.out


@pytest.mark.parametrize("field", [".spec.memory.utilizationPercent", "llmdeployment.spec.memory.utilizationPercent", "llm.spec.memory.utilizationPercent"])  # fmt: skip
def test_a_field_as_kubectl_explain_spells_it_is_found(field: str):
    ran = plimsoll("explain", "-f", "-", *FLEET, field, stdin=resource())
    assert "spec.memory.utilizationPercent" in ran.out


@pytest.mark.parametrize("command", ["doctor", "snapshot", "history"])
def test_without_a_kubeconfig_it_is_said_where_one_was_looked_for(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    ran = plimsoll(command, *(["chat"] if command == "history" else []))
    assert ran.code == 3
    assert f"there is no kubeconfig at {tmp_path / 'none'}" in ran.err
    assert ".;" not in ran.err


def test_an_address_that_is_none_is_told_how_a_service_is_forwarded():
    ran = plimsoll("bench", "chat", "--rate", "1")
    assert ran.code == 3
    assert "kubectl port-forward svc/NAME 8000:80 " in ran.err  # 80 is the Service's own port


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("version", "--version"),
        ("help", "--help"),
        ("validate", "plan -f FILE"),
        ("apply", "kubectl apply -f FILE"),
        ("status", "doctor"),
        ("load", "bench"),
    ],
)
def test_a_command_of_other_tools_is_told_what_does_the_same_here(word: str, hint: str):
    ran = plimsoll(word)
    assert ran.code == 3
    assert hint in ran.err


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--json", "'-o json'"),
        ("--yaml", "'-o yaml'"),
        ("--format", "'--output'"),
        ("--policies", "'--policy'"),
    ],
)
def test_an_option_of_other_tools_is_told_how_it_is_written_here(option: str, hint: str):
    ran = plimsoll("simulate", "-f", "-", *FLEET, "--trace", "x.csv", option, stdin=resource())
    assert ran.code == 3
    assert f"No such option '{option}'. Did you mean {hint}?" in ran.err


@pytest.mark.parametrize("arguments", [["plan", "-f", "llm.yaml"], ["plan", "--help"]], ids=str)
def test_a_question_to_the_operators_own_program_is_shown_to_the_command(arguments: list[str]):
    ran = CliRunner().invoke(operator, arguments)
    assert ran.exit_code == 2
    assert "this is the operator, which is asked nothing: python -m plimsoll.cli plan" in ran.output


@pytest.mark.parametrize(
    ("written", "meant"), [("HPA", "hpa"), ("static-peak", "static_peak"), ("keda", "keda")]
)
def test_a_policy_is_known_as_its_own_project_spells_it(written: str, meant: str):
    assert PolicyName(["hpa", "keda", "static_peak"]).convert(written, None, None) == meant


def test_a_reader_that_has_seen_enough_is_no_error_and_no_answer_either(tmp_path: Path):
    many = "---\n".join(two_lines(f"a{number}") for number in range(40))  # more than a pipe holds
    (tmp_path / "many.yaml").write_text(many)
    command = [sys.executable, "-m", "plimsoll.cli", "render", "-f", str(tmp_path / "many.yaml"), "--fleet", "64xL4"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
        assert running.wait(timeout=60) == 141  # as of any program that a closed pipe ends
    assert b"error" not in said.lower()
    assert b"Traceback" not in said


@pytest.mark.parametrize("command", ["gpus", "models"])
def test_what_is_known_can_be_read_by_programs(command: str):
    ran = plimsoll(command, "-o", "json")
    assert ran.code == 0
    assert len(json.loads(ran.out)) > 20


def test_a_fleet_that_is_given_in_several_lines_is_all_of_them():
    file = str(EXAMPLES / "01-minimal.yaml")
    one, several = (
        plimsoll("plan", "-f", file, *fleet, "-o", "json")
        for fleet in (("--fleet", "8xH100,8xL40S"), ("--fleet", "8xH100", "--fleet", "8xL40S"))
    )
    assert one.code == several.code == 0
    assert one.out == several.out
