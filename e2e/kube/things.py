"""Children of a deployment, small ones, and an index of them with what it has woken."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from cluster.api import Api
from common import PATIENCE_SECONDS
from plimsoll import names
from plimsoll.kube.applier import Applier
from plimsoll.kube.children import Children
from plimsoll.kube.door import Door
from plimsoll.objects import Manifest, Owner, manifest

LONGEST_SECONDS: Final = 5 * PATIENCE_SECONDS
"""Of what waits several times: by then it hangs."""


def deployment(api: Api, namespace: str, name: str = "chat") -> Owner:
    """An LLMDeployment that nobody looks after."""
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": {"source": "hf://Qwen/Qwen3-8B"}},
    }
    made = api.create(f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURAL}", body)
    return Owner(namespace, name, made["metadata"]["uid"])


def child(owner: Owner, api_version: str, kind: str, name: str, **rest: Any) -> Manifest:
    """As rendering makes them: owner, labels and the hash of its content."""
    body: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_DEPLOYMENT: owner.name,
                names.LABEL_SET: "0a1b2c3d",
            },
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.KIND,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        **rest,
    }
    body["metadata"]["annotations"] = {names.ANNOTATION_HASH: manifest(body).digest}
    return manifest(body)


def config_map(owner: Owner, value: str = "1") -> Manifest:
    return child(owner, "v1", "ConfigMap", f"{owner.name}-plan", data={"plan.json": value})


def service(owner: Owner, port: int = 80) -> Manifest:
    spec = {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": port, "protocol": "TCP"}]}
    return child(owner, "v1", "Service", owner.name, spec=spec)


def account(owner: Owner) -> Manifest:
    return child(owner, "v1", "ServiceAccount", owner.name)


def revision(owner: Owner) -> Manifest:
    return child(owner, "apps/v1", "ControllerRevision", f"{owner.name}-0a1b2c3d", revision=1, data={"a": 1})


def workload(owner: Owner, replicas: int = 0, image: str = "engine:1") -> Manifest:
    labels = {names.LABEL_DEPLOYMENT: owner.name, names.LABEL_SET: "0a1b2c3d", names.LABEL_ROLE: "serving"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "engine", "image": image}]},
        },
    }
    return child(owner, "apps/v1", "Deployment", f"{owner.name}-0a1b2c3d", spec=spec)


def family(owner: Owner, replicas: int = 0) -> list[Manifest]:
    return [account(owner), config_map(owner), service(owner), revision(owner), workload(owner, replicas)]


class Seen:
    """An index of children, what it woke, and an applier on it."""

    def __init__(self, door: Door) -> None:
        self.woken: Counter[str] = Counter()
        self.children = Children(door, self._wake)
        self.applier = Applier(door, self.children)

    def _wake(self, owner: str) -> None:
        self.woken[owner] += 1


@asynccontextmanager
async def seeing(door: Door) -> AsyncIterator[Seen]:
    seen = Seen(door)
    seen.children.start()
    await asyncio.wait_for(seen.children.synced(), PATIENCE_SECONDS)
    try:
        yield seen
    finally:
        await seen.children.stop()


async def soon(holds: Callable[[], bool]) -> bool:
    """Whether it holds before patience ends."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.02)
    return True


async def quiet(seconds: float = 0.7) -> None:
    """Time for what must not happen; events of a write arrive within milliseconds."""
    await asyncio.sleep(seconds)
