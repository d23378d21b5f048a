"""A way in that the cluster knows no kind for is said, and made when it does; and what `plimsoll render` says of such a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

from cluster import Cluster
from cluster.api import Object
from common import eventually
from plimsoll import names
from plimsoll.kube.kinds import CHILDREN
from turns.crashes import LARGE, SMALL, WIDE
from turns.running import Desk, Operator

ROUTES = "gateway.networking.k8s.io/v1/httproutes"


def test_a_route_is_made_when_its_kind_comes_and_missed_before(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    with Operator(lab, tmp_path):
        place.apply(topology=SMALL, networking={"gateway": {"name": "front"}})
        assert place.says("Ready", "True", "Serving")
        assert place.says("Degraded", "True", "NotServed")
        assert "serves no HTTPRoute" in place.message("Degraded")
        lab.install_others("gateway-api")
        assert eventually(lambda: [one["metadata"]["name"] for one in place.items(ROUTES)] == ["chat-route"])
        assert place.says("Degraded", "False", "Healthy")


def test_what_a_snapshot_renders_is_byte_for_byte_what_the_operator_applied(
    lab: Cluster, place: Desk, tmp_path: Path
) -> None:
    """By the digest of its whole body that each object bears."""
    lab.install_others("gateway-api")
    gateway = {"gateway": {"name": "front"}}
    with Operator(lab, tmp_path) as operator:
        place.apply(topology=SMALL, networking=gateway, replicas=2)
        place.apply("wide", model=LARGE, topology=WIDE)
        assert place.says("Ready", "True", "Serving")
        assert place.says("Ready", "True", "Serving", "wide")
        assert operator.rests()
    snapshot = tmp_path / "snapshot.yaml"
    snapshot.write_bytes(plimsoll(lab, "snapshot", "--context"))
    applied = {
        f"{kind.name} {one['metadata']['name']}": one["metadata"]["annotations"][names.ANNOTATION_HASH]
        for kind in CHILDREN
        if not kind.optional or kind.name == "HTTPRoute"
        for one in lab.api.items(kind.collection(place.namespace))
        if names.ANNOTATION_HASH in (one["metadata"].get("annotations") or {}) and _is_made(one)
    }
    rendered: dict[str, str] = {}
    for name in ("chat", "wide"):
        resource = tmp_path / f"{name}.yaml"
        resource.write_text(json.dumps(_asked(place.get(name))))
        text = plimsoll(lab, "render", "-f", str(resource), "--snapshot", str(snapshot))
        rendered |= {
            f"{one['kind']} {one['metadata']['name']}": one["metadata"]["annotations"][names.ANNOTATION_HASH]
            for one in yaml.safe_load_all(text)
        }
    assert len(rendered) > 14
    assert rendered == applied


def plimsoll(cluster: Cluster, *words: str) -> bytes:
    """The command, as who has the cluster's kubeconfig runs it."""
    done = subprocess.run(
        [sys.executable, "-c", "from plimsoll.cli.main import main; main()", *words],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},  # noqa: TID251 - a process of its own
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _is_made(item: Object) -> bool:
    """By the operator, and not by who copies annotations down to what it makes."""
    return any(one["kind"] == names.KIND for one in item["metadata"].get("ownerReferences") or ())


def _asked(item: Object) -> Object:
    """As its user wrote it."""
    about = {key: item["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": about, "spec": item["spec"]}
