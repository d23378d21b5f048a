"""What of the admin's config a simulation goes by: how long nodes take, and how often the law looks."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll import names
from tests.cli.running import plimsoll
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC


@pytest.fixture
def rising(tmp_path: Path) -> str:
    """Ten minutes of what one replica carries, then forty of what takes three."""
    file = tmp_path / "rates.csv"
    file.write_text("t_s,rate_rps\n0,4\n600,22\n1800,22\n")
    return str(file)


def simulated(tmp_path: Path, trace: str, *arguments: str, **config: Any) -> str:
    """On one GPU that is there, and nodes of a class that are made."""
    file, admin = tmp_path / "llm.yaml", tmp_path / "admin.yaml"
    file.write_text(resource("chat", **SPEC))
    admin.write_text(yaml.safe_dump({"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, **config}))
    asked = ("simulate", "-f", str(file), "--fleet", "1x1xL40S", "--config", str(admin), "--trace", trace)
    ran = plimsoll(*asked, "--routing", "inferencepool", "--policy", "plimsoll", *arguments)
    assert ran.code == 0, ran.err
    return ran.out


def nodes(**said: int) -> dict[str, Any]:
    made = {"name": "l40s", "gpuProduct": "L40S-48GB", "gpusPerNode": 1, "maxNodes": 4}
    return {"nodeClasses": [{**made, **said}]}


def test_a_class_whose_nodes_take_longer_has_replicas_come_later(rising: str, tmp_path: Path):
    def ours(seconds: int) -> dict[str, Any]:
        data = json.loads(simulated(tmp_path, rising, "-o", "json", **nodes(provisionSeconds=seconds)))
        assert [one["hardware"]["node_s"] for one in data["sets"] if one["standsBy"]] == [seconds]
        found: dict[str, Any] = data["results"][0]["figures"]
        return found

    soon, late = ours(60), ours(1200)
    assert soon["minutes_over_slo"] + 10 < late["minutes_over_slo"]
    assert soon["slo_pct"] > late["slo_pct"]
    said = " ".join(simulated(tmp_path, rising, "--days", "0.01", **nodes()).split())
    assert "4 of them on nodes that take 300 s to be made" in said, "where the admin does not say"


def test_the_law_looks_as_often_as_the_admin_says_and_others_as_they_do(rising: str, tmp_path: Path):
    control = {"control": {"intervalSeconds": 120}}
    said = simulated(tmp_path, rising, "-o", "json", "--policy", "keda", **nodes(), **control)
    ours, other = json.loads(said)["results"]
    assert {action["at"] % 120 for action in ours["actions"]} == {5}
    assert {action["at"] % 120 for action in other["actions"]} > {5}
    assert ours["settings"]["interval_s"] == 120
    assert "interval_s" not in json.loads(simulated(tmp_path, rising, "-o", "json"))["results"][0]["settings"]


@pytest.mark.parametrize(
    ("config", "closed", "said"),
    [
        ({}, True, "engines close connections, so each request finds a replica anew"),
        ({"runtime": {"closeConnections": False}}, False, "connections stay with the replica they found"),
        ({"runtime": {"enabled": False}}, False, "connections stay with the replica they found"),
    ],
    ids=["as it comes", "kept by the admin", "no supervisor that closes them"],
)
def test_a_service_is_played_as_the_admin_lets_engines_keep_or_close_connections(
    rising: str, tmp_path: Path, config: dict[str, Any], closed: bool, said: str
):
    asked = ("--routing", "service", "--days", "0.01")
    data = json.loads(simulated(tmp_path, rising, *asked, "-o", "json", **nodes(), **config))
    assert data["world"]["clients"]["closed"] is closed
    assert said in " ".join(simulated(tmp_path, rising, *asked, **nodes(), **config).split())
