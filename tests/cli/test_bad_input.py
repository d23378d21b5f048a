"""Everything a user can get wrong, through the command: exit code 3 (or 2, where it is no mistake but does not fit), the
field, the value and what would be right on stderr or in the plan, and never a traceback."""

import json
from pathlib import Path

import pytest
import yaml

from plimsoll.api.loading import MAX_BYTES
from tests.cli.running import Ran, plimsoll

HEAD = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": "x"}}
FLEET = ("--fleet", "8xH100")


def resource(**spec: object) -> str:
    return json.dumps({**HEAD, "spec": {"model": {"source": "hf://Qwen/Qwen3-32B"}, **spec}})


def planned(text: str | bytes, *options: str) -> Ran:
    ran = plimsoll("plan", "-f", "-", *(options or FLEET), stdin=text)
    assert "Traceback" not in ran.err
    return ran


def node(
    name: str = "n1", gpus: int = 8, product: str = "NVIDIA-H100-80GB-HBM3", **labels: str
) -> dict[str, object]:
    about = {
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.memory": "81559",
    }
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": about | labels},
        "status": {"allocatable": {"nvidia.com/gpu": str(gpus)}},
    }


@pytest.fixture
def nodes(tmp_path: Path):
    def write(*held: dict[str, object]) -> str:
        path = tmp_path / "nodes.yaml"
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(held)}))
        return str(path)

    return write


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"topology": {"gpuProducts": ["H900"]}}, ("topology.gpuProducts", "H900", "H100")),
        (
            {"topology": {"gpuProducts": ["A100"]}},
            ("'A100', which several products share. What helps: write A100-SXM-80GB or",),
        ),
        ({"topology": {"tensor": 3}}, ("topology.tensor", "3")),
        ({"quantization": {"method": "awq"}}, ("quantization.method", "awq")),
        ({"workload": {"contextTokens": 1_000_000}}, ("workload.contextTokens", "1,000,000", "40,960")),
        (
            {"model": {"source": "hf://nobody/unheard-of"}},
            ("nobody/unheard-of", "--online", "architecture.config"),
        ),
        ({"model": {"source": "hf://a/b", "architecture": {"config": "{}"}}}, ("a/b",)),
        ({"model": {"source": "hf://a/b", "architecture": {"config": "{not json"}}}, ("a/b", "JSON")),
        ({"workload": {"preset": "chatt"}}, ("workload.preset", "chatt", "chat")),
    ],
    ids=[
        "unknown GPU product",
        "name of several GPU products",
        "contradictory topology",
        "4-bit flag on a 16-bit checkpoint",
        "context above the model's",
        "model nobody knows",
        "model without config",
        "config that is no JSON",
        "unknown preset",
    ],
)
def test_a_resource_that_contradicts_itself_or_the_model(spec: dict[str, object], words: tuple[str, ...]):
    ran = planned(resource(**spec))
    assert ran.code == 3 or (ran.code == 2 and "tensor" in words[0])
    told = " ".join((ran.out + ran.err).split())
    assert [word for word in words if word not in told] == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"topolgy": {}}, ("spec.topolgy", "did you mean topology")),
        ({"topology": {"tensor": "two"}}, ("spec.topology.tensor", "'two'", "whole number")),
        (
            {"topology": {"cpu": {}, "gpuProducts": ["L4-24GB"]}},
            ("spec.topology.cpu", "only one of cpu and gpuProducts"),
        ),
        (
            {"topology": {"mode": "manual"}},
            ("spec.topology.mode", "at least one of tensor, pipeline and data"),
        ),
        ({"memory": {"utilizationPercent": 0.9}}, ("spec.memory.utilizationPercent", "0.9")),
        ({"model": {"source": "http://x"}}, ("spec.model.source",)),
    ],
)
def test_a_resource_of_the_wrong_form(spec: dict[str, object], words: tuple[str, ...]):
    ran = planned(resource(**spec))
    assert ran.code == 3
    assert ran.out == ""
    assert [word for word in words if word not in ran.err] == []


def test_all_problems_of_all_resources_are_told_at_once():
    wrong = [json.loads(resource(topolgy={}, replicas=-1)), json.loads(resource(paused="yes"))]
    wrong[1]["metadata"] = {"name": "y"}
    ran = planned("\n---\n".join(map(json.dumps, wrong)))
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 3
    assert all(line.startswith("error: stdin: ") for line in ran.err.splitlines())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no LLMDeployment in it"),
        ("[1, 2", "line"),
        ("just words", "must be an object"),
        ("kind: Pod\napiVersion: v1", "no LLMDeployment in it (found Pod)"),
        ("a: !!python/object/apply:os.system ['true']", "tag"),
        ("a: 1\na: 2", "a"),
        ("a: &a [*a]", "alias"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]" for p, c in zip("abcdefg", "bcdefgh", strict=True)), "alias"),
        ("[" * 100_000, "deep"),
        (b"\xff\xfe\x00", "UTF-8"),
        (resource(workload={"preset": "chat\u202e"}), "RIGHT-TO-LEFT OVERRIDE"),
        (resource().replace('"x"', '"x\\u0000"'), "U+0000"),
        ("a: \x07", "U+0007"),
    ],
    ids=[
        "empty", "broken", "no map", "another kind", "a tag", "a key twice", "an alias of itself", "aliases that multiply",
        "nested deeply", "not UTF-8", "text that runs backwards", "an escaped NUL", "a bell",
    ],
)  # fmt: skip
def test_text_that_is_no_resource(text: str | bytes, words: str):
    ran = planned(text)
    assert ran.code == 3
    assert words in ran.err


