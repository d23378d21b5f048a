"""What is rendered on a real API server: accepted word for word, changed by nothing when it is applied again, and restricted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from cluster import Cluster
from cluster.api import Object
from plimsoll import names
from plimsoll.facts.inventory import Pool
from plimsoll.kube.kinds import path_of
from plimsoll.objects import Manifest
from tests.planning import asking
from tests.planning.asking import LLAMA_70B, QWEN_MOE, R1
from tests.render.building import config, everything, resource, templates

STATE: Final = ("resourceVersion", "managedFields", "annotations")
RESTRICTED: Final = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
EVERYTHING: Final[dict[str, Any]] = {
    "model": {"source": "Qwen/Qwen3-8B", "tokenSecret": {"name": "hub"}},
    "chatTemplate": {"inline": "{{ messages }}"},
    "networking": {"tlsSecret": "cert", "apiKeySecret": {"name": "keys", "key": "k"}, "allowFrom": ["apps"]},
    "podLabels": {"team": "a"},
    "podAnnotations": {"note": "x"},
    "scheduling": {"queue": "llms", "schedulerName": "default-scheduler"},
    "topology": {"tolerations": [{"key": "spot", "operator": "Exists"}], "nodeSelector": {}},
    "storage": {"weights": {"claimTemplate": {"size": "50Gi"}}, "cache": {"emptyDir": {"sizeLimit": "5Gi"}}},
}
OVER_NODES: Final = {"mode": "manual", "tensor": 4, "pipeline": 2}
RANKS: Final = {"mode": "manual", "data": 2, "expertParallel": True, "dataMode": "external"}
pool: Callable[..., Pool] = asking.pool
cpu_pool: Callable[..., Pool] = asking.cpu_pool
FOURS: Final = pool(per_node=4, nodes=4, rdma=True)
CASES: Final[dict[str, tuple[dict[str, Any], tuple[Any, ...]]]] = {
    "one pod": ({}, ()),
    "everything said": (EVERYTHING, ()),
    "from outside": (
        {"networking": {"ingress": {"hosts": ["a.example"], "tlsSecret": "cert"}, "allowFrom": ["apps"]}},
        (),
    ),
    "own volume a pod": (
        {"storage": {"weights": {"claimTemplate": {"accessMode": "ReadWriteOnce"}}}},
        (),
    ),
    "image volume": ({"storage": {"weights": {"image": {"reference": "registry.example/m:1"}}}}, ()),
    "cpu": ({"source": "Qwen/Qwen3-0.6B", "topology": {"cpu": {"cores": 8}}}, (cpu_pool(),)),
    "claims": ({}, (pool(via_dra=True, resource="gpu.nvidia.com", claim_selector="true", labels={}),)),
    "group": ({"source": LLAMA_70B, "topology": OVER_NODES}, (FOURS,)),
    "group by Ray": ({"source": LLAMA_70B, "topology": OVER_NODES | {"executor": "ray"}}, (FOURS,)),
    "ranks behind the Service": (
        {"source": QWEN_MOE, "topology": RANKS},
        (pool(per_node=1, nodes=4, rdma=True),),
    ),
    "a large mixture": ({"source": R1}, (pool(nodes=4, rdma=True),)),
}


@pytest.fixture
def objects(cluster: Cluster, namespace: str, request: pytest.FixtureRequest) -> list[Manifest]:
    said, pools = CASES[request.param]
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", RESTRICTED)
    asked = resource(**said, namespace=namespace)
    body = asked.to_dict() | {"metadata": {"name": asked.name, "namespace": namespace}}
    stored = cluster.api.create(f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURAL}", body)
    return everything(
        resource(**said, namespace=namespace, uid=stored["metadata"]["uid"]), *pools, admin=config()
    )


@pytest.mark.parametrize("objects", CASES, indirect=True)
def test_every_object_is_taken_and_applying_it_again_changes_nothing(
    cluster: Cluster, objects: list[Manifest]
) -> None:
    for one in objects:
        path, body = path_of(one.ref), dict(one.body)
        first = apply(cluster, path, body)
        assert lost(body, first) == []
        assert version(apply(cluster, path, body)) == version(first)


@pytest.mark.parametrize("objects", CASES, indirect=True)
def test_every_pod_passes_the_restricted_standard(
    cluster: Cluster, namespace: str, objects: list[Manifest]
) -> None:
    cluster.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "chat"}})
    for number, template in enumerate(templates(objects)):
        pod = {**template, "metadata": {**template["metadata"], "name": f"pod-{number}"}}
        path = f"/api/v1/namespaces/{namespace}/pods"
        cluster.api.create(path, pod, dryRun="All", fieldValidation="Strict")


def apply(cluster: Cluster, path: str, body: Object) -> Object:
    return cluster.api.apply(path, body, manager=names.MANAGER_CHILDREN, force=True, fieldValidation="Strict")


def version(body: Object) -> Object:
    """All that is wanted of it, without what controllers write of its state meanwhile."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in STATE}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}


def lost(wanted: Any, stored: Any, place: str = "") -> list[str]:
    """Where the stored object has not what was applied; what the server adds is its own matter."""
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return [
            where for key, value in wanted.items() for where in lost(value, stored.get(key), f"{place}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        pairs = zip(wanted, stored, strict=True)
        return [where for number, (a, b) in enumerate(pairs) for where in lost(a, b, f"{place}[{number}]")]
    return [] if wanted == stored else [f"{place}: {wanted!r} became {stored!r}"]
