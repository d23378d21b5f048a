"""docs/simulate.md lists every key that `plimsoll simulate -o json` writes, and no other."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll import names
from plimsoll.control.record import Act
from plimsoll.simulate.spending import Spent
from tests.cli.running import plimsoll
from tests.cli.test_plan import resource
from tests.cli.test_simulate import SPEC

DOCS = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
FREE = "results[].settings"
"""Each policy has its own."""


def documented() -> dict[str, set[str]]:
    section = DOCS.partition("## For programs")[2].partition("\n## ")[0]
    found: dict[str, set[str]] = {}
    for where, keys in re.findall(r"^\| ([^|]*)\| ([^|]+) \|[^|]*\|$", section, re.MULTILINE):
        for place in re.findall(r"`([^`]+)`", where) or [""]:
            found.setdefault(place, set()).update(re.findall(r"`([^`]+)`", keys))
    return found


def written(value: Any, place: str = "") -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    if isinstance(value, dict) and place != FREE:
        found[place] = set(value)
        below = [(each, f"{place}.{key}".lstrip(".")) for key, each in value.items()]
    else:
        below = [(each, f"{place}[]") for each in value] if isinstance(value, list) else []
    for each, at in below:
        for where, keys in written(each, at).items():
            found.setdefault(where, set()).update(keys)
    return found


def test_the_documented_keys_are_those_that_are_written(tmp_path: Path):
    """Of a deployment that sleeps and has several sets, in two worlds, which is all that there may be."""
    file, trace, fleet = tmp_path / "llm.yaml", tmp_path / "rates.csv", tmp_path / "fleet.yaml"
    zero = {"wake": {"query": "held"}, "afterSeconds": 120}
    file.write_text(resource("chat", **{**SPEC, "scaling": {"max": 6, "zero": zero}}))
    trace.write_text("t_s,rate_rps\n0,1\n60,0\n1500,1\n1560,1\n")
    pools = [("h100", "H100-SXM-80GB", 2), ("l40s", "L40S-48GB", 8)]
    made = [
        {"name": name, "gpuProduct": gpu, "gpusPerNode": gpus, "nodes": 1, "cpu": "96", "memory": "768Gi"}
        for name, gpu, gpus in pools
    ]
    fleet.write_text(yaml.safe_dump({"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": made}))
    asked = ("simulate", "-f", str(file), "--snapshot", str(fleet), "--trace", str(trace))
    seeds = ("--seed", "1", "--seed", "2")
    ran = plimsoll(*asked, "--routing", "inferencepool", "--policy", "plimsoll", *seeds, "-o", "json")
    found = written(json.loads(ran.out))
    assert found["results[].actions[]"], "it slept"
    found["results[].retunes[]"] = {field.name for field in fields(Act)}
    found["results[].spent"] = {field.name for field in fields(Spent)}
    found["missing[]"] = {"seed", "routing", "policy"}
    assert documented() == found


IN_NO_TABLE = (
    "requests",
    "failed",
    "unanswered",
    "longest_stall_ms",
    "actions",
    "reversals",
    "minutes_over_slo",
)
"""Of the figures; the others are columns of a table, by nearly that name."""


@pytest.mark.parametrize("key", IN_NO_TABLE)
def test_a_figure_that_no_table_shows_by_its_name_is_told_what_it_is(key: str):
    (told,) = re.findall(r"^\| `results\[\]\.figures` \| [^|]+ \| ([^|]+) \|$", DOCS, re.MULTILINE)
    assert f"`{key}`" in told
