"""A release as it stays with those who upgrade: its chart, and objects as its operator wrote them, frozen under e2e/previous/VERSION.

`python e2e/previous.py` freezes the present state, once a release, before anything of the next one is changed. What is frozen is never
made anew: it stands for clusters that are out there.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from chart import CHART
from cluster import Cluster
from cluster.api import Object
from cluster.fleet import Fleet, fleet_of
from common import ROOT
from plimsoll import __version__, names
from plimsoll.kube.kinds import CHILDREN, OWNER, path_of
from plimsoll.objects import Ref
from turns.crashes import LARGE, WIDE
from turns.running import Desk, Operator

FROZEN: Final = ROOT / "e2e" / "previous"
NAMESPACE: Final = "upgraded"
UID: Final = "UID-OF-THE-OWNER"
RESOURCES: Final[Mapping[str, Mapping[str, Any]]] = {
    "chat": {"replicas": 2, "topology": {"gpuProducts": ["H100-SXM-80GB"]}},
    "wide": {"model": LARGE, "topology": WIDE},
    "scaled": {"topology": {"gpuProducts": ["H100-SXM-80GB"]}, "scaling": {"min": 1, "max": 4}},
    "routed": {
        "replicas": 1,
        "topology": {"gpuProducts": ["H100-SXM-80GB"]},
        "networking": {
            "gateway": {"name": "public", "hostnames": ["chat.example.com"]},
            "allowFrom": ["users"],
        },
    },
    "small": {"model": {"source": "hf://HuggingFaceTB/SmolLM2-360M-Instruct"}, "topology": {"cpu": {}}},
}
OTHERS: Final = "gateway-api"
"""Optional kinds that clusters of the release have."""


def fleet() -> Fleet:
    machine = {"gpusPerNode": 8, "cpu": "192", "memory": "2Ti"}
    pools = [
        {"name": "small", "gpuProduct": "H100-SXM-80GB", "nodes": 2, **machine},
        {"name": "wide", "gpuProduct": "H200-SXM-141GB", "nodes": 2, "rdma": True, **machine},
        {"name": "cpu", "nodes": 2, "cpu": "64", "memory": "256Gi"},
    ]
    return fleet_of("previous", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


def versions() -> list[str]:
    return sorted(one.name for one in FROZEN.iterdir() if one.is_dir())


def restore(cluster: Cluster, version: str) -> Desk:
    """All of it as the operator of that release left it; its CRD must be there. Pods are made by the cluster."""
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    desk = Desk(cluster, NAMESPACE)
    owners: dict[str, str] = {}
    for body in _frozen(version):
        name = body["metadata"]["name"]
        if body["kind"] == names.KIND:
            status = body.pop("status")
            found = cluster.api.apply(desk.path(name), body, manager="kubectl")
            owners[name] = found["metadata"]["uid"]
            told = {
                "apiVersion": body["apiVersion"],
                "kind": body["kind"],
                "metadata": {"name": name},
                "status": status,
            }
            cluster.api.apply(f"{desk.path(name)}/status", told, manager=names.MANAGER_STATUS)
            continue
        (reference,) = body["metadata"]["ownerReferences"]
        reference["uid"] = owners[reference["name"]]
        cluster.api.apply(path_of(_ref(body)), body, manager=names.MANAGER_CHILDREN, force=True)
    return desk


def _frozen(version: str) -> Iterator[Object]:
    """Of all files, each of which that release's own code wrote."""
    for file in sorted((FROZEN / version).glob("objects*.yaml")):
        yield from yaml.safe_load_all(file.read_text())


def freeze(folder: Path) -> None:
    """Of the chart and the operator as they are."""
    folder.mkdir(parents=True)
    shutil.copytree(CHART, folder / "chart", ignore=shutil.ignore_patterns("ci", "README.md"))
    with Cluster() as cluster, cluster.fleet(fleet()), tempfile.TemporaryDirectory() as logs:
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        cluster.install_others(OTHERS)
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        desk = Desk(cluster, NAMESPACE)
        with Operator(cluster, Path(logs)) as operator:
            for name, spec in RESOURCES.items():
                desk.apply(name, **spec)
                if not desk.says("Ready", "True", "Serving", name):
                    raise SystemExit(f"{name} does not serve: {operator.tail()}")
            operator.rests()
        objects = [_resource(desk.get(name)) for name in RESOURCES] + list(_children(desk))
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects, sort_keys=False, width=110))


def _resource(body: Object) -> Object:
    metadata = {"name": body["metadata"]["name"], "namespace": NAMESPACE}
    spec, status = body["spec"], body["status"]
    return {
        "apiVersion": body["apiVersion"],
        "kind": OWNER.name,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _children(desk: Desk) -> Iterator[Object]:
    """What our field manager owns of each object that a resource owns."""
    for kind in CHILDREN:
        if kind.optional and kind.name != "HTTPRoute":
            continue
        for body in desk.items(f"{kind.api_version}/{kind.plural}"):
            owners = body["metadata"].get("ownerReferences") or ()
            if [one["kind"] for one in owners] != [OWNER.name]:
                continue
            kept = applied({"apiVersion": kind.api_version, "kind": kind.name, **body})
            kept["metadata"]["ownerReferences"][0]["uid"] = UID
            yield kept


def applied(body: Object) -> Object:
    """Of an object what the operator said when it applied it, and nothing that others added."""
    (mine,) = (
        one for one in body["metadata"]["managedFields"]
        if one["manager"] == names.MANAGER_CHILDREN and not one.get("subresource")
    )  # fmt: skip
    said = _part(body, mine["fieldsV1"])
    said["metadata"] |= {key: body["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], **said}


def _part(value: Any, fields: Mapping[str, Any]) -> Any:
    """Of a value what a set of fields names, as the API server writes such sets."""
    inside = {key: inner for key, inner in fields.items() if key != "."}
    if not fields:
        return value
    if isinstance(value, dict):
        return {
            key.removeprefix("f:"): _part(value[key.removeprefix("f:")], inner)
            for key, inner in inside.items()
        }
    # In the list's own order, which is not that of the keys.
    keys = [(json.loads(key.partition(":")[2]), inner) for key, inner in inside.items()]
    return [
        _part(one, inner)
        for one in value
        for wanted, inner in keys
        if (wanted.items() <= one.items() if isinstance(wanted, dict) else wanted == one)
    ]


def _ref(body: Object) -> Ref:
    metadata = body["metadata"]
    return Ref(body["apiVersion"], body["kind"], metadata["namespace"], metadata["name"])


if __name__ == "__main__":
    freeze(FROZEN / __version__)