def test_a_resource_of_a_mebibyte_is_refused_with_the_limit():
    ran = planned(resource() + " " * MAX_BYTES)
    assert ran.code == 3
    assert "1 MiB" in ran.err


def test_values_that_yaml_takes_for_something_else_are_text_or_an_error():
    spoken = "apiVersion: plimsoll.dev/v1alpha1\nkind: LLMDeployment\nmetadata: {name: no}\nspec: {model: {source: a/b}}"
    ran = planned(spoken)
    assert ran.code == 3
    assert "metadata.name" in ran.err
    assert "quotes" in ran.err


def test_a_file_that_cannot_be_read(tmp_path: Path):
    ran = plimsoll("plan", "-f", str(tmp_path / "missing.yaml"), *FLEET)
    assert ran.code == 3
    assert "cannot be read" in ran.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--fleet"),
        (("--fleet", "8xH100", "--context", "x"), "more than one fleet"),
        (("--fleet", "8xH900"), "H900"),
        (("--fleet", "lots"), "GPUSxPRODUCT"),
        (("--fleet", "0xH100"), "it has none; write GPUSxPRODUCT"),
        (("--fleet", "0x8xH100"), "GPUSxPRODUCT"),
        (("--fleet", "8xH100,,1xL4"), "GPUSxPRODUCT"),
        (("--nodes", "missing.yaml"), "missing.yaml"),
        (("--fleet", "8xH100", "--config", "missing.yaml"), "missing.yaml"),
    ],
)
def test_a_fleet_that_is_none(options: tuple[str, ...], words: str):
    ran = plimsoll("plan", "-f", "-", *options, stdin=resource())
    assert ran.code == 3
    assert words in ran.err


def test_without_resources_the_command_says_how_to_name_one():
    ran = plimsoll("plan", *FLEET)
    assert ran.code == 3
    assert "-f FILE" in ran.err


def test_a_node_with_an_unknown_product_is_left_out_and_named(nodes):
    ran = planned(resource(), "--nodes", nodes(node(product="NVIDIA-H900")))
    assert ran.code == 2
    assert "NVIDIA-H900" in ran.err
    assert "n1" in ran.err


def test_mixed_gpus_on_one_node_are_left_out_and_named(nodes):
    mixed = node(gpus=4)
    mixed["status"] = {"allocatable": {"nvidia.com/gpu": "8"}}
    ran = planned(resource(), "--nodes", nodes(mixed, node("n2")))
    assert ran.code == 0
    assert "left out n1" in ran.err
    assert "n2" not in ran.err


def test_no_nodes_at_all_is_no_fit_and_no_crash(nodes):
    ran = planned(resource(), "--nodes", nodes())
    assert ran.code == 2
    assert "DOES NOT FIT" in ran.out


def test_no_nodes_but_a_declared_class_is_a_plan(nodes, tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\n"
        "nodeClasses: [{name: big, gpuProduct: H100-SXM-80GB, gpusPerNode: 8, maxNodes: 2}]\n"
    )
    ran = planned(resource(), "--nodes", nodes(), "--config", str(config))
    assert ran.code == 0
    assert "H100-SXM-80GB" in ran.out
    assert "its nodes are still to be made" in ran.out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("gpu", "gpu"),
        ("colour=red", "colour"),
        ("gpu=H900", "H900"),
        ("context=many", "whole number"),
        ("users=-1", "whole number"),
        ("users=0", "workload.concurrency"),
        ("precision=fp5", "fp8"),
        ("kv=", "kv"),
    ],
)
def test_a_what_if_that_changes_nothing_known(change: str, words: str):
    ran = planned(resource(), *FLEET, "--what-if", change)
    assert ran.code == 3
    assert "--what-if" in ran.err
    assert words in ran.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("Qwen/Qwen3-32B", "--gpu", "H900"), "H900"),
        (("nobody/unheard-of", "--gpu", "H100"), "--online"),
        (("s3://bucket/x y", "--gpu", "H100"), "source"),
        (("Qwen/Qwen3-32B", "--gpu", "H100", "--tp", "1,two"), "'two'"),
        (("Qwen/Qwen3-32B", "--gpu", "H100", "--context-tokens", "1000000"), "40960"),
        (("Qwen/Qwen3-32B", "--gpu", "H100", "--kv-dtype", "fp5"), "fp8"),
    ],
)
def test_a_table_that_cannot_be_made(options: tuple[str, ...], words: str):
    ran = plimsoll("memory", *options)
    assert ran.code == 3
    assert "Traceback" not in ran.err
    assert words in ran.err


