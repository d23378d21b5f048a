"""Resources that between them have a child of every kind that the operator can render, and a fleet that holds them all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cluster.api import Object
from cluster.fleet import Fleet, fleet_of
from common import LONG_SECONDS, eventually
from plimsoll import names
from plimsoll.kube.kinds import CHILDREN, Kind
from turns.crashes import LARGE, SMALL, WIDE
from turns.running import Desk

GATEWAY: Final = {"name": "public", "endpointPicker": {"service": "picker"}}
ROUTED: Final = {"gateway": GATEWAY, "allowFrom": ["users"]}
ASKED: Final[Mapping[str, dict[str, Any]]] = {
    "routed": {"topology": SMALL, "networking": ROUTED, "storage": {"weights": {"claimTemplate": {"size": "40Gi"}}}},
    "open": {"topology": SMALL, "networking": {"ingress": {"hosts": ["chat.example.com"]}}},
    "claiming": {"topology": {"gpuProducts": ["L40S-48GB"]}},
    "wide": {"topology": WIDE, "model": LARGE},
    "grouped": {"topology": {**WIDE, "groups": "LeaderWorkerSet"}, "model": LARGE},
}  # fmt: skip
SERVING: Final = ("open", "claiming", "wide")
"""The others wait: for a volume that nobody makes here, and for pods that the LeaderWorkerSet's own controller would make."""


def fleet() -> Fleet:
    machine = {"cpu": "192", "memory": "2Ti", "gpusPerNode": 8}
    pools = [
        {"name": "small", "gpuProduct": "H100-SXM-80GB", "nodes": 4, **machine},
        {"name": "wide", "gpuProduct": "H200-SXM-141GB", "nodes": 8, "rdma": True, **machine},
        {"name": "claimed", "gpuProduct": "L40S-48GB", "nodes": 2, "via": "dra", **machine},
    ]
    return fleet_of("every", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools})


def ask(desk: Desk) -> None:
    """Applied again, nothing is new."""
    for name, spec in ASKED.items():
        desk.apply(name, **spec)


def are_made(desk: Desk) -> bool:
    """Whether what can serve does, and there is a child of every kind; it is waited for."""

    def made() -> bool:
        serving = all(desk.condition("Ready", name) == ("True", "Serving") for name in SERVING)
        return serving and all(children(desk, kind) for kind in CHILDREN)

    return eventually(made, LONG_SECONDS)


def children(desk: Desk, kind: Kind) -> dict[str, Object]:
    """Those of a kind that belong to a resource of ours, by name."""
    return {
        one["metadata"]["name"]: one
        for one in desk.cluster.api.items(kind.collection(desk.namespace))
        if owner_of(one)
    }


def owner_of(child: Object) -> str:
    """Which resource; empty where it belongs to none. What a controller makes of a child may bear the child's labels."""
    owners = child["metadata"].get("ownerReferences") or ()
    return next((str(one["name"]) for one in owners if one["kind"] == names.KIND), "")
