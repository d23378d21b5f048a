"""`plimsoll plan` from end to end: resources and fleets of every kind in, exit codes and documents out."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli import inputs
from plimsoll.facts.model_codec import export_model
from plimsoll.facts.models import lookup
from plimsoll.planning import codec
from plimsoll.planning.plan import FleetPlan
from tests.cli.running import plimsoll

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = EXAMPLES / "fleet.yaml"
MINIMAL = EXAMPLES / "01-minimal.yaml"
SAMPLES = sorted(path for path in EXAMPLES.glob("*.yaml") if path != FLEET)
CODES = {"10-too-big.yaml": 2, "09-contended.yaml": 2}


def resource(name: str = "x", model: str = "Qwen/Qwen3-8B", **spec: object) -> str:
    body = {"model": {"source": f"hf://{model}"}, **spec}
    head = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": name}}
    return json.dumps({**head, "spec": body})


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_sample_is_planned_and_ends_with_the_code_it_shows(sample: Path):
    ran = plimsoll("plan", "-f", str(sample), "--snapshot", str(FLEET))
    assert (ran.code, ran.err) == (CODES.get(sample.name, 0), "")
    assert max(map(len, ran.out.splitlines())) <= 140


def test_there_are_samples_from_three_lines_of_spec_to_rich_ones():
    assert len(SAMPLES) >= 6
    assert MINIMAL.read_text().partition("spec:\n")[2].count("\n") == 2


def test_the_same_question_gives_the_same_bytes():
    asked = ("plan", "-f", str(MINIMAL), "--snapshot", str(FLEET), "-o", "json")
    assert plimsoll(*asked).out == plimsoll(*asked).out


def test_json_is_the_whole_plan_and_reads_back():
    ran = plimsoll("plan", "-f", str(MINIMAL), "--snapshot", str(FLEET), "-o", "json")
    fleet = codec.decode(FleetPlan, json.loads(ran.out))
    assert [plan.name for plan in fleet.plans] == ["minimal"]
    assert fleet.plans[0].sets[0].ledger.terms


def test_yaml_says_the_same_as_json():
    asked = ("plan", "-f", str(MINIMAL), "--snapshot", str(FLEET), "-o")
    assert yaml.safe_load(plimsoll(*asked, "yaml").out) == json.loads(plimsoll(*asked, "json").out)


def test_stdin_and_files_and_documents_are_planned_together(tmp_path: Path):
    file = tmp_path / "b.yaml"
    file.write_text(resource("b"))
    both = f"{resource('c')}\n---\n{resource('d')}"
    ran = plimsoll("plan", "-f", "-", "-f", str(file), "--fleet", "8xH100", "-o", "json", stdin=both)
    assert ran.code == 0
    assert json.loads(ran.out)["order"] == ["default/b", "default/c", "default/d"]


def test_a_manifest_may_hold_what_a_plan_does_not_read(tmp_path: Path):
    manifest = tmp_path / "app.yaml"
    manifest.write_text(f"apiVersion: v1\nkind: Secret\nmetadata: {{name: hf}}\n---\n{resource()}")
    ran = plimsoll("plan", "-f", str(manifest), "--fleet", "8xH100")
    assert ran.code == 0
    assert "passed over, as a plan reads nothing of it: Secret hf" in ran.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("8xA100", "error: --fleet: 'A100' is the name of several GPU products; write one of A100-SXM-80GB"),
        ("8xH900,12xH900", "error: --fleet: unknown GPU product 'H900'"),
    ],
)
def test_a_product_in_a_line_is_told_as_it_was_written(line: str, told: str):
    ran = plimsoll("plan", "-f", str(MINIMAL), "--fleet", line)
    assert ran.code == 3
    assert ran.err.startswith(told)
    assert len(ran.err.splitlines()) == 1


def test_the_same_name_in_two_files_is_an_error(tmp_path: Path):
    for name in "ab":
        (tmp_path / name).write_text(resource("same"))
    ran = plimsoll("plan", "-f", str(tmp_path / "a"), "-f", str(tmp_path / "b"), "--fleet", "8xH100")
    assert ran.code == 3
    assert "default/same" in ran.err


def test_whoever_gets_no_gpu_is_told_who_did():
    wanted: dict[str, Any] = {"topology": {"tensor": 8, "mode": "manual"}, "replicas": 1}
    ran = plimsoll(
        "plan",
        "-f",
        "-",
        "--fleet",
        "8xH100",
        stdin=f"{resource('a', **wanted)}\n---\n{resource('b', **wanted)}",
    )
    assert ran.code == 2
    assert "FITS  default/a" in ran.out
    assert "DOES NOT FIT  default/b" in ran.out or "SHORT OF GPUS  default/b" in ran.out
    assert "default/a" in ran.out.partition("default/b")[2]


def test_nodes_alone_are_planned_on_and_their_freedom_is_said_to_be_assumed(tmp_path: Path):
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81559",
    }
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": labels},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [node]}
    for name, text in (("n.yaml", yaml.safe_dump(listed)), ("n.json", json.dumps(listed))):
        (tmp_path / name).write_text(text)
        ran = plimsoll("plan", "-f", "-", "--nodes", str(tmp_path / name), stdin=resource())
        assert ran.code == 0
        assert "every allocatable GPU is taken as free" in " ".join(ran.out.split())


def test_a_snapshot_that_holds_resources_needs_no_files(tmp_path: Path):
    snapshot = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Snapshot",
        "nodes": [],
        "deployments": [json.loads(resource("held"))],
        "config": {"nodeClasses": [{"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1}]},
    }
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(snapshot))
    ran = plimsoll("plan", "--snapshot", str(file))
    assert ran.code == 0
    assert "default/held" in ran.out


def test_a_pinned_plan_of_the_snapshot_stands(tmp_path: Path):
    asked = ("plan", "-f", "-", "--fleet", "8xH100,8xL40S", "-o", "json")
    first = json.loads(plimsoll(*asked, stdin=resource("held")).out)["plans"][0]
    nodes = [
        {
            "metadata": {
                "name": name,
                "labels": {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "8"},
            },
            "status": {"allocatable": {"nvidia.com/gpu": "8"}},
        }
        for name, product in (("a", "NVIDIA-H100-80GB-HBM3"), ("b", "NVIDIA-L40S"), ("c", "NVIDIA-B200"))
    ]
    snapshot = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Snapshot",
        "nodes": nodes,
        "pods": [],
        "deployments": [json.loads(resource("held"))],
        "plans": {"default/held": first},
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps(snapshot))
    ran = plimsoll("plan", "--snapshot", str(file), "-o", "json")
    again = json.loads(ran.out)["plans"][0]
    assert again["pinning"]["kept"] is True
    assert again["sets"][0]["digest"] == first["sets"][0]["digest"]


def test_a_pinned_plan_that_cannot_be_read_is_told_and_counts_as_absent(tmp_path: Path):
    snapshot = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Snapshot",
        "deployments": [json.loads(resource("held"))],
        "plans": {"default/held": {"schema": "one"}},
        "config": {"nodeClasses": [{"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1}]},
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps(snapshot))
    ran = plimsoll("plan", "--snapshot", str(file))
    assert ran.code == 0
    assert "the pinned plan of default/held cannot be read" in ran.err


def test_facts_that_only_the_cluster_could_read_come_with_the_snapshot(tmp_path: Path):
    known = lookup("Qwen/Qwen3-8B")
    assert known is not None
    facts = json.loads(export_model(replace(known, source="s3://bucket/private")))
    snapshot = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "Snapshot",
        "models": [facts, {"broken": True}],
        "config": {"nodeClasses": [{"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 1}]},
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps(snapshot))
    text = resource().replace("hf://Qwen/Qwen3-8B", "s3://bucket/private")
    ran = plimsoll("plan", "-f", "-", "--snapshot", str(file), stdin=text)
    assert ran.code == 0
    assert "count as absent" in ran.err


def test_prices_of_the_admin_s_config_reach_a_fleet_of_the_command_line(tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: OperatorConfig\n"
        "prices: {currency: EUR, gpuHour: [{product: H100-SXM-80GB, perHour: '2.50'}]}\n"
    )
    ran = plimsoll("plan", "-f", "-", "--fleet", "8xH100", "--config", str(config), stdin=resource())
    assert "2.50 EUR an hour" in ran.out.splitlines()[0]


@pytest.mark.parametrize(
    "change", ["gpu=H200", "gpu=L40S", "context=8192", "context=8K", "precision=fp8", "kv=fp8", "users=100"]
)
def test_a_what_if_shows_what_moves(change: str):
    ran = plimsoll("plan", "-f", str(MINIMAL), "--fleet", "8xH100,8xL40S", "--what-if", change)
    assert ran.code == 0
    assert change in ran.out.splitlines()[1]
    assert "%)" in ran.out


def test_what_ifs_stand_in_the_document_too():
    ran = plimsoll("plan", "-f", str(MINIMAL), "--fleet", "8xH100", "--what-if", "gpu=H200", "-o", "json")
    data = json.loads(ran.out)
    assert data["whatIf"]["gpu=H200"]["plans"][0]["sets"][0]["hardware"]["gpu"] == "H200-SXM-141GB"
    assert data["plans"][0]["sets"][0]["hardware"]["gpu"] == "H100-SXM-80GB"


def test_a_gpu_that_the_fleet_lacks_takes_the_places_of_whole_ones_at_its_own_price(tmp_path: Path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "apiVersion: plimsoll.dev/v1alpha1\nkind: Fleet\npools:\n"
        "- {name: a, gpuProduct: L4-24GB, gpusPerNode: 2, nodes: 3}\n"
        "- {name: b, gpuProduct: T4-16GB, gpusPerNode: 2, sharedBy: 4, nodes: 1}\n"
        "config: {prices: {gpuHour: [{product: H200, perHour: '4.10'}]}}\n"
    )
    asked = ("plan", "-f", "-", "--snapshot", str(fleet), "--what-if", "gpu=H200", "-o", "json")
    other = json.loads(plimsoll(*asked, stdin=resource()).out)["whatIf"]["gpu=H200"]
    assert [(pool["devices"], pool["free_before"]) for pool in other["pools"]] == [(6, 6)]
    assert other["plans"][0]["cost"]["per_hour"] == "4.1"


def test_many_what_ifs_fold_into_tables_that_fit_the_page():
    changes = [part for users in (8, 16, 32, 64, 128) for part in ("--what-if", f"users={users}")]
    ran = plimsoll("plan", "-f", str(MINIMAL), "--fleet", "8xH100", *changes)
    assert max(map(len, ran.out.splitlines())) <= 110
    assert ran.out.count("AS WRITTEN") >= 2


@pytest.mark.parametrize(
    ("line", "sizes"),
    [
        ("8xH100", [(1, 8)]),
        ("12xH100", [(1, 8), (1, 4)]),
        ("2xL4", [(1, 2)]),
        ("3x4xL40S", [(3, 4)]),
        ("16xH100, 4x1xL4", [(2, 8), (4, 1)]),
    ],
)
def test_a_fleet_in_a_line_means_nodes(line: str, sizes: list[tuple[int, int]]):
    from plimsoll.cli.fleets import fleet_document  # noqa: PLC0415

    pools = fleet_document(line)["pools"]
    assert isinstance(pools, list)
    assert [(pool["nodes"], pool["gpusPerNode"]) for pool in pools] == sizes
    assert len({pool["name"] for pool in pools}) == len(pools)


def test_embeddings_are_told_by_the_answer_and_not_by_the_token():
    asked = ("plan", "-f", str(EXAMPLES / "06-embeddings.yaml"), "--fleet", "8xH100,4xL4")
    ran = plimsoll(*asked)
    assert ran.code == 0
    said = " ".join(ran.out.split())
    assert "requests of 1,024 tokens in flight" in said
    assert "ANSWER MS REQUESTS/S" in said
    assert [
        word for word in ("TPOT MS", " tokens/s and ", "them decoding", "first token") if word in said
    ] == []
    compared = plimsoll(*asked, "--what-if", "gpu=H200").out
    assert "requests/s" in compared
    assert "each token" not in compared


QUEUES: dict[str, Any] = {"engine": {"version": "0.20.2", "maxQueuedRequests": 50}}
NEWEST: dict[str, Any] = {"engine": {"maxQueuedRequests": 50}}


@pytest.mark.parametrize("output", ["text", "json"])
def test_what_the_engine_s_version_cannot_be_told_is_told_beside_the_plan(output: str, tmp_path: Path):
    told = "the engine is not told --max-num-queued-reqs 50: vllm 0.20.2 has no such flag"
    for number, (spec, err) in enumerate(((QUEUES, told), (NEWEST, ""))):
        file = tmp_path / f"{number}.yaml"
        file.write_text(resource(**spec))
        ran = plimsoll("plan", "-f", str(file), "--fleet", "8xH100", "-o", output)
        assert (ran.code, ran.err.strip().removeprefix("note: ")) == (0, err)


def test_of_several_deployments_each_is_told_by_name(tmp_path: Path):
    file = tmp_path / "two.yaml"
    file.write_text("\n---\n".join((resource("old", **QUEUES), resource("new"))))
    ran = plimsoll("plan", "-f", str(file), "--fleet", "8xH100")
    assert ran.code == 0
    assert "default/old: the engine is not told --max-num-queued-reqs 50" in ran.err
    assert "default/new" not in ran.err


def test_a_model_is_read_once_however_often_it_is_planned_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A hub would be asked again, and what came of it told again."""
    read, of = [], inputs.model_of

    def counted(spec: Any, admin: Any, *, online: bool) -> Any:
        read.append(spec.source)
        return of(spec, admin, online=online)

    monkeypatch.setattr(inputs, "model_of", counted)
    file = tmp_path / "two.yaml"
    file.write_text("\n---\n".join((resource("a"), resource("b"), resource("c", "Qwen/Qwen3-32B"))))
    ran = plimsoll("plan", "-f", str(file), "--fleet", "8xH100", "--what-if", "gpu=H200")
    assert ran.code == 0
    assert sorted(read) == ["hf://Qwen/Qwen3-32B", "hf://Qwen/Qwen3-8B"]
