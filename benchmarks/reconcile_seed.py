"""Thousands of resources with their children, written straight as the operator left the first one: for what is measured of a start.

The operator itself would take minutes to make them, and nobody measures that here. That a start then writes nothing is the proof
that they are as it would have made them. kube-controller-manager stands still meanwhile: it would go on making ReplicaSets, at the
pace that its clients are held to, for longer than the whole measurement takes.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from glass import at_once
from plimsoll import __version__, names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.kube.door import Object
from plimsoll.kube.kinds import CHILDREN, OWNER, Kind
from plimsoll.objects import Ref
from plimsoll.reconcile.token import mark_of, token
from reconcile_ground import OBJECTS, SPACE, Bench, apply, resource

FIRST: Final = "llm-00000"
LATE: Final = frozenset(
    {"creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "ownerReferences"}
)
"""What the API server says of an object by itself, and what names the owner."""

Children = tuple[tuple[Kind, str], ...]


@contextmanager
def alone(bench: Bench) -> Iterator[None]:
    """Without kube-controller-manager."""
    manager = bench.cluster.processes.pid("kube-controller-manager")
    os.kill(manager, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(manager, signal.SIGCONT)


async def seed(bench: Bench, numbers: Iterable[int]) -> None:
    """Beside the first, which is there and has had its turn, asking for what it asks for by now."""
    first = bench.cluster.api.get(OWNER.path(SPACE, FIRST))
    children = _children(bench)
    mark = mark_of(__version__, OperatorConfig())
    await at_once([partial(_written, bench, children, first, mark, f"llm-{number:05}") for number in numbers])


def _children(bench: Bench) -> Children:
    """Of the first, as text; without what nobody but the API server writes."""
    found: list[tuple[Kind, str]] = []
    for kind in dict.fromkeys(CHILDREN):
        if kind.name in OBJECTS:
            selector = f"{names.LABEL_DEPLOYMENT}={FIRST}"
            items = bench.cluster.api.items(f"{kind.collection(SPACE)}?labelSelector={selector}")
            found += [(kind, json.dumps(_bare(kind, item))) for item in items]
    if len(found) != len(OBJECTS):
        raise RuntimeError(f"{FIRST} has {len(found)} children, and {len(OBJECTS)} were expected")
    return tuple(found)


def _bare(kind: Kind, item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in LATE}
    body: dict[str, Any] = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    if kind.name == "Service":
        # Addresses are given away one after the other, and are not what is measured.
        spec = {key: value for key, value in body["spec"].items() if not key.startswith(("clusterIP", "ip"))}
        body["spec"] = {**spec, "clusterIP": "None"}
    return {**body, "apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}


async def _written(bench: Bench, children: Children, first: Object, mark: str, name: str) -> None:
    asked = resource(name, **first["spec"])
    made = await apply(bench, asked)
    metadata = made["metadata"]
    owner = {
        "apiVersion": names.API_VERSION, "kind": names.KIND, "name": name, "uid": metadata["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    bodies = [(kind, json.loads(text.replace(FIRST, name))) for kind, text in children]
    hashes, pinned = [], None
    for kind, body in bodies:
        about = body["metadata"]
        about["ownerReferences"] = [owner]
        if names.ANNOTATION_TURN in about["annotations"]:
            pinned = about
        else:
            ref = Ref(kind.api_version, kind.name, SPACE, about["name"])
            hashes.append((ref, about["annotations"][names.ANNOTATION_HASH]))
    deployment = LLMDeployment.observed({**asked, "metadata": metadata})
    if pinned is not None:
        pinned["annotations"][names.ANNOTATION_TURN] = token(deployment, hashes, mark)
    for kind, body in bodies:
        path = kind.path(SPACE, body["metadata"]["name"])
        await bench.door.apply(path, body, manager=names.MANAGER_CHILDREN)
    about = {"name": name, "namespace": SPACE, "uid": metadata["uid"]}
    told = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": about}
    path = f"{OWNER.path(SPACE, name)}/status"
    # The first was edited, and these never were.
    generation = f'"observedGeneration": {metadata["generation"]}'
    status = re.sub(r'"observedGeneration": \d+', generation, json.dumps(first["status"]))
    seen = {**told, "status": json.loads(status.replace(FIRST, name))}
    await bench.door.apply(path, seen, manager=names.MANAGER_STATUS)
