"""Fleets that are not there: fleet files as the Nodes, and the pods of others, that a real one of that kind would show.

The files are the product's own short form, so a fleet can be planned on with and without a cluster. `fleets/` holds ready ones.
Putting the objects into a cluster is `simulator`'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from cluster.api import Object
from cluster.binaries.pins import KUBERNETES
from cluster.claims import claim_and_pod, published
from cluster.discovery import discovered
from cluster.stages.habits import draw, habits_of
from plimsoll import names
from plimsoll.facts.fleet_file import read_fleet_file

FLEETS: Final = Path(__file__).parent / "fleets"
LABEL: Final = "e2e.plimsoll.dev/fleet"
KUBELET: Final = "type"
"""Label that names the program that plays a node's kubelet."""
OTHERS: Final = "others"
"""Namespace of the pods that use part of a fleet."""
HOST: Final = {"cpu": "256", "memory": "4Ti", "ephemeral-storage": "7Ti", "pods": "110"}
"""Of a node whose file says no more than that it has enough."""
PLACEHOLDER: Final = "registry.invalid/others:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet as objects of the API."""

    name: str
    nodes: tuple[Object, ...]
    pods: tuple[Object, ...]
    spare: tuple[Object, ...]
    """Nodes that are not there, and could be made."""
    slices: tuple[Object, ...]
    claims: tuple[Object, ...]
    """Of others, with a pod each among `pods`."""
    config: Object
    """The admin's config that belongs to it: prices, links and what else no label says."""

    @property
    def selector(self) -> str:
        return f"{LABEL}={self.name}"

    @property
    def kubelet(self) -> str:
        """Nodes with habits have a program of their own, as it is told of them when it starts."""
        return kubelet_of(self.name, self.habits)

    @property
    def habits(self) -> dict[str, dict[str, str]]:
        """What pods do on some of its nodes."""
        return habits_of((*self.nodes, *self.spare))


def kubelet_of(fleet: str, habits: Mapping[str, object]) -> str:
    return f"kwok-{fleet}"[:63].rstrip("-") if habits else "kwok"


def ready_fleets() -> dict[str, Path]:
    """Those that come along, by name."""
    return {file.stem: file for file in sorted(FLEETS.glob("*.yaml"))}


def read_fleet(name: str | Path) -> Fleet:
    """A ready fleet by name, or a fleet file."""
    ready = ready_fleets()
    file = Path(name)
    if str(name) in ready:
        file = ready[str(name)]
    elif not file.is_file():
        raise LookupError(f"no fleet is called {name}, and it is no file; ready are {', '.join(ready)}")
    # The name becomes a label's value.
    label = re.sub(r"[^A-Za-z0-9]+", "-", file.stem).strip("-")[:63].strip("-") or "fleet"
    return fleet_of(label, yaml.safe_load(file.read_text()))


def fleet_of(name: str, document: Object, *, seed: int = 0) -> Fleet:
    """A fleet file's content as a fleet; the product's own reader says what is wrong with it."""
    written = read_fleet_file(document)
    there = {node["metadata"]["name"] for node in written.nodes}
    every = read_fleet_file(_grown(document)).nodes
    for node in every:
        node["metadata"]["labels"] = draw(node["metadata"]["labels"], node["metadata"]["name"], seed)
    kubelet = kubelet_of(name, habits_of(every))
    counts = {one["spec"]["nodeName"]: len(one["spec"]["devices"]) for one in written.slices}
    nodes = [
        _node(name, kubelet, number, node, counts.get(node["metadata"]["name"]))
        for number, node in enumerate(every)
    ]
    by_node = {one["spec"]["nodeName"]: one for one in written.slices}
    claimed = [claim_and_pod(one, by_node, OTHERS, {LABEL: name}) for one in written.claims]
    config = written.config.to_dict() | {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND}
    return Fleet(
        name=name,
        nodes=tuple(node for node in nodes if node["metadata"]["name"] in there),
        spare=tuple(node for node in nodes if node["metadata"]["name"] not in there),
        pods=(*(_pod(name, pod) for pod in written.pods), *(pod for _, pod in claimed)),
        slices=tuple(published(one, {LABEL: name}) for one in written.slices),
        claims=tuple(claim for claim, _ in claimed),
        config=config,
    )


def _grown(document: Object) -> Object:
    """The same fleet with all the nodes that there can be."""
    pools = [
        {key: value for key, value in pool.items() if key not in {"maxNodes", "freeGpus"}}
        | {"nodes": max(pool["nodes"], pool.get("maxNodes", 0))}
        for pool in document["pools"]
    ]
    return {**document, "pools": pools}


def _node(fleet: str, kubelet: str, number: int, written: Object, claimable: int | None) -> Object:
    """What a kubelet registers, and what discovery adds to it; `claimable` counts devices that are not allocatable."""
    metadata, devices = written["metadata"], written["status"]["allocatable"]
    labels = discovered(metadata["labels"], devices, claimable)
    amounts = {**HOST, **devices}
    address = f"10.{240 + number // 65536}.{number // 256 % 256}.{number % 256}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": metadata["name"],
            "labels": labels | {KUBELET: kubelet, LABEL: fleet},
        },
        "spec": written["spec"],
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": metadata["name"]},
            ],
            "nodeInfo": _NODE_INFO,
        },
    }


def _pod(fleet: str, written: Object) -> Object:
    """A pod of somebody else, already where it runs."""
    spec: dict[str, Any] = written["spec"]
    (requests,) = (one["resources"]["requests"] for one in spec["containers"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": written["metadata"]["name"], "namespace": OTHERS, "labels": {LABEL: fleet}},
        "spec": {
            "nodeName": spec["nodeName"],
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": PLACEHOLDER,
                    # Of extended resources, limits and requests are the same thing.
                    "resources": {"requests": requests, "limits": requests},
                }
            ],
        },
    }


_NODE_INFO: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "containerd://2.2.1",
    "kernelVersion": "6.8.0-simulated",
    "kubeProxyVersion": "",
    "kubeletVersion": f"v{KUBERNETES}",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "Simulated Linux",
    "systemUUID": "",
}
