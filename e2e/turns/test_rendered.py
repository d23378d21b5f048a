"""What the command prints of a snapshot is what the operator applies in that cluster: all of each object, for all examples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cluster import Cluster
from cluster.api import Object
from cluster.fleet import Fleet, fleet_of
from common import LONG_SECONDS, ROOT, eventually
from plimsoll import names
from plimsoll.kube.kinds import CHILDREN
from previous import applied
from rights import beyond
from turns.crashes import LARGE, SMALL, WIDE, laboratory
from turns.running import Desk, Operator

OURS: Final[dict[str, dict[str, Any]]] = {
    "routed": {"topology": SMALL, "networking": {"gateway": {"name": "front"}}, "replicas": 2},
    "wide": {"model": LARGE, "topology": WIDE},
}
ELSEWHERE: Final = {"drafts", "too-big"}
"""Examples that ask for GPUs which the fleet here has not."""
ANSWERS: Final = (0, 2)
"""All are printed; one does not fit."""


def asked() -> dict[str, dict[str, Any]]:
    """Specs by name: those of all examples, and what no example asks for."""
    files = sorted((ROOT / "examples").glob("[0-9]*.yaml"))
    bodies = [body for file in files for body in yaml.safe_load_all(file.read_text())]
    return {body["metadata"]["name"]: body["spec"] for body in bodies} | OURS


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Desk]:
    """All of them as an operator left them that has ended: while one runs, what it remembers of traffic goes on. The cluster is its own,
    since it serves HTTPRoutes, which others wait to see come."""
    with laboratory() as cluster, cluster.fleet(cpus()):
        cluster.install_others("gateway-api")
        desk = Desk(cluster, cluster.new_namespace("rendered"))
        with Operator(cluster, tmp_path) as operator:
            for name, spec in asked().items():
                desk.apply(name, **spec)
            judged = partial(is_judged, desk)
            assert eventually(lambda: all(map(judged, asked())), LONG_SECONDS), operator.tail()
            assert operator.rests()
        yield desk
        assert beyond(cluster) == []


def test_what_a_snapshot_renders_is_byte_for_byte_what_the_operator_applied(
    left: Desk, tmp_path: Path
) -> None:
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_bytes(plimsoll(left.cluster, "snapshot", "--context"))
    found = [
        applied({"apiVersion": kind.api_version, "kind": kind.name, **one})
        for kind in CHILDREN
        if not kind.optional or kind.name == "HTTPRoute"
        for one in left.cluster.api.items(kind.collection(left.namespace))
        if is_made(one)
    ]
    made = {called(one): text(one) for one in found}
    rendered: dict[str, str] = {}
    bare = set()
    for name in asked():
        file = tmp_path / f"{name}.yaml"
        file.write_text(json.dumps(as_written(left.get(name))))
        printed = list(
            yaml.safe_load_all(plimsoll(left.cluster, "render", "-f", str(file), "--snapshot", str(snapshot)))
        )
        rendered |= {called(one): text(one) for one in printed}
        bare |= set() if printed else {name}
    assert bare == ELSEWHERE
    assert rendered.keys() == made.keys()
    assert [line for name in made for line in apart(name, made[name], rendered[name])] == []


def cpus() -> Fleet:
    """For the example that asks for no GPUs, which the fleet here has alone."""
    pools = [{"name": "cpu", "nodes": 2, "cpu": "64", "memory": "256Gi"}]
    return fleet_of("cpus", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


def is_judged(desk: Desk, name: str) -> bool:
    """It serves, waits for a volume that nobody makes here, or does not fit."""
    if name in ELSEWHERE:
        return desk.condition("Fits", name)[0] == "False"
    if desk.get(name)["spec"].get("storage"):
        return desk.condition("Placed", name)[0] == "True"
    return desk.condition("Ready", name) == ("True", "Serving")


def called(one: Object) -> str:
    return f"{one['kind']} {one['metadata']['name']}"


def text(one: Object) -> str:
    """Without the order of keys, which no API server keeps; that of lists stays."""
    return json.dumps(one, sort_keys=True, indent=1)


def plimsoll(cluster: Cluster, *words: str) -> bytes:
    """The command, as who has the cluster's kubeconfig runs it."""
    done = subprocess.run(
        [sys.executable, "-c", "from plimsoll.cli.main import main; main()", *words],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},  # noqa: TID251 - a process of its own
        capture_output=True,
        check=False,
    )
    assert done.returncode in ANSWERS, done.stderr.decode()
    return done.stdout


def apart(name: str, made: str, rendered: str) -> Iterator[str]:
    """Lines that only one of both has."""
    return unified_diff(made.splitlines(), rendered.splitlines(), name, "rendered", lineterm="", n=0)


def is_made(item: Object) -> bool:
    """By the operator, and not by who copies annotations down to what it makes."""
    return any(one["kind"] == names.KIND for one in item["metadata"].get("ownerReferences") or ())


def as_written(item: Object) -> Object:
    """By its user."""
    about = {key: item["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": about, "spec": item["spec"]}