def test_a_hub_that_does_not_answer_is_said_with_what_would_help(tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\nnetwork: {hubEndpoint: 'http://127.0.0.1:9'}\n"
    )
    text = resource(model={"source": "hf://nobody/unheard-of"})
    ran = planned(text, *FLEET, "--online", "--config", str(config))
    assert ran.code == 3
    told = " ".join(ran.out.split())
    assert "http://127.0.0.1:9 did not answer" in told
    assert "model.architecture.config" in told


def test_a_folder_without_a_config_is_no_model(tmp_path: Path):
    ran = plimsoll("memory", str(tmp_path), "--gpu", "H100")
    assert ran.code == 3
    assert "config.json" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to read"),
        (("ls -l",), "no engine"),
        (("vllm serve 'Qwen",), "import:"),
        (("-f", "missing"), "cannot be read"),
        (("vllm serve a/b", "-f", "x"), "not both"),
        (("--", "vllm", "serve"), "no model"),
    ],
)
def test_an_import_of_nothing_that_is_known(words: tuple[str, ...], said: str):
    ran = plimsoll("import", *words)
    assert ran.code == 3
    assert ran.out == ""
    assert said in ran.err


def test_what_nodes_are_called_cannot_steer_the_terminal(nodes):
    held = node("a\x1b[31m\ninjected", product="\x1b]0;title\x07Nothing")
    ran = plimsoll("plan", "-f", "-", "--nodes", nodes(held, node("b")), stdin=resource())
    assert ran.code == 0
    assert r"left out a\x1b[31m\ninjected" in ran.err
    assert all(one.isprintable() for one in ran.out + ran.err if one != "\n")


def test_a_what_if_changes_a_thing_once():
    ran = planned(resource(), *FLEET, "--what-if", "gpu=H100,gpu=L4")
    assert ran.code == 3
    assert "twice" in ran.err


def test_a_what_if_that_cannot_be_says_why():
    ran = planned(resource(), *FLEET, "--what-if", "kv=fp9")
    assert ran.code == 0
    assert "kv=fp9 memory.kvCacheDtype is 'fp9'" in " ".join(ran.out.split())


def test_a_model_s_name_with_a_slip_brings_near_ones():
    ran = plimsoll("memory", "Qwen/Qwen3-32", "--gpu", "H100")
    assert ran.code == 3
    assert "did you mean Qwen/Qwen3-32B" in ran.err


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.3-70B", "llama-3.3-70b"])
def test_a_model_of_whose_name_only_a_part_is_given_is_the_first_that_is_brought(name: str):
    ran = plimsoll("memory", name, "--gpu", "H100")
    assert ran.code == 3
    assert "did you mean meta-llama/Llama-3.3-70B-Instruct" in ran.err


def test_a_part_of_a_name_that_no_model_has_is_said():
    ran = plimsoll("models", "zzz")
    assert (ran.out, ran.code) == ("", 0)
    assert "'zzz'" in ran.err


def test_what_would_help_with_an_unknown_model_is_said_once():
    said = " ".join(planned(resource(model={"source": "hf://nobody/unheard-of"})).out.split())
    assert "ModelUnreadable: model.source (hf://nobody/unheard-of): the built-in catalogue" in said
    assert said.count("What helps") == 1


def test_what_is_wrong_with_the_file_and_with_the_fleet_is_told_at_once():
    ran = plimsoll("plan", "-f", "-", "--fleet", "8xH900", stdin=resource(replicas=-1))
    assert ran.code == 3
    assert "spec.replicas: must be at least 0" in ran.err
    assert "unknown GPU product 'H900'" in ran.err


def test_a_plan_of_nothing_asks_for_a_resource_and_for_a_fleet():
    ran = plimsoll("plan")
    assert ran.code == 3
    assert "give one of --snapshot FILE" in ran.err
    assert "give -f FILE" in ran.err


def test_a_fleet_that_cannot_be_read_may_hold_resources_so_none_is_missed():
    ran = plimsoll("plan", "--snapshot", "/no/such/file")
    assert ran.code == 3
    assert "/no/such/file: cannot be read" in ran.err
    assert "no resource is named" not in ran.err


def test_a_line_of_gpus_that_holds_cpus_says_where_those_stand():
    ran = planned(resource(), "--fleet", "8xCPU")
    assert ran.code == 3
    assert "--fleet: CPU-" in ran.err
    assert "is no GPU; a fleet file's pool of CPU nodes stands without gpuProduct" in ran.err


def test_a_cache_that_no_gpu_at_hand_can_read_does_not_fit():
    ran = planned(resource(memory={"kvCacheDtype": "nvfp4"}, engine={"version": "0.28.0"}))
    assert ran.code == 2
    said = " ".join(ran.out.split())
    assert "NVFP4 needs an NVIDIA GPU of compute capability 10 before version 0.30.0; H100" in said
